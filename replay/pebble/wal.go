// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"fmt"
	"path"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// wal decides when Pebble's write-ahead log is really synced, and takes note when it can no longer be written.
//
// Pebble knows two kinds of commit. One keeps the bytes in the process until a block is full, so that they die
// with it. The other writes them out at once and syncs, for all commits that wait at that moment together. The
// store always asks for the second one, and wal leaves the sync out unless a commit that demands it is on its
// way: such a commit raises demand before it begins and lowers it after it has returned, so that the sync which
// covers it sees demand raised. What was written is the system's then, and survives the death of the process.
//
// A file is always synced before it is closed. Pebble creates the next one only after that, and would rightly
// call a gap in any but the last one a corruption.
//
// Pebble has no answer to a write-ahead log that cannot be written, such as on a full disk: it panics with locks
// held. So wal never tells it. It remembers the error, writes nothing more, and the store fails every call from
// then on: nothing is acknowledged that is not in the file.
type wal struct {
	demand atomic.Int64
	syncs  atomic.Int64 // real ones
	failed atomic.Pointer[error]
	broken chan struct{} // closed when failed is set
}

func newWAL() *wal { return &wal{broken: make(chan struct{})} }

// err returns the error that ended the write-ahead log, nil while it is sound.
func (w *wal) err() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (w *wal) fail(err error) {
	err = fmt.Errorf("replay/pebble: the store can no longer be written: %w", err)
	if w.failed.CompareAndSwap(nil, &err) {
		close(w.broken)
	}
}

// walFS is a file system in which a wal rules over the files of the write-ahead log.
type walFS struct {
	vfs.FS
	wal *wal
}

// Unwrap implements vfs.FS.
func (fs walFS) Unwrap() vfs.FS { return fs.FS }

// Create implements vfs.FS.
func (fs walFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return fs.rule(name, f, err)
}

// ReuseForWrite implements vfs.FS. Pebble writes new logs over old ones.
func (fs walFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.rule(newname, f, err)
}

func (fs walFS) rule(name string, f vfs.File, err error) (vfs.File, error) {
	if path.Ext(name) != ".log" {
		return f, err
	}
	if err != nil {
		fs.wal.fail(err)
		f = vfs.NewMemFile(nil) // nothing will be written to it
	}
	return &walFile{File: f, wal: fs.wal}, nil
}

// writeBack is the number of bytes after which the system is asked to begin writing, so that the sync before a
// file is closed finds little to do; all commits wait for that one.
const writeBack = 1 << 20

// walFile is a file of the write-ahead log. Pebble writes and syncs it from one goroutine at a time.
type walFile struct {
	vfs.File
	wal     *wal
	written int64 // bytes
	begun   int64 // of these, those that the system was asked to write
	synced  int64 // of these, those that are on the disk
}

// Write implements vfs.File.
func (f *walFile) Write(p []byte) (int, error) {
	if f.wal.err() != nil {
		return len(p), nil
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	if err != nil {
		f.wal.fail(err)
	}
	return len(p), nil
}

// Sync implements vfs.File.
func (f *walFile) Sync() error { return f.SyncData() }

// SyncData implements vfs.File.
func (f *walFile) SyncData() error {
	if f.wal.demand.Load() > 0 {
		f.sync()
		return nil
	}
	if f.wal.err() == nil && f.written-f.begun >= writeBack {
		f.begun = f.written
		if _, err := f.SyncTo(f.written); err != nil {
			f.wal.fail(err)
		}
	}
	return nil
}

// sync makes the disk have what was written.
func (f *walFile) sync() {
	if f.wal.err() != nil {
		return
	}
	f.wal.syncs.Add(1)
	if err := f.File.SyncData(); err != nil {
		f.wal.fail(err)
		return
	}
	f.begun, f.synced = f.written, f.written
}

// Close implements vfs.File.
func (f *walFile) Close() error {
	if f.synced < f.written {
		f.sync()
	}
	if err := f.File.Close(); err != nil {
		f.wal.fail(err)
	}
	return nil
}
