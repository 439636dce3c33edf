// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// journal is the write-ahead log of a generation. Pebble's own is off: it hands each commit to a goroutine. Here, one
// of the commits that wait at a moment writes the batches of all of them to the journal. Then each applies its batch
// to Pebble's memtable, or leaves it to the backlog.
//
// What is written is the system's, and survives the death of the process. A commit that is to survive a loss of power
// takes part in a round, which writes and syncs for all commits that wait at the same time.
//
// The journal is a sequence of segments, one file each, numbered without gaps. A segment is synced before the next one
// begins, so only the last one can have records that a loss of power takes, and what it takes is the end of it. A
// segment that has ended is needed until Pebble has flushed to tables what is in it. Two rules make it sound to replay
// a journal over tables that have some of it already:
//
//   - A manifest is written only when the journal is synced. So tables never have what the journal has lost.
//   - Segments are removed oldest first, and batches only set and delete keys. So a replay of the rest, in order, sets
//     each key to what was committed last.
//
// What is damaged is told from what may be torn by trailers, and by what each segment says of the one before it and of
// the tables (see judge).
type journal struct {
	disk  *disk.Fenced
	meter *meter
	dir   string
	boot  uint32 // of trailers
	size  int64  // of a segment, in bytes; a batch that is larger has one of its own
	fill  int64  // zeros that a new file is filled with, in bytes

	mu      sync.Mutex // guards what follows; no file is written or synced under it, but for the end of a segment
	idle    sync.Cond  // signals that writing or syncing has become false
	round   *round     // the one that commits can still join; nil if there is none
	last    *round     // the one that began last; nil before the first
	segment *segment   // the last one, which is being written; nil before the first record
	next    uint64     // number of the next segment
	end     int64      // bytes of the segment before the next one
	buf     []byte     // records of the segment that are not written yet
	spare   []byte     // a buffer for the next ones
	// The bytes of all records that were appended to the journal, and how many of these are written and synced.
	appended, written, synced int64
	writing, syncing          bool
	begun                     int64 // of what is written, what the system was asked to write to the disk
	trailer                   [trailerLen]byte
	ended                     []*segment // that are not flushed yet, oldest first

	files sync.Mutex // guards what follows, and is held while files of segments are made, renamed and removed
	first uint64     // number of the first segment that is needed
	free  string     // path of the last segment that is not needed any more, to be written over; empty if there is none

	flush   chan struct{} // says that segments have ended
	stop    chan struct{} // closed when the flusher has to end
	stopped chan struct{} // closed when it has ended
}

// round is one sync for all commits that have joined it. The first of them leads it: it waits for the end of the round
// before, while others join, then writes and syncs what all of them have appended. So each commit is woken only once.
type round struct {
	done   chan struct{} // closed when it has ended
	joined int           // commits that are in it; guarded by journal.mu
}

