// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"runtime/debug"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Mapping is a file mapped into memory. The operating system keeps bytes copied there, as it keeps bytes written by a
// system call: they survive the death of the process, and a sync of the file writes them to the disk.
type Mapping struct{ memory []byte }

// mappable are the file systems allowing a file to be written by system calls and through memory in turns.
var mappable = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}

// MapFile maps a file of at least size bytes. It returns nil if that cannot be done: the file is shorter, or in the
// memory of a test, or on another file system.
func MapFile(f vfs.File, size int64) *Mapping {
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return nil
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(fd), &system); err != nil || !slices.Contains(mappable, int64(system.Type)) {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Size() < size {
		return nil
	}
	memory, err := unix.Mmap(int(fd), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	return &Mapping{memory}
}

// Write copies p to a place of the file. It reports false if p does not fit, or if the system cannot provide a page of
// the file, because the disk has failed or is full. Then the caller writes p by a system call, to get the error.
func (m *Mapping) Write(p []byte, at int64) (ok bool) {
	if m == nil || at+int64(len(p)) > int64(len(m.memory)) {
		return false
	}
	// Without this, a page not provided by the system (SIGBUS) ends the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			if _, fault := cause.(interface{ Addr() uintptr }); !fault {
				panic(cause)
			}
			ok = false
		}
	}()
	copy(m.memory[at:], p)
	return true
}

// Close ends the mapping. The file keeps the bytes written.
func (m *Mapping) Close() {
	if m != nil {
		_ = unix.Munmap(m.memory)
		m.memory = nil
	}
}
