// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// openJournal replays the journal in dir into the database and, unless the database is only to be read, makes it ready
// for commits. The first commit makes the file that it writes to: a file of the journal is only written once.
func (g *generation) openJournal(dir string, sizes sizes, mode openMode) error {
	j := &journal{
		disk: g.disk, dir: dir, size: sizes.segment, fill: sizes.fill, next: 1, first: 1,
		flush: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	j.idle.L = &j.mu
	found, err := j.find()
	if err != nil {
		return err
	}
	if n := len(found); n > 0 {
		last := found[n-1]
		j.next = last.number + 1
		if j.first, err = j.firstIn(last); err != nil {
			return err
		}
		if mode != openRead { // what a process has written that died is perhaps not synced
			if err := g.disk.syncSegment(found[n-1].path); err != nil {
				return err
			}
		}
	}
	for i, s := range found {
		if s.number < j.first {
			if mode != openRead {
				j.release(s.number, s.path, s.size)
			}
			continue
		}
		limit := s.size
		if i+1 < len(found) {
			limit = int64(found[i+1].header.end)
		}
		if j.end, err = g.replay(s, limit); err != nil {
			return err
		}
		if j.end < limit && i+1 < len(found) {
			return fmt.Errorf("replay/pebble: %s is damaged at byte %d; %w", s.path, j.end, errReplace)
		}
		j.ended = append(j.ended, &segment{number: s.number, path: s.path, length: s.size})
	}
	switch mode {
	case openRead:
		return nil
	case openWrite: // after a failure: without room for tables, the store would only fail again
		if err := g.db.Flush(); err != nil {
			return err
		}
		if err := g.disk.err(); err != nil {
			return err
		}
	}
	g.journal = j
	g.disk.journal.Store(j)
	if len(j.ended) > 0 {
		signal(j.flush)
	}
	go j.flushEnded(g)
	return nil
}

// firstIn returns the number of the first segment that was needed when the last one ended.
func (j *journal) firstIn(last foundSegment) (first uint64, err error) {
	first = last.header.first
	_, err = readSegment(j.disk.FS, last.path, func(r io.Reader, size int64) error {
		_, err := scanSegment(r, size, last.number, func(kind byte, payload []byte) error {
			if kind == recordFirst {
				number, _ := binary.Uvarint(payload)
				first = max(first, number)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("replay/pebble: %s cannot be read: %w", last.path, err)
	}
	return first, nil
}

// errReplace says what to do with a store that is damaged.
var errReplace = errors.New("the store is damaged, and has to be replaced by a backup")

// foundSegment is a segment that was there when the store was opened.
type foundSegment struct {
	number uint64
	path   string
	size   int64 // of the file
	header segmentHeader
}

// find returns the segments of the journal, oldest first. A last one without a record is left out: it was made right
// before a crash, and is made again.
func (j *journal) find() ([]foundSegment, error) {
	names, err := j.disk.FS.List(j.dir)
	if err != nil {
		return nil, fmt.Errorf("replay/pebble: %w", err)
	}
	var found []foundSegment
	for _, name := range names {
		number, err := strconv.ParseUint(strings.TrimSuffix(name, segmentExt), 10, 64)
		if path := j.disk.PathJoin(j.dir, name); err == nil && number > 0 && path == j.path(number) {
			found = append(found, foundSegment{number: number, path: path})
		}
	}
	slices.SortFunc(found, func(a, b foundSegment) int { return cmp.Compare(a.number, b.number) })
	for i := range found {
		s := &found[i]
		begun := false
		s.size, err = readSegment(j.disk.FS, s.path, func(r io.Reader, size int64) error {
			_, err := scanSegment(r, size, s.number, func(kind byte, payload []byte) error {
				begun = true
				return cmp.Or(s.header.parse(kind, payload), errStop)
			})
			return err
		})
		switch {
		case err != nil:
			return nil, fmt.Errorf("replay/pebble: %s cannot be read: %w", s.path, err)
		case !begun && i == len(found)-1:
			return found[:i], nil
		case !begun:
			return nil, fmt.Errorf("replay/pebble: %s is damaged at its beginning; %w", s.path, errReplace)
		case i > 0 && s.number != found[i-1].number+1:
			return nil, fmt.Errorf("replay/pebble: %s is missing; %w", j.path(found[i-1].number+1), errReplace)
		}
	}
	return found, nil
}

// parse reads the payload of the first record of a segment.
func (h *segmentHeader) parse(kind byte, payload []byte) error {
	p := numbers{rest: payload}
	version := p.next()
	h.first, h.end = p.next(), p.next()
	if kind != recordStart || p.failed {
		return errors.New("it does not begin as a file of a journal")
	}
	if version != journalVersion {
		return fmt.Errorf("it has the format %d, but this version knows only %d", version, journalVersion)
	}
	return nil
}

// replay applies the batches in the first so many bytes of a segment. It returns how many bytes have records.
func (g *generation) replay(s foundSegment, limit int64) (end int64, err error) {
	_, err = readSegment(g.disk.FS, s.path, func(r io.Reader, _ int64) (err error) {
		end, err = scanSegment(r, limit, s.number, g.apply)
		return err
	})
	if err != nil {
		err = fmt.Errorf("replay/pebble: %s cannot be replayed: %w", s.path, err)
	}
	return end, err
}

// apply applies a record of the journal. Its payload belongs to the database afterwards.
func (g *generation) apply(kind byte, payload []byte) error {
	switch kind {
	case recordStart, recordFirst:
		return nil
	case recordBatch:
		b := g.db.NewBatch()
		return errors.Join(b.SetRepr(payload), b.Commit(pebble.NoSync), b.Close())
	default:
		return fmt.Errorf("it has a record of kind %d", kind)
	}
}

// errStop ends a scan.
var errStop = errors.New("enough")

// readSegment calls read for the contents of a file, and returns their size.
func readSegment(system vfs.FS, path string, read func(r io.Reader, size int64) error) (size int64, err error) {
	f, err := system.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := read(f, info.Size()); err != nil && !errors.Is(err, errStop) {
		return 0, err
	}
	return info.Size(), nil
}

// scanSegment calls do for the records in the first size bytes of a segment, in order, until there is none that is
// whole and of this segment. It returns how many bytes they take, and the error of r or of do. The payloads belong to
// do.
func scanSegment(r io.Reader, size int64, segment uint64, do func(kind byte, payload []byte) error) (
	end int64, err error,
) {
	in := bufio.NewReaderSize(r, 256<<10)
	var head [recordHeader]byte
	seal := make([]byte, 0, recordHeader)
	for size-end >= recordHeader {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return end, notEOF(err)
		}
		n, sum, kind := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:]), head[8]
		if kind == 0 || int64(n) > size-end-recordHeader {
			return end, nil
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(in, payload); err != nil {
			return end, notEOF(err)
		}
		if sealSum(seal, crc32.Checksum(payload, castagnoli), segment, kind) != sum {
			return end, nil
		}
		if err := do(kind, payload); err != nil {
			return end, err
		}
		end += recordHeader + int64(n)
	}
	return end, nil
}

// notEOF returns nil for an end that comes too early: the record there is not whole.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
