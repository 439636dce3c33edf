// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestReserveMemory proves the reservations of a reader: nothing for a small first page, the bytes of a larger page or
// record before it reads it, and nothing any more when it has caught up. Before it waits for more, it gives back its
// memory.
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
	if diff := cmp.Diff([]int64{64 << 10, 0, 300 << 10, 0}, calls); diff != "" || count != 5 {
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

// TestRestingHead reads the head of a log again and again: it is looked up once after each change.
func TestRestingHead(t *testing.T) {
	s, err := open(smallDisk(), "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range uint64(3) {
		metadata := bytes.Repeat([]byte("m"), int(10+i))
		a := replay.Append{Log: "a", Expect: i, Records: [][]byte{{1}}, Metadata: metadata, DueAt: time.Now().Add(time.Hour)}
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		first, err := s.Head(t.Context(), "a")
		if err != nil || first.Last != i+1 || !bytes.Equal(first.Metadata, metadata) {
			t.Fatalf("after a change: %+v, %v", first, err)
		}
		key := appendNameKey(nil, spaceHead, "a")
		stored, closer, err := s.committed().Get(key)
		if err != nil {
			t.Fatal(err)
		}
		stored = bytes.Clone(stored)
		if err := errors.Join(closer.Close(), s.committed().Delete(key, pebble.NoSync)); err != nil {
			t.Fatal(err)
		}
		again, err := s.Head(t.Context(), "a")
		if diff := cmp.Diff(first, again); diff != "" || err != nil {
			t.Errorf("without a change: %v (-first +again):\n%s", err, diff)
		}
		if err := s.committed().Set(key, stored, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMissingHead begins a log after a look-up of its head: it is not looked up again.
func TestMissingHead(t *testing.T) {
	s, err := open(smallDisk(), "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if h, err := s.Head(t.Context(), "a"); !errors.Is(err, replay.ErrNotFound) {
		t.Fatalf("head %+v, %v, want none", h, err)
	}
	key := appendNameKey(nil, spaceHead, "a")
	if err := s.committed().Set(key, []byte("damaged"), pebble.NoSync); err != nil { // unread data does no harm
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), replay.Append{Log: "a", Records: [][]byte{{1}}}); err != nil {
		t.Errorf("the head was looked up again: %v", err)
	}
	if h, err := s.Head(t.Context(), "a"); err != nil || h.Last != 1 {
		t.Errorf("head %+v, %v", h, err)
	}
}
