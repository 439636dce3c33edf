// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// MaxRecords is more than the number of records, of all logs together, that a loss of power can take. Only the last
// segment can have unsynced records, and a segment has fewer, except for one batch with more. That batch is synced
// before its Append returns.
const MaxRecords = 1 << 20

// Config is the configuration of a journal.
type Config struct {
	Disk  *disk.Fenced // the disk of the journal; nothing is written behind its fence
	Dir   string       // of the files
	Meter *Meter       // counts the bytes and syncs of the journal
	Size  int64        // of a segment, in bytes; a larger batch has one of its own
	Fill  int64        // length of the zeros in a new file, in bytes
	Part  int          // bytes of a batch written in one round, at most
}

// Meter counts the writes of journals, one after the other.
type Meter struct {
	Written atomic.Uint64     // bytes
	Syncs   measure.Durations // of the bytes written
}

// Tables is the database whose commits a journal keeps until the tables of the database have them.
type Tables interface {
	// Flushed returns the number of the last segment held in full by the tables; 0 if there is none.
	Flushed() (number uint64, err error)

	// Flush begins to write to tables everything taken up by the database. The tables then record that they have all
	// segments up to number; 0 for no others than before. done is closed when it has ended.
	Flush(number uint64) (done <-chan struct{}, err error)

	// Apply applies a replayed batch. The batch belongs to the database afterwards.
	Apply(batch []byte) error
}

// Journal is the write-ahead log of a database. Of the commits waiting at a moment, one writes the batches of all to
// it. Then each applies its batch to the database. Its methods may be called by any number of goroutines at once, but
// for Close.
//
// Written bytes are the system's, and survive the death of the process. To survive a loss of power, a commit takes part
// in a round. A round writes and syncs for all commits waiting at the same time.
//
// The journal is a sequence of segments, one file each, numbered without gaps. A segment is synced before the next one
// begins, so a loss of power can take records only of the last one, and takes its end. An ended segment is needed until
// the tables have its records. Two rules make it sound to replay a journal over tables with some of it already:
//
//   - A manifest is written only when the journal is synced. So tables never have records lost by the journal.
//   - Segments are removed oldest first, and batches only set and delete keys. So a replay of the rest, in order, sets
//     each key to its last committed value.
//
// Recovery distinguishes damaged bytes from possibly torn bytes: by trailers, and by the header of each segment, with
// its data on the segment before it and on the tables.
type Journal struct {
	Config
	boot uint32 // of trailers

	parts sync.Mutex // held during an append of a batch in parts

	mu      sync.Mutex // guards the fields below; no file is written or synced under it, but for the end of a segment
	idle    sync.Cond  // signals the change of writing or syncing to false
	round   *round     // still open for commits to join; nil if there is none
	last    *round     // the last one begun; nil before the first
	segment *Segment   // the last one, being written; nil before the first record
	next    uint64     // number of the next segment
	end     int64      // bytes of the segment before the next one
	buf     []byte     // records of the segment not written yet
	spare   []byte     // a buffer for the next ones
	// The bytes of all records appended to the journal, and the numbers of those written and synced.
	appended, written, synced int64
	writing, syncing          bool
	begun                     int64 // of the written bytes, those the system was asked to write to the disk
	trailer                   [segment.TrailerLen]byte
	ended                     []*Segment // not flushed yet, oldest first

	files sync.Mutex // guards the fields below, and is held while files of segments are made, renamed and removed
	first uint64     // number of the first needed segment
	free  string     // path of the last segment no longer needed, to be written over; empty if there is none

	flush   chan struct{} // signals the end of segments
	stop    chan struct{} // closed when the flusher has to end
	stopped chan struct{} // closed when it has ended
}

// round is one sync for all commits in it. The first of them leads it: it waits for the end of the round before, while
// others join, then writes and syncs the batches of all of them. So each commit is woken only once.
type round struct {
	done   chan struct{} // closed when it has ended
	joined int           // commits in it; guarded by Journal.mu
}

