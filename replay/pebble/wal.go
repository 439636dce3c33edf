// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"fmt"
	"math"
	"path"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
)

// wal decides when Pebble's write-ahead log is synced, and takes note when it can no longer be written.
//
// Pebble knows two kinds of commit. One keeps the bytes in the process until a block is full, so that they die
// with it. The other writes them out at once, together with those of all commits that wait at that moment, and
// syncs. The store always asks for the second one, but wal leaves Pebble's sync out: what is written is the
// system's, and survives the death of the process. A commit that is to survive a loss of power calls sync when
// Pebble is done with it. So nobody waits for a sync but who needs one, and writing goes on meanwhile.
//
// A file is always synced before it is closed. Pebble creates the next one only after that, and would rightly
// call a gap in any but the last one a corruption. So what the last file has is all that can be unsynced.
//
// Pebble has no answer to a write-ahead log that cannot be written, such as on a full disk: it panics with locks
// held. So wal never tells it. It remembers the error, writes nothing more, and the store fails every call from
// then on: nothing is acknowledged that is not in the file.
type wal struct {
	last   atomic.Pointer[walFile]
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
	err = fmt.Errorf("%w: %w", replay.ErrUnavailable, err)
	if w.failed.CompareAndSwap(nil, &err) {
		close(w.broken)
	}
}

// sync makes the disk have all that was written before the call.
func (w *wal) sync() {
	if f := w.last.Load(); f != nil {
		f.sync(f.written.Load())
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
	file := &walFile{File: f, wal: fs.wal}
	file.idle.L = &file.mu
	fs.wal.last.Store(file)
	return file, nil
}

// walFile is a file of the write-ahead log. Pebble writes and closes it from one goroutine at a time.
type walFile struct {
	vfs.File
	wal     *wal
	written atomic.Int64 // bytes
	begun   int64        // of these, those that the system was asked to write to the disk

	mu      sync.Mutex // guards what follows
	synced  int64      // bytes that are on the disk
	syncing bool
	idle    sync.Cond // signals that syncing has become false
}

// Write implements vfs.File.
func (f *walFile) Write(p []byte) (int, error) {
	if f.wal.err() != nil {
		return len(p), nil
	}
	n, err := f.File.Write(p)
	f.written.Add(int64(n))
	if err != nil {
		f.wal.fail(err)
	}
	return len(p), nil
}

// writeBack is the number of bytes after which the system is asked to begin writing, so that the sync before a
// file is closed finds little to do: all commits wait for that one.
const writeBack = 1 << 20

// SyncData implements vfs.File. It is the sync that is left out.
func (f *walFile) SyncData() error {
	if written := f.written.Load(); written-f.begun >= writeBack && f.wal.err() == nil {
		f.begun = written
		if _, err := f.SyncTo(written); err != nil {
			f.wal.fail(err)
		}
	}
	return nil
}

// Sync implements vfs.File.
func (f *walFile) Sync() error { return f.SyncData() }

// Close implements vfs.File.
func (f *walFile) Close() error {
	f.sync(f.written.Load())
	f.mu.Lock()
	for f.syncing {
		f.idle.Wait()
	}
	f.synced = math.MaxInt64 // nothing is left to be synced
	f.mu.Unlock()
	if err := f.File.Close(); err != nil {
		f.wal.fail(err)
	}
	return nil
}

// sync makes the disk have the first n bytes. Those who come while another sync is under way wait for it, and
// then one of them does the next one for all.
func (f *walFile) sync(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.synced < n && f.wal.err() == nil {
		if f.syncing {
			f.idle.Wait()
			continue
		}
		f.syncing = true
		written := f.written.Load()
		f.mu.Unlock()
		if err := f.File.SyncData(); err != nil {
			f.wal.fail(err)
		}
		f.mu.Lock()
		f.synced = max(f.synced, written)
		f.syncing = false
		f.idle.Broadcast()
	}
}
