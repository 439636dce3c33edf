// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestReserveMemory proves what a reader reserves: nothing for a small first page, the bytes of a larger page or record
// before it reads it, and nothing any more when it has caught up.
func TestReserveMemory(t *testing.T) {
	s, err := open(smallDisk(), "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, size := range []int{10, 10 << 10, 20 << 10, 300 << 10, 10} {
		a := replay.Append{Log: "a", Expect: uint64(i), Records: [][]byte{make([]byte, size)}, End: i == 4}
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	var calls []int64
	count := uint64(0)
	for r, err := range replay.Follow(t.Context(), s, "a", 0, func(_ context.Context, n int64) error {
		calls = append(calls, n)
		return nil
	}) {
		if count++; err != nil || r.Seq != count {
			t.Fatalf("record %d, %v, want %d", r.Seq, err, count)
		}
	}
	if diff := cmp.Diff([]int64{256 << 10, 300 << 10, 0}, calls); diff != "" || count != 5 {
		t.Errorf("%d records; reserved (-want +got):\n%s", count, diff)
	}

	refused := errors.New("refused")
	var last error
	for _, last = range replay.Follow(t.Context(), s, "a", 1, func(context.Context, int64) error { return refused }) {
	}
	if last != refused {
		t.Errorf("error %v, want that of reserve", last)
	}
}