// Append appends a batch with the given number of records of logs. When it returns, the batch is written, and synced if
// it is to be durable. Without an error, s.Applied is to be called when the database shows the batch, or has taken it
// up. The error comes from the fence of the disk.
func (j *Journal) Append(batch []byte, records int, durable bool) (s *Segment, err error) {
	durable = durable || records >= MaxRecords
	kind, sum := byte(segment.KindBatch), uint32(0)
	inParts := durable && len(batch) > j.Part
	if inParts {
		j.parts.Lock()
		defer j.parts.Unlock()
	} else {
		sum = segment.Sum(batch)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.makeRoom(len(batch), records); err != nil {
		return nil, err
	}
	if inParts {
		kind, batch = j.addParts(batch, records)
		sum = segment.Sum(batch)
		if err := j.makeRoom(len(batch), records); err != nil {
			return nil, err
		}
	}
	n := int64(segment.HeaderLen + len(batch))
	s = j.segment
	j.add(kind, batch, sum)
	s.batches++
	s.records += records
	s.applying.Add(1)
	end := j.appended
	if !durable || len(j.buf) > fullBuffer {
		j.writeTo(end, !durable && n <= mappedBatch)
	}
	if durable {
		j.sync(end)
	}
	if err := j.Disk.Err(); err != nil {
		s.applying.Done()
		return nil, err
	}
	return s, nil
}

// addParts appends a batch but for its last part, each part in a round of its own: so other commits wait for the sync
// of a part, and not of the whole. It returns the record left to be appended: the last part, or all of the batch if the
// segment has become full meanwhile. The caller holds j.parts, and j.mu; j.mu is released meanwhile.
func (j *Journal) addParts(batch []byte, records int) (kind byte, left []byte) {
	s := j.segment
	var payload []byte
	for at := 0; j.segment == s && !s.full && j.Disk.Err() == nil; at += j.Part {
		part := segment.Part{Offset: uint32(at), Bytes: batch[at:min(at+j.Part, len(batch))]}
		payload = part.Append(payload[:0])
		if at+j.Part >= len(batch) {
			if !j.fits(len(payload), records) {
				break
			}
			return segment.KindLast, payload
		}
		j.add(segment.KindPart, payload, segment.Sum(payload))
		j.sync(j.appended)
	}
	return segment.KindBatch, batch
}

// makeRoom begins a new segment if this one does not take a payload of n bytes. The caller holds j.mu; it may be
// released meanwhile, but not if the segment takes the payload.
func (j *Journal) makeRoom(n, records int) error {
	for !j.fits(n, records) {
		if j.segment != nil {
			j.segment.full = true
		}
		if err := j.rotate(); err != nil {
			return err
		}
	}
	return nil
}

// fits returns whether the segment takes a record with a payload of n bytes. The caller holds j.mu.
func (j *Journal) fits(n, records int) bool {
	s := j.segment
	end := int64(n + 2*segment.HeaderLen + segment.TrailerLen)
	return s != nil && !s.full && (s.batches == 0 || s.length+end <= j.Size && s.records+records < MaxRecords)
}

// add appends a record to the segment's, to be written by writeTo. The caller holds j.mu.
func (j *Journal) add(kind byte, payload []byte, sum uint32) {
	n := int64(segment.HeaderLen + len(payload))
	j.buf = segment.Append(j.buf, j.segment.number, kind, payload, sum)
	j.segment.length += n
	j.appended += n
}

const (
	// fullBuffer is the size of a buffer to be written before its sync, and keptBuffer the greatest one of a buffer kept
	// for the next records: while a full one is written, large records may fill the other one several times.
	fullBuffer = 1 << 20
	keptBuffer = 4 << 20

	// writeBack is a number of bytes. After so many, the system is asked to begin writing. So the sync at the end of a
	// segment finds little to do: all commits wait for this sync.
	writeBack = 1 << 20
)

// mappedBatch is the greatest size, in bytes, of a record written through the mapping. The first write to a page is a
// fault, and costs more than a system call: it pays only if several records fit into a page.
const mappedBatch = 1 << 10

// writeTo writes the bytes appended before end, unless the segment has ended: through its mapping if inMemory says so.
// Before a sync, a system call costs less, since the first write to a page after each sync is a page fault. The caller
// holds j.mu; it is released meanwhile.
func (j *Journal) writeTo(end int64, inMemory bool) {
	for j.segment != nil && j.written < end && j.Disk.Err() == nil {
		if j.writing {
			j.idle.Wait()
			continue
		}
		j.write(inMemory)
	}
}

// write writes the appended bytes, and a trailer. The caller holds j.mu; it is released meanwhile. Nothing is being
// written at the call.
func (j *Journal) write(inMemory bool) {
	j.writing = true
	j.addTrailer()
	s, length, buf, appended := j.segment, j.segment.length, j.buf, j.appended
	begin := appended-j.begun >= writeBack
	j.buf = j.spare[:0]
	j.mu.Unlock()
	var err error
	if at := length - int64(len(buf)); !inMemory || !s.mapping.Write(buf, at) {
		err = j.Disk.WriteAt(s.file, buf, at)
	}
	if err == nil {
		j.Meter.Written.Add(uint64(len(buf)))
	}
	if err == nil && begin {
		if _, err := s.file.SyncTo(length); err != nil {
			j.Disk.FailToSync(err)
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

// sync makes the disk have the bytes appended before end. The caller holds j.mu; it is released meanwhile.
func (j *Journal) sync(end int64) {
	for j.synced < end && j.Disk.Err() == nil {
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

// leadRound does a round. The caller holds j.mu; it is released meanwhile.
func (j *Journal) leadRound() {
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
	if j.segment == nil || j.synced == j.written || j.Disk.Err() != nil { // the segment has ended meanwhile
		return
	}
	j.syncing = true
	file, written := j.segment.file, j.written
	j.mu.Unlock()
	begun := time.Now()
	err := file.SyncData()
	j.Meter.Syncs.Add(time.Since(begun))
	j.mu.Lock()
	if err != nil {
		j.Disk.FailToSync(err)
	} else {
		j.synced = written
	}
	j.syncing = false
	j.idle.Broadcast()
}

// noteSynced writes a trailer, with the synced length, unless the next write is about to do so. The caller holds j.mu;
// it is released meanwhile.
func (j *Journal) noteSynced() {
	if j.segment != nil && len(j.buf) == 0 && !j.writing && j.Disk.Err() == nil {
		j.write(false)
	}
}

// SyncWritten makes the disk have all written bytes.
func (j *Journal) SyncWritten() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sync(j.written)
}

// gatherYields is the greatest number of times a round lets other goroutines run first.
const gatherYields = 8

// gather lets goroutines about to commit do so first, as long as there are any, so they join the round. If no other
// goroutine has anything to do, it costs next to nothing. The caller holds j.mu; it is released meanwhile.
func (j *Journal) gather() {
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

// Close syncs the journal and closes its files. It begins one more segment, to record the end of the last one. No
// commit is under way, and none follows.
func (j *Journal) Close() {
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
	if j.Disk.Err() != nil {
		return
	}
	if j.beginSegment(0); j.segment != nil {
		j.write(false)
		j.endSegment()
	}
}

// Rotate ends the segment and begins the next one, as if the segment were full.
func (j *Journal) Rotate() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for next := j.next; j.next == next; {
		if err := j.rotate(); err != nil {
			return err
		}
	}
	j.write(false)
	return j.Disk.Err()
}

// Position returns the number of the segment being written, 0 if there is none, and its length in bytes.
func (j *Journal) Position() (number uint64, length int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.segment == nil {
		return 0, 0
	}
	return j.segment.number, j.segment.length
}

// Needed returns the number of the first segment not held in full by the tables.
func (j *Journal) Needed() uint64 {
	j.files.Lock()
	defer j.files.Unlock()
	return j.first
}
