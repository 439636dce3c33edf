// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// segment is a file of the journal.
type segment struct {
	number   uint64
	path     string
	file     vfs.File // nil when it has ended
	mapping  *mapping // of file; nil where there is none
	length   int64    // bytes of its records
	batches  int
	records  int            // records of logs that are in them
	applying sync.WaitGroup // commits that are in it, and neither in Pebble's memtable nor in the backlog yet
}

// segmentHeader is the payload of the first record of a segment.
type segmentHeader struct {
	// first is the number of the first segment that was needed when this one began. The tables have had those before it
	// since then, and say so (flushedKey).
	first uint64
	end   uint64 // bytes of the records of the segment before; what follows them there was cut off by a crash
}

// journalVersion is the version of the journal's format. It comes first in a header.
const journalVersion = 1

func (h *segmentHeader) append(b []byte) []byte {
	b = binary.AppendUvarint(b, journalVersion)
	b = binary.AppendUvarint(b, h.first)
	return binary.AppendUvarint(b, h.end)
}

// segmentExt is the extension of the files of the journal. Pebble has no such files.
const segmentExt = ".journal"

// segmentName returns the name of a segment's file.
func segmentName(number uint64) string { return fmt.Sprintf("%012d%s", number, segmentExt) }

// path returns the path of a segment's file.
func (j *journal) path(number uint64) string { return j.disk.PathJoin(j.dir, segmentName(number)) }

// rotate ends the segment, if there is one, and begins the next one, unless it had to wait: then nothing has changed,
// but what the caller knew of the journal may. The caller holds j.mu.
func (j *journal) rotate() error {
	if err := j.disk.Err(); err != nil {
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
	if j.disk.Err() == nil {
		fill := j.fill
		if j.appended == 0 && j.next > 1 {
			fill = 0 // the process has just begun, and its first answer comes sooner
		}
		j.beginSegment(fill)
	}
	return j.disk.Err()
}

// endSegment syncs and closes the segment. The caller holds j.mu, and nothing is being written or synced.
func (j *journal) endSegment() {
	s := j.segment
	// Behind the fence no commit waits for a sync. This one shows whether the system could keep what was written
	// before.
	if j.synced < j.written && !j.disk.Unsynced() {
		if err := s.file.SyncData(); err != nil {
			j.disk.FailToSync(err)
		}
	}
	s.mapping.close()
	if err := s.file.Close(); err != nil {
		j.disk.Fail(err)
	}
	j.disk.Closed()
	j.synced = j.written
	s.file = nil
	j.segment, j.end = nil, s.length
	j.ended = append(j.ended, s)
	signal(j.flush)
}

// beginSegment makes the file of the next segment, which is filled with so many zeros if it is new. The caller holds
// j.mu, and there is no segment.
func (j *journal) beginSegment(fill int64) {
	j.files.Lock()
	defer j.files.Unlock()
	s := &segment{number: j.next, path: j.path(j.next)}
	if s.file = j.disk.MakeFile(j.free, s.path, fill); s.file == nil {
		return
	}
	j.free = ""
	if !j.disk.SyncDir(j.dir) { // before the file has a record: until then, it may have another name after a crash
		_ = s.file.Close()
		return
	}
	s.mapping = mapFile(s.file, j.size)
	j.segment = s
	j.next++
	header := segmentHeader{first: j.first, end: uint64(j.end)}
	payload := header.append(nil)
	j.add(recordStart, payload, crc32.Checksum(payload, castagnoli))
}

// flushEnded has Pebble flush what is in segments that have ended, and frees them, until the journal is closed.
func (j *journal) flushEnded(g *generation) {
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
		for _, s := range ended {
			s.applying.Wait()
		}
		g.drainBacklog()
		if len(ended) > 0 {
			if err := g.setFlushed(ended[len(ended)-1].number); err != nil {
				j.disk.Fail(err)
				return
			}
		}
		flushed, err := g.db.AsyncFlush()
		if err != nil {
			j.disk.Fail(err)
			return
		}
		<-flushed
		for _, s := range ended {
			if j.disk.Err() != nil {
				return
			}
			j.release(s.number, s.path, s.length)
		}
	}
}

// release says that a segment is not needed any more. The file of the last one is kept for the next segment: to write
// over it is faster than to write to a new one.
func (j *journal) release(number uint64, path string, size int64) {
	j.files.Lock()
	defer j.files.Unlock()
	if j.free != "" { // the older one goes first, and for sure, so that what is left has no gap after a crash
		_ = j.disk.Remove(j.free)
		j.disk.SyncDir(j.dir)
	}
	j.first, j.free = number+1, path
	if size > j.size {
		_ = j.disk.Remove(path)
		j.disk.SyncDir(j.dir)
		j.free = ""
	}
}

// flushedKey has the number of the last segment that the tables have all of. It is in no batch of the journal, since it
// speaks of tables: what they do not have of it, they have lost (see checkTables).
var flushedKey = []byte{spaceFlushed}

// setFlushed has the next flush say that the tables have all segments up to a number.
func (g *generation) setFlushed(number uint64) error {
	return g.db.Set(flushedKey, binary.AppendUvarint(nil, number), pebble.NoSync)
}

// flushedIn returns the number of the last segment that the tables say they have all of; 0 if there is none.
func flushedIn(db *pebble.DB) (number uint64, err error) {
	value, closer, err := db.Get(flushedKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, n := binary.Uvarint(value)
	if n <= 0 {
		err = errMark
	}
	return number, errors.Join(err, closer.Close())
}
