// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// TestSegmentLosesItsPages cuts the file of the segment being written. The next append is written by a system call.
func TestSegmentLosesItsPages(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, replay.Settings{Sync: replay.SyncNever})
	appendRecords(t, s.Store, "a", false, "one")
	segments, err := filepath.Glob(filepath.Join(dir, "*"+segment.Ext))
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v, %v", segments, err)
	}
	if err := os.Truncate(segments[0], 0); err != nil {
		t.Fatal(err)
	}
	_, before := s.journal.Position()
	appendRecords(t, s.Store, "a", false, "two")
	written, err := os.ReadFile(segments[0])
	if err != nil || int64(len(written)) < before || !bytes.Contains(written[before:], []byte("two")) {
		t.Errorf("the file has %d bytes, %v, and no record at %d", len(written), err, before)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestIntentsLoseTheirPages cuts the file of intents. The next intent is written by a system call, and survives the
// death of the process.
func TestIntentsLoseTheirPages(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, replay.Settings{})
	appendAll(t, s.Store, []replay.Append{intent("a")})
	path := filepath.Join(dir, intentsName)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	appendAll(t, s.Store, []replay.Append{intent("b")})
	written, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(written, []byte("of b")) {
		t.Errorf("the file has %d bytes, %v, and not the intent", len(written), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// mappedFS is a disk in memory with a mappable file of intents.
type mappedFS struct {
	vfs.FS
	file *os.File // its content
}

func (fs mappedFS) OpenReadWrite(
	name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption,
) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, category, opts...)
	if err != nil || path.Base(name) != intentsName {
		return f, err
	}
	return mappedFile{f, fs.file}, fs.file.Truncate(0)
}

type mappedFile struct {
	vfs.File
	file *os.File
}

func (f mappedFile) Fd() uintptr { return f.file.Fd() }

func (f mappedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	mapped, err := f.file.Stat()
	return mappedInfo{info, mapped.Size()}, err
}

type mappedInfo struct {
	vfs.FileInfo
	size int64
}

func (i mappedInfo) Size() int64 { return i.size }

func (f mappedFile) WriteAt(p []byte, at int64) (int, error) { return f.file.WriteAt(p, at) }

// TestIntentsCrashMapped is TestIntentsCrash with intents written through memory.
func TestIntentsCrashMapped(t *testing.T) {
	crashIntents(t, func(disk *vfs.MemFS) (vfs.FS, func() *vfs.MemFS) {
		fd, err := unix.MemfdCreate("intents", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "intents")
		t.Cleanup(func() { _ = file.Close() })
		return mappedFS{disk, file}, func() *vfs.MemFS {
			left := died(disk)
			if _, err := left.Stat("/store/" + intentsName); err != nil {
				return left // it died before
			}
			intents, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
			if err != nil {
				t.Error(err)
			}
			f, err := left.OpenReadWrite("/store/"+intentsName, vfs.WriteCategoryUnspecified)
			if err == nil {
				_, err = f.WriteAt(intents, 0)
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Error(err)
			}
			return left
		}
	})
}
