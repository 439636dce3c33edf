// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// TestUnmounted takes the directory of a store away, with a mount point in its place or without, and brings it back:
// the store tries again and again, but makes neither a directory nor a file in its place, and continues with everything
// it had.
func TestUnmounted(t *testing.T) {
	for name, mountPoint := range map[string]bool{"no directory": false, "an empty mount point": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { testUnmounted(t, mountPoint) })
		})
	}
}

func testUnmounted(t *testing.T, mountPoint bool) {
	system := vfs.NewMem()
	var broken atomic.Bool // the sync of an open file fails, as of a gone disk
	s, err := open(watchedFS{system, ofLog(func(op string) error {
		if op == "sync" && broken.Load() {
			return syscall.EIO
		}
		return nil
	})}, "/data/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	add := func(n uint64) error {
		return s.Append(t.Context(), replay.Append{Log: "a", Expect: n, Records: [][]byte{make([]byte, 10)}, Durable: true})
	}
	if err := add(0); err != nil {
		t.Fatal(err)
	}
	if err := system.Rename("/data/store", "/data/away"); err != nil {
		t.Fatal(err)
	}
	if mountPoint {
		if err := system.MkdirAll("/data/store", 0o700); err != nil {
			t.Fatal(err)
		}
	}
	broken.Store(true)
	reopened := s.Reopened()
	if err := add(1); !errors.Is(err, replay.ErrUnavailable) {
		t.Fatalf("Append without a disk: %v", err)
	}
	broken.Store(false)
	bubble.Pass(5 * retryMost)
	if names, err := system.List("/data"); err != nil || slices.Contains(names, "store") != mountPoint {
		t.Errorf("there are %q, %v", names, err)
	}
	names, err := system.List("/data/store")
	if mountPoint && (err != nil || len(names) > 0) || !mountPoint && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where the store was, there are %q, %v", names, err)
	}
	if mountPoint {
		if err := system.Remove("/data/store"); err != nil {
			t.Fatal(err)
		}
	}
	if err := system.Rename("/data/away", "/data/store"); err != nil {
		t.Fatal(err)
	}
	<-reopened
	h, err := s.Head(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := add(h.Last); err != nil || h.Last == 0 {
		t.Errorf("after it was mounted again: %v, at %d", err, h.Last)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
