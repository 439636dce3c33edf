// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize"
)

// Sizes are the store's shares of memory and of the disk at a time, in bytes. All of them follow from memTable, and
// memTable from the size of the disk, so a flush always fits into the rest of a small one.
type Sizes struct {
	MemTable uint64
	Segment  int64  // of the journal
	Fill     int64  // zeros in a new segment; 0 if the system does not know the size of the disk
	Part     int    // of a batch, written by one sync of the journal
	Reserve  int64  // of the file of the Reserve
	Least    uint64 // least free space for new logs
}

// Of a disk of less than 2 GiB, a memtable is a 64th. A segment is three quarters of one, so that its records fit into
// one memtable, with the memtable's overhead for each key: then each segment is flushed as one. While a large batch is
// written, other commits wait for one part of it: 256 KiB, about a millisecond on a disk writing 200 MB a second.
const (
	maxMemTable  = 32 << 20
	minMemTable  = 256 << 10
	memTablePart = 64  // of the disk
	batchPart    = 128 // of the memtable
)

// SizesFor returns the sizes for a store in dir.
func SizesFor(system vfs.FS, dir string) Sizes {
	usage, err := system.GetDiskUsage(dir)
	if err != nil { // the system does not say
		return Sizes{MemTable: maxMemTable, Segment: maxMemTable / 4 * 3, Part: maxMemTable / batchPart}
	}
	m := min(max(usage.TotalBytes/memTablePart, minMemTable), maxMemTable)
	segment := int64(m / 4 * 3)
	return Sizes{
		MemTable: m, Segment: segment, Fill: segment, Part: int(m / batchPart), Reserve: int64(m), Least: 8 * m,
	}
}

// Space reports whether the disk has space for new logs. With less space, existing logs may still be appended to, end
// and be dropped, so that begun tasks can be finished.
type Space struct {
	system  vfs.FS
	dir     string
	Least   uint64        // bytes
	checked atomic.Int64  // time of the last read of the free space; nanoseconds of Unix time
	low     atomic.Uint64 // free bytes when there was too little; 0 while there is enough
	Changed chan struct{} // signals the change to too little, or to enough again
}

// NewSpace returns the space of the disk of dir; less than least bytes is too little.
func NewSpace(system vfs.FS, dir string, least uint64) *Space {
	return &Space{system: system, dir: dir, Least: least, Changed: make(chan struct{}, 1)}
}

// CheckEvery is the time a reading of the free space is used before the next one.
const CheckEvery = time.Second

// Err returns the reason no new log can be begun, nil if one can.
func (r *Space) Err(now time.Time) error {
	if last := r.checked.Load(); now.UnixNano()-last >= int64(CheckEvery) || now.UnixNano() < last {
		if r.checked.CompareAndSwap(last, now.UnixNano()) {
			r.Check()
		}
	}
	if low := r.low.Load(); low > 0 {
		return &Error{Cause: fmt.Errorf(
			"%s free on the disk, and a new log needs %s", humanize.IBytes(low), humanize.IBytes(r.Least))}
	}
	return nil
}

// Low returns the number of free bytes when there was too little; 0 while there is enough.
func (r *Space) Low() uint64 { return r.low.Load() }

// Check reads the free space. After there was too little, there must be a quarter more than needed.
func (r *Space) Check() {
	usage, err := r.system.GetDiskUsage(r.dir)
	least := r.Least
	if r.low.Load() > 0 {
		least += least / 4
	}
	low := uint64(0)
	if err == nil && usage.AvailBytes < least {
		low = max(usage.AvailBytes, 1)
	}
	if was := r.low.Swap(low); (was > 0) != (low > 0) {
		select {
		case r.Changed <- struct{}{}:
		default:
		}
	}
}
