// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// Segment is a file of the journal.
type Segment struct {
	number   uint64
	path     string
	file     vfs.File      // nil when it has ended
	mapping  *disk.Mapping // of file; nil if there is none
	length   int64         // bytes of its records
	batches  int
	records  int            // records of logs in them
	full     bool           // a batch did not fit, so no other follows
	applying sync.WaitGroup // commits in it, not yet taken up by the database
}

// Applied reports a batch of the segment as taken up by the database. It is called once for each Append.
func (s *Segment) Applied() { s.applying.Done() }

// path returns the path of a segment's file.
func (j *Journal) path(number uint64) string { return j.Disk.PathJoin(j.Dir, segment.Name(number)) }

// rotate ends the segment, if there is one, and begins the next one, unless it had to wait: then nothing has changed,
// but the caller's view of the journal may be old. The caller holds j.mu.
func (j *Journal) rotate() error {
	if err := j.Disk.Err(); err != nil {
		return err
	}
	switch {
	case j.writing || j.syncing:
		j.idle.Wait()
		return nil
	case j.written < j.appended:
		j.writeTo(j.appended, false)
		return nil
	}
	if j.segment != nil {
		j.endSegment()
	}
	if j.Disk.Err() == nil {
		fill := j.Fill
		if j.appended == 0 && j.next > 1 {
			fill = 0 // the process has just begun, and its first answer comes sooner
		}
		j.beginSegment(fill)
	}
	return j.Disk.Err()
}

// endSegment syncs and closes the segment. The caller holds j.mu, and nothing is being written or synced.
func (j *Journal) endSegment() {
	s := j.segment
	// Behind the fence no commit waits for a sync. This one shows whether the system could keep the earlier writes.
	if j.synced < j.written && !j.Disk.Unsynced() {
		if err := s.file.SyncData(); err != nil {
			j.Disk.FailToSync(err)
		}
	}
	s.mapping.Close()
	if err := s.file.Close(); err != nil {
		j.Disk.Fail(err)
	}
	j.Disk.Closed()
	j.synced = j.written
	s.file = nil
	j.segment, j.end = nil, s.length
	j.ended = append(j.ended, s)
	j.flushSoon()
}

// beginSegment makes the file of the next segment; a new one is filled with so many zeros. The caller holds j.mu, and
// there is no segment.
func (j *Journal) beginSegment(fill int64) {
	j.files.Lock()
	defer j.files.Unlock()
	s := &Segment{number: j.next, path: j.path(j.next)}
	if s.file = j.Disk.MakeFile(j.free, s.path, fill); s.file == nil {
		return
	}
	j.free = ""
	if !j.Disk.SyncDir(j.Dir) { // before the file has a record: until then, it may have another name after a crash
		_ = s.file.Close()
		return
	}
	s.mapping = disk.MapFile(s.file, j.Size)
	j.segment = s
	j.next++
	header := segment.Header{First: j.first, End: uint64(j.end)}
	payload := header.Append(nil)
	j.add(segment.KindStart, payload, segment.Sum(payload))
}

// flushSoon has the flusher look for ended segments.
func (j *Journal) flushSoon() {
	select {
	case j.flush <- struct{}{}:
	default:
	}
}

// flushEnded has the tables written for the ended segments, and frees these, until the journal is closed.
func (j *Journal) flushEnded(tables Tables) {
	defer close(j.stopped)
	for {
		select {
		case <-j.stop:
			return
		case <-j.flush:
		}
		j.mu.Lock()
		ended := j.ended
		j.ended = nil
		j.mu.Unlock()
		last := uint64(0)
		for _, s := range ended {
			s.applying.Wait()
			last = s.number
		}
		flushed, err := tables.Flush(last)
		if err != nil {
			j.Disk.Fail(err)
			return
		}
		<-flushed
		for _, s := range ended {
			if j.Disk.Err() != nil {
				return
			}
			j.release(s.number, s.path, s.length)
		}
	}
}

// release gives up a segment no longer needed. The file of the last one is kept for the next segment: writing over it
// is faster than writing to a new one.
func (j *Journal) release(number uint64, path string, size int64) {
	j.files.Lock()
	defer j.files.Unlock()
	if j.free != "" { // the older one goes first, and for sure, so that the rest has no gap after a crash
		_ = j.Disk.Remove(j.free)
		j.Disk.SyncDir(j.Dir)
	}
	j.first, j.free = number+1, path
	if size > j.Size {
		_ = j.Disk.Remove(path)
		j.Disk.SyncDir(j.Dir)
		j.free = ""
	}
}

// addTrailer appends a trailer to the segment's records. The caller holds j.mu.
func (j *Journal) addTrailer() {
	at := j.segment.length
	t := segment.Trailer{At: at, Synced: max(at-(j.appended-j.synced), 0), Boot: j.boot}
	b := t.Append(j.trailer[:0])
	j.add(segment.KindTrailer, b, segment.Sum(b))
}

// Create makes the first segment, with a number, of a journal; the tables have all segments before it.
func Create(system vfs.FS, dir string, number uint64) error {
	header := segment.Header{First: number}
	payload := header.Append(nil)
	f, err := system.Create(system.PathJoin(dir, segment.Name(number)), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(segment.Append(nil, number, segment.KindStart, payload, segment.Sum(payload)))
	return errors.Join(err, f.Sync(), f.Close())
}
