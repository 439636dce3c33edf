// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
)

// disk is the file system as one Pebble database sees it, with a fence between the two.
//
// Pebble has no answer to a disk that fails. A write-ahead log or a manifest that cannot be written makes it panic
// with locks held or end the process; a table that cannot be written, it writes again at once, without end. So Pebble
// never learns of it: the first change of a file that fails raises the fence, and what Pebble changes from then on, it
// changes in memory. For the files on the disk, that is the death of the process at that moment: the database opened
// next finds what it would find after a crash. Above all, no further file of the write-ahead log is made on the disk
// behind one that ends within a record, which Pebble would rightly call a corruption.
//
// A database whose fence is up is of no more use. The store fails every call on it, since what it shows may not be in
// the files, and opens another one when the disk works again.
type disk struct {
	vfs.FS
	reserve *reserve
	debris  *debris
	memory  *vfs.MemFS                // what Pebble made after the fence was raised
	last    atomic.Pointer[walFile]   // the newest file of the write-ahead log
	failed  atomic.Pointer[diskError] // why the fence was raised; nil while it is down
	raised  chan struct{}             // closed when the fence is raised
	// unsynced is set when the write-ahead log could not be synced. The system may drop then what was written to it,
	// even while the machine keeps running.
	unsynced atomic.Bool
}

// diskError says why a store is unavailable.
type diskError struct{ cause error }

func (e *diskError) Error() string   { return fmt.Sprintf("%v: %v", replay.ErrUnavailable, e.cause) }
func (e *diskError) Unwrap() []error { return []error{replay.ErrUnavailable, e.cause} }

// newDisk returns the file system for one opening of the database in dir.
func newDisk(system vfs.FS, dir string, r *reserve, tables *debris) *disk {
	d := &disk{FS: system, reserve: r, debris: tables, memory: vfs.NewMem(), raised: make(chan struct{})}
	_ = d.memory.MkdirAll(dir, 0o700) // of an empty file system
	return d
}

// err returns why the fence was raised, nil while it is down.
func (d *disk) err() error {
	if err := d.failed.Load(); err != nil {
		return err
	}
	return nil
}

// fail raises the fence.
func (d *disk) fail(err error) {
	if d.failed.CompareAndSwap(nil, &diskError{err}) {
		close(d.raised)
	}
}

// failToSync raises the fence because the write-ahead log could not be synced.
func (d *disk) failToSync(err error) {
	d.unsynced.Store(true)
	d.fail(err)
}

// sync makes what was written to the write-ahead log before the call survive a loss of power.
func (d *disk) sync() {
	if f := d.last.Load(); f != nil {
		f.sync(f.written.Load())
	}
}

// try does what changes the disk, if need be with what the store keeps in reserve. It returns false when the fence is
// up: then the same has to be done in memory.
func (d *disk) try(change func() error) bool {
	if d.err() != nil {
		return false
	}
	err := change()
	for err != nil && d.reserve.release(err) {
		err = change()
	}
	if err != nil {
		d.fail(err)
	}
	return err == nil
}

// write is try for a write to a file; it does not continue a partial write. It returns the number of bytes
// that were written to the disk.
func (d *disk) write(f vfs.File, p []byte) (int, error) {
	n, err := f.Write(p)
	for err != nil && d.reserve.release(err) {
		var more int
		more, err = f.Write(p[n:])
		n += more
	}
	if err != nil {
		d.fail(err)
	}
	return n, err
}

// Unwrap implements vfs.FS.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// Create implements vfs.FS.
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	var f vfs.File
	if d.try(func() (err error) { f, err = d.FS.Create(name, category); return err }) {
		return d.fenced(name, f), nil
	}
	return d.memory.Create(name, category)
}

// ReuseForWrite implements vfs.FS. Pebble writes new files of the write-ahead log over old ones.
func (d *disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	var f vfs.File
	if d.try(func() (err error) {
		f, err = d.FS.ReuseForWrite(oldname, newname, category)
		if errors.Is(err, fs.ErrNotExist) { // a try before has renamed it, and could not open it
			f, err = d.FS.Create(newname, category)
		}
		return err
	}) {
		return d.fenced(newname, f), nil
	}
	return d.memory.Create(newname, category)
}

// Open implements vfs.FS.
func (d *disk) Open(name string, opts ...vfs.OpenOption) (f vfs.File, err error) {
	if d.err() != nil {
		if f, err = d.memory.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	f, err = d.FS.Open(name, opts...)
	for err != nil && d.reserve.release(err) {
		f, err = d.FS.Open(name, opts...)
	}
	return f, err
}

// OpenDir implements vfs.FS.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	for err != nil && d.reserve.release(err) {
		f, err = d.FS.OpenDir(name)
	}
	if err != nil {
		return nil, err
	}
	return d.fenced(name, f), nil
}

// Remove implements vfs.FS.
func (d *disk) Remove(name string) (err error) {
	if d.try(func() error {
		if err = d.FS.Remove(name); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}) {
		return err
	}
	_ = d.memory.Remove(name) // most are on the disk, and stay there
	return nil
}

// Rename implements vfs.FS.
func (d *disk) Rename(oldname, newname string) error {
	if !d.try(func() error { return d.FS.Rename(oldname, newname) }) {
		_ = d.memory.Rename(oldname, newname) // likewise
	}
	return nil
}

// Stat implements vfs.FS.
func (d *disk) Stat(name string) (vfs.FileInfo, error) {
	if d.err() != nil {
		if info, err := d.memory.Stat(name); err == nil {
			return info, nil
		}
	}
	return d.FS.Stat(name)
}

// fenced returns a file on the disk that is to be changed.
func (d *disk) fenced(name string, f vfs.File) vfs.File {
	switch path.Ext(name) {
	case ".log":
		file := &walFile{File: f, disk: d}
		file.idle.L = &file.mu
		d.last.Store(file)
		return file
	case ".sst":
		d.debris.begin(name)
		return &fencedFile{File: f, disk: d, table: name}
	}
	return &fencedFile{File: f, disk: d, manifest: strings.HasPrefix(path.Base(name), "MANIFEST-")}
}

// fencedFile is a file, or a directory, that was opened before the fence was raised. What of it is on the disk then is
// all that will be. Pebble reads none of them again while the database is open but tables, and of these it has to know:
// it writes another one, in memory.
type fencedFile struct {
	vfs.File
	disk     *disk
	table    string // its path; empty if it is none
	manifest bool
}

// change does what changes the file, unless the fence is up.
func (f *fencedFile) change(do func() error) error {
	err := f.disk.err()
	if err == nil {
		if err = do(); err != nil {
			f.disk.fail(err)
		}
	}
	if f.table != "" {
		return err
	}
	return nil
}

// Write implements vfs.File.
func (f *fencedFile) Write(p []byte) (int, error) {
	err := f.change(func() error { _, err := f.disk.write(f.File, p); return err })
	return len(p), err
}

// Sync implements vfs.File.
func (f *fencedFile) Sync() error {
	return f.change(func() error {
		err := f.File.Sync()
		if err == nil && f.manifest {
			f.disk.debris.named()
		}
		return err
	})
}

// SyncData implements vfs.File.
func (f *fencedFile) SyncData() error { return f.change(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *fencedFile) SyncTo(length int64) (full bool, err error) {
	err = f.change(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Close implements vfs.File.
func (f *fencedFile) Close() error {
	err := f.File.Close()
	f.disk.reserve.closed()
	return f.change(func() error {
		if err == nil && f.table != "" {
			f.disk.debris.finish(f.table)
		}
		return err
	})
}