// A record of the journal has a length, a checksum and a kind before its payload. The checksum is one of the payload,
// the number of the segment, and the kind: what a file has of its life as another segment is never taken for records
// of this one.
const (
	recordHeader = 4 + 4 + 1

	recordStart   = 1 // the first record of each segment, see segmentHeader
	recordBatch   = 2 // a batch of Pebble's
	recordTrailer = 3 // the last record of each write, see trailer
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealSum makes the checksum of a payload that of a record. It writes to the room behind b.
func sealSum(b []byte, sum uint32, segment uint64, kind byte) uint32 {
	seal := append(binary.LittleEndian.AppendUint64(b, segment), kind)
	return crc32.Update(sum, castagnoli, seal[len(b):])
}

// appendRecord appends a record to b; sum is the checksum of the payload alone.
func appendRecord(b []byte, segment uint64, kind byte, payload []byte, sum uint32) []byte {
	b = slices.Grow(b, recordHeader+len(payload))
	sum = sealSum(b, sum, segment, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = append(b, kind)
	return append(b, payload...)
}

// append appends a batch that has so many records of logs. When it returns, the batch is written, and synced if it is
// to be durable. Without an error, s.applying.Done is to be called when the batch is in Pebble's memtable or in the
// backlog.
func (j *journal) append(batch []byte, records int, durable bool) (s *segment, err error) {
	sum := crc32.Checksum(batch, castagnoli)
	n := int64(recordHeader + len(batch))
	j.mu.Lock()
	defer j.mu.Unlock()
	for !j.fits(n, records) {
		if err := j.rotate(); err != nil {
			return nil, err
		}
	}
	s = j.segment
	j.add(recordBatch, batch, sum)
	s.batches++
	s.records += records
	s.applying.Add(1)
	end := j.appended
	if !durable || len(j.buf) > keptBuffer {
		j.writeTo(end, !durable && n <= smallBatch)
	}
	if durable {
		j.sync(end)
	}
	if err := j.disk.Err(); err != nil {
		s.applying.Done()
		return nil, err
	}
	return s, nil
}

// fits returns whether the segment takes a record of n bytes. The caller holds j.mu.
func (j *journal) fits(n int64, records int) bool {
	s := j.segment
	return s != nil && (s.batches == 0 || s.length+n+recordHeader+trailerLen <= j.size && s.records+records < maxLost)
}

// add appends a record to the segment's, to be written by writeTo. The caller holds j.mu.
func (j *journal) add(kind byte, payload []byte, sum uint32) {
	n := int64(recordHeader + len(payload))
	j.buf = appendRecord(j.buf, j.segment.number, kind, payload, sum)
	j.segment.length += n
	j.appended += n
}

const (
	// keptBuffer is the greatest size of a buffer that is kept for the next records.
	keptBuffer = 1 << 20

	// writeBack is the number of bytes after which the system is asked to begin writing, so that the sync at the end of
	// a segment finds little to do: all commits wait for that one.
	writeBack = 1 << 20
)

// smallBatch is the greatest size, in bytes, of a batch that is written through the mapping and postponed. For a larger
// one, a single system call costs less than the faults of its pages, and applying it costs less than one more copy.
const smallBatch = 4 << 10

// writeTo writes what was appended before end, unless the segment has ended: through its mapping if inMemory says so.
// Before a sync, a system call costs less, since the first write to a page after each sync is a page fault. The caller
// holds j.mu, which is released meanwhile.
func (j *journal) writeTo(end int64, inMemory bool) {
	for j.segment != nil && j.written < end && j.disk.Err() == nil {
		if j.writing {
			j.idle.Wait()
			continue
		}
		j.write(inMemory)
	}
}

// write writes what was appended, and a trailer. The caller holds j.mu, which is released meanwhile, and nothing is
// being written.
func (j *journal) write(inMemory bool) {
	j.writing = true
	j.addTrailer()
	s, length, buf, appended := j.segment, j.segment.length, j.buf, j.appended
	begin := appended-j.begun >= writeBack
	j.buf = j.spare[:0]
	j.mu.Unlock()
	var err error
	if at := length - int64(len(buf)); !inMemory || !s.mapping.write(buf, at) {
		err = j.disk.WriteAt(s.file, buf, at)
	}
	if err == nil {
		j.meter.written.Add(uint64(len(buf)))
	}
	if err == nil && begin {
		if _, err := s.file.SyncTo(length); err != nil {
			j.disk.FailToSync(err)
		}
	}
	j.mu.Lock()
	if j.spare = buf; cap(buf) > keptBuffer {
		j.spare = nil
	}
	if begin {
		j.begun = appended
	}
	j.written = appended
	j.writing = false
	j.idle.Broadcast()
}

// sync makes the disk have what was appended before end. The caller holds j.mu, which is released meanwhile.
func (j *journal) sync(end int64) {
	for j.synced < end && j.disk.Err() == nil {
		r := j.round
		if r == nil {
			j.leadRound()
			j.noteSynced()
			continue
		}
		r.joined++
		j.mu.Unlock()
		<-r.done
		j.mu.Lock()
	}
}

// leadRound does a round. The caller holds j.mu, which is released meanwhile.
func (j *journal) leadRound() {
	r, before := &round{done: make(chan struct{}), joined: 1}, j.last
	defer close(r.done)
	j.round, j.last = r, r
	if before != nil {
		j.mu.Unlock()
		<-before.done
		j.mu.Lock()
	}
	if r.joined > 1 || before != nil && before.joined > 1 { // else to let others run costs more than it brings
		j.gather()
	}
	j.round = nil
	j.writeTo(j.appended, false)
	if j.segment == nil || j.synced == j.written || j.disk.Err() != nil { // the segment has ended meanwhile
		return
	}
	j.syncing = true
	file, written := j.segment.file, j.written
	j.mu.Unlock()
	begun := time.Now()
	err := file.SyncData()
	j.meter.syncs.Add(time.Since(begun))
	j.mu.Lock()
	if err != nil {
		j.disk.FailToSync(err)
	} else {
		j.synced = written
	}
	j.syncing = false
	j.idle.Broadcast()
}

// noteSynced writes a trailer, which says what is synced, unless the next write is about to do so. The caller holds
// j.mu, which is released meanwhile.
func (j *journal) noteSynced() {
	if j.segment != nil && len(j.buf) == 0 && !j.writing && j.disk.Err() == nil {
		j.write(false)
	}
}

// syncWritten makes the disk have all that is written.
func (j *journal) syncWritten() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sync(j.written)
}

// gatherYields is how often a round lets other goroutines run first, at most.
const gatherYields = 8

// gather lets the goroutines that are about to commit do so first, as long as there are any, so that they join the
// round. Where no other goroutine has anything to do, it costs next to nothing. The caller holds j.mu, which is
// released meanwhile.
func (j *journal) gather() {
	for last, n := j.appended, 0; n < gatherYields; n++ {
		j.mu.Unlock()
		runtime.Gosched()
		j.mu.Lock()
		if j.appended == last {
			return
		}
		last = j.appended
	}
}

// close syncs the journal and closes its files. It begins one more segment, which says where the last one ends. No
// commit is under way, and none follows.
func (j *journal) close() {
	close(j.stop)
	<-j.stopped
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.writing || j.syncing { // for a manifest
		j.idle.Wait()
	}
	if j.segment == nil {
		return
	}
	j.endSegment()
	if j.disk.Err() != nil {
		return
	}
	if j.beginSegment(0); j.segment != nil {
		j.write(false)
		j.endSegment()
	}
}

// commit carries b out, which has so many records of logs, together with the batches of other commits. When it returns
// nil, b is written to the journal, synced if it is to be durable, and visible in the database (see settled).
func (g *generation) commit(b *pebble.Batch, records int, durable bool) error {
	s, err := g.journal.append(b.Repr(), records, durable || records >= maxLost)
	if err != nil {
		return err
	}
	if records > 0 && !durable && b.Len() <= smallBatch {
		g.postpone(b)
	} else {
		g.drainBacklog()
		if err := b.Commit(pebble.NoSync); err != nil {
			g.notApplied(err)
		}
	}
	s.applying.Done()
	return g.disk.Err()
}
