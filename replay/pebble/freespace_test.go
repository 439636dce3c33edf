// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"log/slog"
	"path"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// TestFreeSpace has the disk become almost full. New logs are refused; existing logs continue, end, and are dropped.
func TestFreeSpace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		system := vfs.NewMem()
		free := func(mib uint64) {
			system.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mib << 20, TotalBytes: 10 << 30})
		}
		free(1000)
		var logged lines
		s, err := open(system, "/store", replay.Settings{Retention: time.Hour}, slog.New(&logged))
		if err != nil {
			t.Fatal(err)
		}
		add := func(log string, expect uint64, end bool) error {
			return s.Append(t.Context(), replay.Append{Log: log, Expect: expect, Records: [][]byte{{1}}, Durable: true,
				End: end})
		}
		if err := errors.Join(add("a", 0, false), add("b", 0, false)); err != nil {
			t.Fatal(err)
		}
		reopened := s.Reopened()
		free(255)
		time.Sleep(disk.CheckEvery)
		if err := s.Writable(); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("an almost full disk, before any write: %v, want ErrUnavailable", err)
		}
		for range 3 {
			if err := add("new", 0, false); !errors.Is(err, replay.ErrUnavailable) {
				t.Errorf("a new log: %v, want ErrUnavailable", err)
			}
		}
		if err := errors.Join(add("a", 1, false), add("a", 2, true), add("b", 1, false), s.Unavailable()); err != nil {
			t.Errorf("logs that are there: %v", err)
		}
		time.Sleep(time.Hour + time.Second)
		if _, err := s.Head(t.Context(), "a"); !errors.Is(err, replay.ErrNotFound) {
			t.Errorf("a log whose retention is over: %v, want ErrNotFound", err)
		}
		free(300) // more than is needed, but not by much
		time.Sleep(time.Minute)
		if err := add("new", 0, false); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("a new log: %v, want ErrUnavailable", err)
		}
		free(320)
		<-reopened
		if err := errors.Join(s.Writable(), add("new", 0, false)); err != nil {
			t.Errorf("a new log: %v", err)
		}
		reopened = s.Reopened()
		free(255)
		time.Sleep(disk.CheckEvery)
		if err := add("newer", 0, false); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("a new log: %v, want ErrUnavailable", err)
		}
		time.Sleep(10 * time.Minute)
		free(1000)
		if err := add("newer", 0, false); err != nil { // the store finds out by this
			t.Errorf("a new log: %v", err)
		}
		synctest.Wait()
		select {
		case <-reopened:
		default:
			t.Error("callers that were refused do not learn that there is room again")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		want := []string{
			"WARN replay: the disk is almost full; new tasks are refused",
			"WARN replay: the disk has room again; new tasks are accepted",
		}
		want = append(want, want...) // for both times
		if d := cmp.Diff(want, logged.get()); d != "" {
			t.Errorf("log (-want +got):\n%s", d)
		}
	})
}

// TestReserve has the disk, or the process, run out of something for as long as the store holds it in reserve. It goes
// on, and takes the reserve back.
func TestReserve(t *testing.T) {
	for name, test := range map[string]struct {
		cause error
		times int // until it works
	}{
		"no room":        {syscall.ENOSPC, 1},
		"over quota":     {syscall.EDQUOT, 1},
		"no descriptors": {syscall.EMFILE, 16},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				system := smallDisk()
				var left atomic.Int64 // number of times it fails
				s, err := open(watchedFS{system, func(op, name string) error {
					if (path.Ext(name) == segment.Ext || path.Base(name) == disk.ReserveName) && op == "create" && left.Add(-1) >= 0 {
						return test.cause
					}
					return nil
				}}, "/store", replay.Settings{}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // for the reserve
				for round := range 2 {
					if _, err := system.Stat("/store/" + disk.ReserveName); err != nil {
						t.Fatal(err)
					}
					left.Store(int64(test.times))
					for i := uint64(0); left.Load() > 0 && i < 1000; i++ {
						a := replay.Append{Log: string('a' + rune(round)), Expect: i, Records: [][]byte{make([]byte, 50_000)}}
						if err := s.Append(t.Context(), a); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Minute)
					if !s.reserve.Complete() {
						t.Error("the reserve is not complete")
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestOpenFull opens a store on a full disk. The store can be read, and then written when there is room.
func TestOpenFull(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var full atomic.Bool
		system := watchedFS{smallDisk(), func(op, name string) error {
			if full.Load() && (op == "create" || op == "write") {
				return syscall.ENOSPC
			}
			return nil
		}}
		full.Store(true)
		if s, err := open(system, "/new", replay.Settings{}, quiet); err == nil || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a new store: %v, %v, want the disk's error", s, err)
		}
		full.Store(false)
		s, err := open(system, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		a := replay.Append{Log: "a", Records: [][]byte{{0}, {0}}, Durable: true}
		if err := errors.Join(s.Append(t.Context(), a), s.Close()); err != nil {
			t.Fatal(err)
		}
		full.Store(true)
		if s, err = open(system, "/store", replay.Settings{}, quiet); err != nil {
			t.Fatal(err)
		}
		reopened := s.Reopened()
		checkZeros(t, s, "a", 2)
		a.Expect = 1
		if err := s.Append(t.Context(), a); !errors.Is(err, replay.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Append: %v, want the disk's error", err)
		}
		full.Store(false)
		<-reopened
		if err := s.Append(t.Context(), a); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// starvedFS is a disk renaming a file to be written over, and then without a descriptor left to open it.
type starvedFS struct {
	vfs.FS
	left *atomic.Int64 // number of times it happens
}

func (fs starvedFS) Unwrap() vfs.FS { return fs.FS }

func (fs starvedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.left.Add(-1) < 0 {
		return fs.FS.ReuseForWrite(oldname, newname, category)
	}
	return nil, errors.Join(fs.Rename(oldname, newname), syscall.EMFILE)
}

// TestReserveForReuse has the process run out of descriptors when a file of the journal is used again.
func TestReserveForReuse(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var left atomic.Int64
		s, err := open(starvedFS{smallDisk(), &left}, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		left.Store(2)
		i := uint64(0)
		for ; left.Load() > 0 && i < 1000; i++ {
			a := replay.Append{Log: "a", Expect: i, Records: [][]byte{make([]byte, 50_000)}, Durable: true}
			if err := s.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if left.Load() > 0 {
			t.Error("no file was used again")
		}
		checkZeros(t, s, "a", i)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
