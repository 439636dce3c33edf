// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestOpenReadOnly reads a store that was closed, and changes nothing in it.
func TestOpenReadOnly(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, replay.Settings{})
	a := replay.Append{Log: "t1", Records: [][]byte{[]byte("x")}, Metadata: []byte("{}"), DueAt: replay.Recover}
	if err := s.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReadOnly(dir, quiet); err == nil {
		t.Error("a store in use was opened")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := OpenReadOnly(dir, quiet)
		if err != nil {
			t.Fatal(err)
		}
		h, _, records, err := r.Load(t.Context(), "t1")
		if err != nil || h.Last != 1 || len(records) != 1 || h.Lost != 0 {
			t.Errorf("%+v, %d records, %v", h, len(records), err)
		}
		a.Expect = 1
		if err := r.Append(t.Context(), a); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("an append: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := OpenReadOnly(t.TempDir(), quiet); err == nil {
		t.Error("an empty directory was opened")
	}
}
