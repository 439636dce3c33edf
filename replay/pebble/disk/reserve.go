// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Reserve is kept by the store for the moment when there is no more to be had. It has file descriptors, so that callers
// taking all those of the process cannot keep the store from writing. And it has a file with no use but to take up
// room, so that the store can finish its work on a full disk.
type Reserve struct {
	system vfs.FS
	name   string        // of the file
	size   int64         // of the file; 0 if the file system cannot set room aside
	Used   chan struct{} // signals a release

	mu          sync.Mutex
	descriptors []*os.File
	file        bool         // it is there
	missing     atomic.Int32 // released descriptors; changed under mu
}

// ReserveName is the name of the reserve's file. Pebble has no such file.
const ReserveName = "RESERVE"

const reserveDescriptors = 16

// NewReserve returns the reserve of a store in dir, with a file of a size in bytes; 0 for no file. Restore makes the
// file.
func NewReserve(system vfs.FS, dir string, size int64) *Reserve {
	r := &Reserve{system: system, name: system.PathJoin(dir, ReserveName), size: size, Used: make(chan struct{}, 1)}
	_, err := system.Stat(r.name)
	r.file = err == nil
	r.missing.Store(reserveDescriptors)
	r.closed()
	return r
}

// isStarved returns whether there are no file descriptors left.
func isStarved(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsFull returns whether there is no room left on the disk.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Release gives up some of the reserve. It returns true if the change failed with err has to be tried again now.
func (r *Reserve) Release(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	released := false
	switch {
	case isStarved(err):
		if last := len(r.descriptors) - 1; last >= 0 {
			_ = r.descriptors[last].Close()
			r.descriptors = r.descriptors[:last]
			r.missing.Add(1)
			released = true
		}
	case IsFull(err):
		released = r.file && r.system.Remove(r.name) == nil
		r.file = false
	}
	if released {
		select {
		case r.Used <- struct{}{}:
		default:
		}
	}
	return released
}

// closed takes released descriptors back. It is called when a file was closed, since others are waiting for
// descriptors.
func (r *Reserve) closed() {
	if r.missing.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.missing.Load() > 0 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		r.descriptors = append(r.descriptors, f)
		r.missing.Add(-1)
	}
}

// Complete returns whether nothing is missing.
func (r *Reserve) Complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing.Load() == 0 && (r.file || r.size == 0)
}

// Restore takes back the released descriptors and file. It returns nil when all of it is there.
func (r *Reserve) Restore() error {
	r.closed()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing.Load() > 0 {
		return syscall.EMFILE
	}
	if r.file || r.size == 0 {
		return nil
	}
	if usage, err := r.system.GetDiskUsage(r.system.PathDir(r.name)); err == nil && usage.AvailBytes < 2*uint64(r.size) {
		return syscall.ENOSPC // it would be released at once
	}
	f, err := r.system.Create(r.name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	err = f.Preallocate(0, r.size)
	if errors.Is(err, errors.ErrUnsupported) {
		r.size, err = 0, nil
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil || r.size == 0 {
		return errors.Join(err, r.system.Remove(r.name))
	}
	r.file = true
	return nil
}

// Close gives the descriptors back. The file stays for the next opening.
func (r *Reserve) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.descriptors {
		_ = f.Close()
	}
	r.descriptors = nil
}
