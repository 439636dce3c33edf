// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestOpenReadOnly reads a closed store, and changes nothing in it.
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

// TestReadKilledStart reads a store whose first opening died, at each of its changes of the disk in turn. There is no
// store yet, or an empty one.
func TestReadKilledStart(t *testing.T) {
	for at, done := int64(0), false; !done; at++ {
		disk := crashableDisk()
		var changes atomic.Int64
		s, err := open(watchedFS{disk, func(string, string) error {
			if changes.Add(1) > at {
				return syscall.EIO
			}
			return nil
		}}, "/store", replay.Settings{}, quiet)
		killed := clone(disk)
		if done = err == nil && changes.Load() <= at; s != nil {
			_ = s.Close() // the disk's error
		}
		if _, err := killed.Stat("/store"); err != nil {
			continue
		}
		s, err = openReadOnly(killed, "/store", quiet)
		if err != nil {
			if done || !strings.Contains(err.Error(), "there is no store in /store") {
				t.Errorf("after %d changes: %v", at, err)
			}
			continue
		}
		for entry, err := range s.List(t.Context(), "", "") {
			t.Errorf("after %d changes: %+v, %v", at, entry, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("after %d changes: %v", at, err)
		}
		if s, err = open(killed, "/store", replay.Settings{}, quiet); err != nil {
			t.Errorf("after %d changes, in the end: %v", at, err)
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
