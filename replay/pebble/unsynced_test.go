// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"path"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// TestUnsynced has a disk fail to sync the journal, and the process end before a sync. The system has dropped the
// writes by then, although the machine was not started again: its numbers are not used again.
func TestUnsynced(t *testing.T) {
	for name, test := range map[string]struct {
		fails  func(op, name string) bool // the operations beginning to fail
		closes bool                       // the process closes the store
	}{
		"the process dies": {func(op, name string) bool { return op == "sync" && path.Ext(name) == segment.Ext }, false},
		"the store is closed": {func(op, name string) bool {
			return path.Base(name) == probeName || op == "sync" && path.Ext(name) == segment.Ext
		}, true},
		"something else failed first": {func(op, name string) bool {
			return op == "write" && path.Ext(name) == segment.Ext || op == "sync" && path.Ext(name) == segment.Ext
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				disk := crashableDisk()
				setBoot(t, disk, "one")
				var broken atomic.Bool
				s, err := open(watchedFS{disk, func(op, name string) error {
					if broken.Load() && test.fails(op, name) {
						return syscall.EIO
					}
					return nil
				}}, "/store", replay.Settings{}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				appendRecords(t, s, "a", true, "a1", "a2")
				appendRecords(t, s, "a", false, "a3")
				if got, err := after(t, s, "a", 2); err != nil || len(got) != 1 {
					t.Fatalf("before the failure: %q, %v", got, err)
				}
				broken.Store(true)
				err = s.Append(t.Context(), replay.Append{Log: "b", Records: [][]byte{{1}}, Durable: true})
				if !errors.Is(err, replay.ErrUnavailable) {
					t.Errorf("Append: %v, want ErrUnavailable", err)
				}
				synctest.Wait() // for the database to be opened for reading
				if test.closes {
					if err := s.Close(); !errors.Is(err, syscall.EIO) {
						t.Errorf("Close: %v, want the disk's error", err)
					}
				}
				dropped := crash(disk, vfs.CrashCloneCfg{})
				if err := s.Close(); !errors.Is(err, syscall.EIO) {
					t.Errorf("Close: %v, want the disk's error", err)
				}

				setBoot(t, dropped, "one")
				for opening, lost := range []uint64{maxLost, 0} {
					if s, err = open(dropped, "/store", replay.Settings{}, quiet); err != nil {
						t.Fatal(err)
					}
					h, err := s.Head(t.Context(), "a")
					if err != nil || h.Lost != lost {
						t.Errorf("opening %d: head %+v, %v, want %d lost", opening+1, h, err, lost)
					}
					appendRecords(t, s, "a", true, "x")
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
