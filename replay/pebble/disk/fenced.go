// SPDX-License-Identifier: Apache-2.0

package disk

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

// Fenced is the file system as one Pebble database sees it, with a fence between the two.
//
// Pebble has no answer to a failing disk. If a manifest cannot be written, it panics with locks held or ends the
// process; if a table cannot be written, it writes the table again at once, without end. So Pebble never learns of it:
// the first failed change of a file raises the fence, and from then on Pebble changes files in memory. For the files on
// the disk, this is the death of the process at that moment: the database opened next finds the same as after a crash.
// The journal writes nothing behind the fence.
//
// A database with its fence up is of no more use. The store fails every call on it, since the results may not be in the
// files, and opens another one when the disk works again.
type Fenced struct {
	vfs.FS
	dir      string // of the store; files elsewhere are those of a backup, and no concern of the fence
	reserve  *Reserve
	orphans  *Orphans
	memory   *vfs.MemFS             // files Pebble made after the fence was raised, or on a read-only disk
	readOnly bool                   // the disk is only read: there is a fence from the beginning, without an error
	before   atomic.Pointer[func()] // called before a manifest is written; nil for nothing
	failed   atomic.Pointer[Error]  // the reason the fence was raised; nil while it is down
	Raised   chan struct{}          // closed when the fence is raised
	// unsynced is set when the journal could not be synced. The system may then drop the bytes written to it, even while
	// the machine keeps running.
	unsynced atomic.Bool
}

// Error is the reason a store is unavailable. It is replay.ErrUnavailable, and its cause.
type Error struct{ Cause error }

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%v: %v", replay.ErrUnavailable, e.Cause) }

// Unwrap returns replay.ErrUnavailable and the cause.
func (e *Error) Unwrap() []error { return []error{replay.ErrUnavailable, e.Cause} }

// NewFenced returns the file system for one opening of the database in dir, only for reading, or for writing, too.
func NewFenced(system vfs.FS, dir string, readOnly bool, r *Reserve, tables *Orphans) *Fenced {
	d := &Fenced{
		FS: CheckedTables{system}, dir: dir, reserve: r, orphans: tables, memory: vfs.NewMem(), readOnly: readOnly,
		Raised: make(chan struct{}),
	}
	_ = d.memory.MkdirAll(dir, 0o700) // of an empty file system
	return d
}

// Err returns the reason the fence was raised, nil while it is down.
func (d *Fenced) Err() error {
	if err := d.failed.Load(); err != nil {
		return err
	}
	return nil
}

// Failure returns the reason the fence was raised. The fence is up at the call.
func (d *Fenced) Failure() *Error { return d.failed.Load() }

// Unsynced reports whether a file could not be synced: the system may drop the bytes written to it, even while the
// machine keeps running.
func (d *Fenced) Unsynced() bool { return d.unsynced.Load() }

// BeforeManifest has f called before each write of a manifest from now on.
func (d *Fenced) BeforeManifest(f func()) { d.before.Store(&f) }

// Closed reports the close of a file not opened by this file system: its descriptor can be kept in reserve.
func (d *Fenced) Closed() { d.reserve.closed() }

// fenced returns whether files are changed in memory.
func (d *Fenced) fenced() bool { return d.readOnly || d.failed.Load() != nil }

// Fail raises the fence.
func (d *Fenced) Fail(err error) {
	if d.failed.CompareAndSwap(nil, &Error{err}) {
		close(d.Raised)
	}
}

// FailToSync raises the fence because the journal could not be synced.
func (d *Fenced) FailToSync(err error) {
	d.unsynced.Store(true)
	d.Fail(err)
}

// Try makes a change of the disk, if need be with the store's reserve. It returns false when the fence is up: then the
// same has to be done in memory.
func (d *Fenced) Try(change func() error) bool {
	if d.fenced() {
		return false
	}
	err := change()
	for err != nil && d.reserve.Release(err) {
		err = change()
	}
	if err != nil {
		d.Fail(err)
	}
	return err == nil
}

// write is Try for a write to a file; it continues behind the bytes of a failed write.
func (d *Fenced) write(f vfs.File, p []byte) error {
	n, err := f.Write(p)
	for err != nil && d.reserve.Release(err) {
		var more int
		more, err = f.Write(p[n:])
		n += more
	}
	if err != nil {
		d.Fail(err)
	}
	return err
}

// WriteAt writes to a place of a file. The error comes from the fence.
func (d *Fenced) WriteAt(f vfs.File, p []byte, at int64) error {
	d.Try(func() error { _, err := f.WriteAt(p, at); return err })
	return d.Err()
}

// Unwrap implements vfs.FS.
func (d *Fenced) Unwrap() vfs.FS { return d.FS }

// elsewhere returns whether a file is not one of the store, nor a directory above it. Pebble syncs those, too.
func (d *Fenced) elsewhere(name string) bool {
	if name == d.dir || d.FS.PathDir(name) == d.dir {
		return false
	}
	for below, above := d.dir, d.FS.PathDir(d.dir); above != below; below, above = above, d.FS.PathDir(above) {
		if name == above {
			return false
		}
	}
	return true
}

// MkdirAll implements vfs.FS. The directory of the store was made before. If it is gone, as with an unmounted volume,
// another one would be in the way when it comes back.
func (d *Fenced) MkdirAll(name string, perm fs.FileMode) error {
	if d.elsewhere(name) {
		return d.FS.MkdirAll(name, perm)
	}
	_, err := d.FS.Stat(name)
	return err
}

