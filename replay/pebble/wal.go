// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walFile is a file of the write-ahead log. Pebble writes and closes it from one goroutine at a time.
//
// Pebble knows two kinds of commit. One keeps the bytes in the process until a block is full, so that they die
// with it. The other writes them out at once, together with those of all commits that wait at that moment, and
// syncs. The store always asks for the second one, but walFile leaves Pebble's sync out: what is written is the
// system's, and survives the death of the process. A commit that is to survive a loss of power calls disk.sync when
// Pebble is done with it. So only commits that need a sync wait for one, and writing continues meanwhile.
//
// A file is always synced before it is closed. Pebble creates the next one only after that, and would rightly
// call a gap in any but the last one a corruption. So what the last file has is all that can be unsynced.
type walFile struct {
	vfs.File
	disk    *disk
	written atomic.Int64 // bytes
	begun   int64        // of these, what the system was asked to write to the disk

	mu      sync.Mutex // guards what follows
	synced  int64      // bytes that are on the disk
	syncing bool
	idle    sync.Cond // signals that syncing has become false
}

// Write implements vfs.File.
func (f *walFile) Write(p []byte) (int, error) {
	if f.disk.err() == nil {
		n, _ := f.disk.write(f.File, p)
		f.written.Add(int64(n))
	}
	return len(p), nil
}

// writeBack is the number of bytes after which the system is asked to begin writing, so that the sync before a
// file is closed finds little to do: all commits wait for that one.
const writeBack = 1 << 20

// SyncData implements vfs.File. It is the sync that is left out.
func (f *walFile) SyncData() error {
	if written := f.written.Load(); written-f.begun >= writeBack && f.disk.err() == nil {
		f.begun = written
		if _, err := f.SyncTo(written); err != nil {
			f.disk.failToSync(err)
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
	// Behind the fence no commit waits for a sync. This one shows whether the system could keep what was written
	// before.
	if f.synced < f.written.Load() && !f.disk.unsynced.Load() {
		if err := f.File.SyncData(); err != nil {
			f.disk.failToSync(err)
		}
	}
	f.synced = math.MaxInt64 // nothing is left to be synced
	f.mu.Unlock()
	if err := f.File.Close(); err != nil {
		f.disk.fail(err)
	}
	f.disk.reserve.closed()
	return nil
}

// sync makes the disk have the first n bytes. Callers that come during another sync wait for
// it, and then one of them does the next sync for all.
func (f *walFile) sync(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.synced < n && f.disk.err() == nil {
		if f.syncing {
			f.idle.Wait()
			continue
		}
		f.syncing = true
		f.mu.Unlock()
		written := f.gather()
		if err := f.File.SyncData(); err != nil {
			f.disk.failToSync(err)
		}
		f.mu.Lock()
		f.synced = max(f.synced, written)
		f.syncing = false
		f.idle.Broadcast()
	}
}

// gatherRounds is how often a sync lets other goroutines run first, at most.
const gatherRounds = 8

// gather lets the goroutines that are about to commit do so first, as long as there are any, so that one sync is theirs
// too. Where no other goroutine has anything to do, it costs next to nothing. It returns the bytes written by then.
func (f *walFile) gather() int64 {
	for last, round := f.written.Load(), 0; round < gatherRounds; round++ {
		runtime.Gosched()
		written := f.written.Load()
		if written == last {
			break
		}
		last = written
	}
	return f.written.Load()
}
