// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// memoryFile returns a file of size bytes, mappable on every machine, and the path to open it again.
func memoryFile(t *testing.T, size int64) (vfs.File, string) {
	t.Helper()
	fd, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	f, err := vfs.Default.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, path
}

// TestMapping writes a file through memory and by system calls in turns.
func TestMapping(t *testing.T) {
	const size = 64 << 10
	f, _ := memoryFile(t, size)
	if m := MapFile(f, size+1); m != nil {
		t.Error("a file that is shorter is mapped")
	}
	m := MapFile(f, size)
	if m == nil {
		t.Fatal("the file cannot be mapped")
	}
	defer m.Close()
	want := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for at := 0; at < size; at += 1000 {
		part := want[at:min(at+1000, size)]
		if at%2000 == 0 {
			if !m.Write(part, int64(at)) {
				t.Fatalf("at %d nothing is written", at)
			}
		} else if _, err := f.WriteAt(part, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, size)
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file has other bytes, %v", err)
	}
	if m.Write([]byte("more"), size-3) {
		t.Error("what does not fit is written")
	}
	if (*Mapping)(nil).Write([]byte("a"), 0) {
		t.Error("what is not mapped is written")
	}
}

// TestMappingFault writes to a place without a page of the system. The process lives.
func TestMappingFault(t *testing.T) {
	const size = 64 << 10
	f, path := memoryFile(t, size)
	m := MapFile(f, size)
	if m == nil {
		t.Fatal("the file cannot be mapped")
	}
	defer m.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if !m.Write([]byte("there"), 0) {
		t.Error("where the file has a page, nothing is written")
	}
	if m.Write(make([]byte, 8192), 0) || m.Write([]byte("gone"), size-4) {
		t.Error("where the file has no page, something is written")
	}
}