// Create implements vfs.FS.
func (d *Fenced) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.elsewhere(name) {
		return d.FS.Create(name, category)
	}
	var f vfs.File
	if d.Try(func() (err error) { f, err = d.FS.Create(name, category); return err }) {
		return d.file(name, f), nil
	}
	return d.memory.Create(name, category)
}

// Open implements vfs.FS.
func (d *Fenced) Open(name string, opts ...vfs.OpenOption) (f vfs.File, err error) {
	if d.fenced() {
		if f, err = d.memory.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	f, err = d.FS.Open(name, opts...)
	for err != nil && d.reserve.Release(err) {
		f, err = d.FS.Open(name, opts...)
	}
	return f, err
}

// OpenDir implements vfs.FS.
func (d *Fenced) OpenDir(name string) (vfs.File, error) {
	if d.elsewhere(name) {
		return d.FS.OpenDir(name)
	}
	f, err := d.FS.OpenDir(name)
	for err != nil && d.reserve.Release(err) {
		f, err = d.FS.OpenDir(name)
	}
	if err != nil {
		return nil, err
	}
	return d.file(name, f), nil
}

// Remove implements vfs.FS.
func (d *Fenced) Remove(name string) (err error) {
	if d.elsewhere(name) {
		return d.FS.Remove(name)
	}
	if d.Try(func() error {
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
func (d *Fenced) Rename(oldname, newname string) error {
	if d.elsewhere(oldname) {
		return d.FS.Rename(oldname, newname)
	}
	if !d.Try(func() error { return d.FS.Rename(oldname, newname) }) {
		_ = d.memory.Rename(oldname, newname) // likewise
	}
	return nil
}

// Stat implements vfs.FS.
func (d *Fenced) Stat(name string) (vfs.FileInfo, error) {
	if d.fenced() {
		if info, err := d.memory.Stat(name); err == nil {
			return info, nil
		}
	}
	return d.FS.Stat(name)
}

// file returns a file on the disk, to be changed.
func (d *Fenced) file(name string, f vfs.File) vfs.File {
	if IsTable(name) {
		d.orphans.begin(name)
		return &fencedFile{File: f, disk: d, table: name, values: path.Ext(name) == valuesExt}
	}
	return &fencedFile{File: f, disk: d, manifest: strings.HasPrefix(path.Base(name), "MANIFEST-")}
}

// MakeFile makes a file of the journal, out of another one if there is an unneeded one. It returns nil when the fence
// is up.
func (d *Fenced) MakeFile(free, name string, fill int64) (f vfs.File) {
	if !d.Try(func() (err error) {
		if free != "" {
			f, err = d.FS.ReuseForWrite(free, name, vfs.WriteCategoryUnspecified)
			if !errors.Is(err, fs.ErrNotExist) { // else a try before has renamed it, and could not open it
				return err
			}
		}
		f, err = d.FS.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil && fill > 0 {
			err = d.fill(f, fill)
		}
		return err
	}) {
		return nil
	}
	return f
}

// fill writes zeros to a new file. A sync of bytes written over them takes half as long, since the file system has
// nothing to record of the file. After an error, the file is closed.
func (d *Fenced) fill(f vfs.File, size int64) error {
	_ = f.Preallocate(0, size) // not all systems can
	zeros := make([]byte, min(size, 1<<20))
	for left := size; left > 0; left -= int64(len(zeros)) {
		if _, err := f.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return nil
}

// SyncDir makes the names of files in a directory survive a loss of power. It returns false when the fence is up.
func (d *Fenced) SyncDir(dir string) bool {
	return d.Try(func() error {
		f, err := d.FS.OpenDir(dir)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// SyncFile makes a file of the journal, written by another process or generation, survive a loss of power.
func (d *Fenced) SyncFile(name string) error {
	var f vfs.File
	if !d.Try(func() (err error) {
		f, err = d.FS.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
		return err
	}) {
		return d.Err()
	}
	if err := f.SyncData(); err != nil {
		d.FailToSync(err)
	}
	if err := f.Close(); err != nil {
		d.Fail(err)
	}
	return d.Err()
}

// fencedFile is a file, or a directory, opened before the fence was raised. Nothing more of it will reach the disk.
// While the database is open, Pebble reads none of them again but tables, and of a lost table it has to know: it writes
// another one, in memory.
type fencedFile struct {
	vfs.File
	disk     *Fenced
	table    string // its path; empty if it is none
	values   bool   // the table is one of large values
	manifest bool
}

// change makes a change of the file, unless the fence is up.
func (f *fencedFile) change(do func() error) error {
	err := f.disk.Err()
	if !f.disk.fenced() {
		if err = do(); err != nil {
			f.disk.Fail(err)
		}
	}
	// Pebble panics if it cannot end a file of large values. The table that needs them is ended after it, and fails.
	if f.table != "" && !f.values {
		return err
	}
	return nil
}

// Write implements vfs.File. A manifest naming a table is written after the journal has been synced: everything in the
// table was written to the journal before.
func (f *fencedFile) Write(p []byte) (int, error) {
	if before := f.disk.before.Load(); before != nil && f.manifest {
		(*before)()
	}
	err := f.change(func() error { return f.disk.write(f.File, p) })
	return len(p), err
}

// Sync implements vfs.File.
func (f *fencedFile) Sync() error {
	return f.change(func() error {
		err := f.File.Sync()
		if err == nil && f.manifest {
			f.disk.orphans.named()
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
			f.disk.orphans.finish(f.table)
		}
		return err
	})
}
