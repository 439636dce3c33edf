// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// sizeOf returns the bytes of all files in a directory.
func sizeOf(t *testing.T, disk vfs.FS, dir string) (n int64) {
	t.Helper()
	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := disk.Stat(disk.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// TestDiskShrinks bounds the size of ended logs, and continues as before. On a disk of 256 MiB, memtables, segments and
// the bound are an eighth of those of a large disk, and so are the records: there are as many logs, flushes and drops.
func TestDiskShrinks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 256 << 20, TotalBytes: 256 << 20})
		s, err := open(disk, "/store", replay.Settings{Sync: replay.SyncNever}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.NewChaCha8([32]byte{})
		record := make([]byte, 128<<10)
		write := func(name string, logs int) {
			t.Helper()
			for i := range logs {
				_, _ = rnd.Read(record) // cannot be compressed
				a := replay.Append{Log: fmt.Sprint(name, i), Records: [][]byte{record}, End: true}
				if err := s.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(time.Minute) // for Pebble: it removes files one after the other
			synctest.Wait()
		}
		write("before", 160)
		before := sizeOf(t, disk, "/store")
		s.Configure(replay.Settings{Sync: replay.SyncNever, MaxSize: 2 << 20})
		after := before
		for round := 0; before-after < 4<<20; round++ { // Pebble frees room as it compacts
			if round == 4 {
				t.Fatalf("the directory has %d bytes, and had %d before", after, before)
			}
			write(fmt.Sprintf("after %d, ", round), 160)
			after = sizeOf(t, disk, "/store")
			t.Logf("%d bytes, %d before", after, before)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDiskShrinksAtRest drops many logs, and nothing else comes: their room is given back. One in eight is kept.
func TestDiskShrinksAtRest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 256 << 20, TotalBytes: 256 << 20})
		settings := replay.Settings{Sync: replay.SyncNever, Retention: time.Hour}
		s, err := open(disk, "/store", settings, quiet)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.NewChaCha8([32]byte{})
		const logs, kept = 320, 8
		record := make([]byte, 128<<10)
		name := func(i int) string { return fmt.Sprintf("log\x00%08x", uint32(i)*2654435761) } // in no order
		for i := range logs {
			_, _ = rnd.Read(record) // cannot be compressed
			a := replay.Append{Log: name(i), Records: [][]byte{record}, End: i%kept != 0}
			if err := s.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute) // for Pebble: it removes files one after the other
		synctest.Wait()
		before := sizeOf(t, disk, "/store")
		if err := s.Close(); err != nil { // the next process has not written them
			t.Fatal(err)
		}
		if s, err = open(disk, "/store", settings, quiet); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour + 10*time.Minute)
		synctest.Wait()
		after := sizeOf(t, disk, "/store")
		// What is kept, the segment of the journal and the one to be used next, and a little for all else.
		most := logs/kept*int64(len(record)) + 2*s.sizes.Segment + 1<<20
		if t.Logf("%d KiB of %d are left", after>>10, before>>10); after > most {
			t.Errorf("the disk has %d KiB, want at most %d", after>>10, most>>10)
		}
		for i := range logs {
			_, _, records, err := s.Load(t.Context(), name(i))
			if kept := i%kept == 0; kept && (err != nil || len(records) != 1) || !kept && !errors.Is(err, replay.ErrNotFound) {
				t.Errorf("log %d has %d records, %v", i, len(records), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFaultsAtRest has the disk fail for a minute at a change while the room of dropped logs is given back, at each of
// some changes in turn: large records are written to other files meanwhile. What is kept is there afterwards.
func TestFaultsAtRest(t *testing.T) {
	const logs, kept, step = 320, 4, 23
	name := func(i int) string { return fmt.Sprintf("log\x00%08x", uint32(i)*2654435761) } // in no order
	for at, failed := int64(1), true; failed; at += step * int64(sparse) {
		bubble.Test(t, func(t *testing.T) {
			system := smallDisk()
			var changes atomic.Int64 // until one fails; 0 for none
			s, err := open(watchedFS{system, func(op, name string) error {
				if n := changes.Load(); n == 1 || n > 1 && changes.Add(-1) == 1 {
					return syscall.EIO
				}
				return nil
			}}, "/store", replay.Settings{Sync: replay.SyncNever, Retention: time.Hour}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			rnd, record := rand.NewChaCha8([32]byte{}), make([]byte, 128<<10)
			want := make(map[string][]byte)
			for i := range logs {
				_, _ = rnd.Read(record)
				a := replay.Append{Log: name(i), Records: [][]byte{record}, End: i%kept != 0}
				if err := s.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				if !a.End {
					want[a.Log] = bytes.Clone(record)
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			reopened := s.Reopened()
			changes.Store(at)
			time.Sleep(time.Hour + 10*time.Minute)
			if failed = changes.Swap(0) == 1; failed {
				<-reopened
			}
			time.Sleep(10 * time.Minute)
			for entry, err := range s.List(t.Context(), "", "") {
				if err != nil || want[entry.Log] == nil {
					t.Errorf("after %d changes: %q is kept, %v", at, entry.Log, err)
				}
			}
			for log, record := range want {
				if _, _, records, err := s.Load(t.Context(), log); err != nil || !bytes.Equal(records[0].Data, record) {
					t.Errorf("after %d changes: %q has %d records, %v", at, log, len(records), err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
