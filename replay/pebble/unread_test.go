// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"path"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// unreadFS is a disk with some files that cannot be opened, nor read when open.
type unreadFS struct {
	vfs.FS
	read func(name string) error
}

func (fs unreadFS) Unwrap() vfs.FS { return fs.FS }

func (fs unreadFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := fs.read(name); err != nil {
		return nil, err
	}
	f, err := fs.FS.Open(name, opts...)
	return unreadFile{f, name, fs.read}, err
}

type unreadFile struct {
	vfs.File
	name string
	read func(name string) error
}

func (f unreadFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.read(f.name); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// TestUnread has a disk that can be written, but not read. Callers with the error ErrUnavailable are let try again
// after a while, as if it had been opened again; while nothing changes, less and less often.
func TestUnread(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		system := smallDisk()
		var broken atomic.Bool
		reads := unreadFS{system, func(name string) error {
			if broken.Load() && path.Ext(name) == ".sst" {
				return syscall.EIO
			}
			return nil
		}}
		s, err := open(reads, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(5) {
			if err := s.Append(t.Context(), replay.Append{Log: "a", Expect: i,
				Records: [][]byte{make([]byte, 100_000)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = open(reads, "/store", replay.Settings{}, quiet); err != nil { // all writes are in tables now
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), replay.Append{Log: "b"}); err != nil { // the store knows this one without reading
			t.Fatal(err)
		}
		synctest.Wait()
		broken.Store(true)
		began := time.Now()
		tries := 0
		for ; time.Since(began) < 5*time.Minute; tries++ {
			reopened := s.Reopened()
			if _, _, _, err := s.Load(t.Context(), "a"); !errors.Is(err, replay.ErrUnavailable) {
				t.Fatalf("Load: %v, want ErrUnavailable", err)
			}
			select {
			case <-reopened:
			case <-time.After(time.Minute):
				t.Fatal("callers that were refused wait for a minute")
			}
		}
		if tries < 10 || tries > 20 {
			t.Errorf("%d tries in 5 minutes, want one every 30 s at most", tries)
		}
		a := replay.Append{Log: "b", Expect: 1, Records: [][]byte{{1}}, Durable: true}
		if err := s.Append(t.Context(), a); err != nil {
			t.Errorf("what can be written: %v", err)
		}
		broken.Store(false)
		checkZeros(t, s, "a", 5)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestUnreadAtFirst has a disk that can be neither read nor written when it fails, and read a little later. Reads do
// not wait until it can be written.
func TestUnreadAtFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		system := smallDisk()
		var unread, unwritten atomic.Bool
		s, err := open(unreadFS{watchedFS{system, func(string, string) error {
			if unwritten.Load() {
				return syscall.EROFS
			}
			return nil
		}}, func(string) error {
			if unread.Load() {
				return syscall.EIO
			}
			return nil
		}}, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), replay.Append{Log: "a", Records: [][]byte{{0}}, Durable: true}); err != nil {
			t.Fatal(err)
		}
		unread.Store(true)
		unwritten.Store(true)
		if err := s.Append(t.Context(), replay.Append{Log: "b", Durable: true}); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("Append: %v, want ErrUnavailable", err)
		}
		synctest.Wait()
		if _, err := s.Head(t.Context(), "a"); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("Head: %v, want ErrUnavailable", err)
		}
		unread.Store(false)
		time.Sleep(retryMost)
		checkZeros(t, s, "a", 1)
		reopened := s.Reopened()
		unwritten.Store(false)
		<-reopened
		checkZeros(t, s, "a", 1)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
