// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize"
)

// sizes are what the store takes of memory and of the disk at a time, in bytes. All of them follow from memTable, and
// that from the size of the disk, so that a flush always fits into what a small one has left.
type sizes struct {
	memTable uint64
	segment  int64  // of the journal
	fill     int64  // what a new segment is filled with; 0 where the system does not say how large the disk is
	reserve  int64  // see reserve
	least    uint64 // free space below which no new log is begun
}

// Of a disk of less than 2 GiB, a memtable is a 64th. A segment is three quarters of one, so that what is in it fits
// into one memtable, with what that takes for each key: then each segment is flushed as one.
const (
	maxMemTable  = 32 << 20
	minMemTable  = 256 << 10
	memTablePart = 64
)

func sizesFor(system vfs.FS, dir string) sizes {
	usage, err := system.GetDiskUsage(dir)
	if err != nil { // the system does not say
		return sizes{memTable: maxMemTable, segment: maxMemTable / 4 * 3}
	}
	m := min(max(usage.TotalBytes/memTablePart, minMemTable), maxMemTable)
	return sizes{memTable: m, segment: int64(m / 4 * 3), fill: int64(m / 4 * 3), reserve: int64(m), least: 8 * m}
}

// freeSpace says whether the disk has space for new logs. With less space, existing logs may still be appended to, end
// and be dropped, so that tasks that have begun can be finished.
type freeSpace struct {
	system   vfs.FS
	dir      string
	least    uint64        // bytes
	checked  atomic.Int64  // when the free space was read last; nanoseconds of Unix time
	low      atomic.Uint64 // bytes that were free when there was too little; 0 while there is enough
	changed  chan struct{} // says that there has become too little, or enough again
	reported bool          // the log says that there is too little; used by supervise alone
}

func newFreeSpace(system vfs.FS, dir string, least uint64) *freeSpace {
	return &freeSpace{system: system, dir: dir, least: least, changed: make(chan struct{}, 1)}
}

// checkEvery is how long the free space is used before it is read again.
const checkEvery = time.Second

// err returns why no new log can be begun, nil where one can.
func (r *freeSpace) err(now time.Time) error {
	if last := r.checked.Load(); now.UnixNano()-last >= int64(checkEvery) || now.UnixNano() < last {
		if r.checked.CompareAndSwap(last, now.UnixNano()) {
			r.check()
		}
	}
	if low := r.low.Load(); low > 0 {
		return &diskError{cause: fmt.Errorf(
			"%s free on the disk, and a new log needs %s", humanize.IBytes(low), humanize.IBytes(r.least))}
	}
	return nil
}

// check reads the free space. After there was too little, there must be a quarter more than needed.
func (r *freeSpace) check() {
	usage, err := r.system.GetDiskUsage(r.dir)
	least := r.least
	if r.low.Load() > 0 {
		least += least / 4
	}
	low := uint64(0)
	if err == nil && usage.AvailBytes < least {
		low = max(usage.AvailBytes, 1)
	}
	if was := r.low.Swap(low); (was > 0) != (low > 0) {
		signal(r.changed)
	}
}
