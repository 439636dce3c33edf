// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bufio"
	"bytes"
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

	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// openJournal replays the journal in dir into the database and, unless the database is only to be read, makes it ready
// for commits. The first commit makes the file that it writes to: a file of the journal is only written once.
func (g *generation) openJournal(dir string, sizes disk.Sizes, mode openMode, found *recovery) error {
	j := &journal{
		disk: g.disk, meter: g.meter, dir: dir, size: sizes.Segment, fill: sizes.Fill, boot: found.boot,
		flush: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	j.idle.L = &j.mu
	if err := found.replay(g, j, mode); err != nil {
		return err
	}
	switch mode {
	case openRead, openRepair:
		return nil
	case openWrite: // after a failure: without room for tables, the store would only fail again
		if err := g.db.Flush(); err != nil {
			return err
		}
		if err := g.disk.Err(); err != nil {
			return err
		}
	}
	g.journal = j
	g.disk.BeforeManifest(j.syncWritten)
	if len(j.ended) > 0 {
		signal(j.flush)
	}
	go j.flushEnded(g)
	return nil
}

// ErrDamaged says that a store has lost what it acknowledged: its journal or its tables are damaged.
var ErrDamaged = errors.New("the store is damaged")

// recovery is the replay of a journal that a process has left. It judges what it cannot read:
//
// The death of a process loses nothing that was written, so only its last write may be torn, and no trailer lies behind
// it. A loss of power may take anything that was not synced, and leave parts of it in any order; trailers say what had
// been synced. All else that is no record is damage. Of a segment that has another one behind it, all was synced, and
// that one says where it ends.
type recovery struct {
	boot     uint32 // of this machine's boot id
	unsynced bool   // the system may have dropped what the process wrote
	accept   bool   // damage is skipped, up to the next trailer
	last     uint64 // number of the last segment that was found
	next     uint64 // number of the next one
	cut      bool   // what was not synced was cut off, although it may have been read
	damaged  []damage
}

// damage is what could not be read of the journal, and had been acknowledged.
type damage struct {
	segment uint64
	bytes   int64
}

// foundSegment is a segment that was there when the store was opened.
type foundSegment struct {
	number uint64
	path   string
	size   int64 // of the file
	begun  bool  // the file begins with a header
	header segmentHeader
}

// replay replays the segments that the tables do not have, and has the journal continue behind them.
func (r *recovery) replay(g *generation, j *journal, mode openMode) error {
	flushed, err := flushedIn(g.db)
	if err != nil {
		return err
	}
	found, err := j.find()
	if err != nil {
		return err
	}
	r.last = flushed
	if n := len(found); n > 0 {
		r.last = max(r.last, found[n-1].number)
	}
	r.next = r.last + 1
	needed := slices.DeleteFunc(slices.Clone(found), func(s foundSegment) bool { return s.number <= flushed })
	if needed, err = r.readHeaders(j, needed); err != nil {
		return err
	}
	first := flushed + 1
	if n := len(needed); n > 0 {
		last := &needed[n-1]
		if first, err = r.checkTables(j, last.header, flushed); err != nil {
			return err
		}
		if mode.writes() { // what a process has written that died is perhaps not synced
			if err := g.disk.SyncFile(last.path); err != nil {
				return err
			}
		}
	}
	for _, s := range found {
		if s.number < first && mode.writes() {
			j.release(s.number, s.path, s.size)
		}
	}
	j.first, j.next = first, r.next
	needed = slices.DeleteFunc(needed, func(s foundSegment) bool { return s.number < first })
	for _, s := range needed {
		for ; first < s.number; first++ {
			if !r.accept {
				return fmt.Errorf("replay/pebble: %s is missing; %w", j.path(first), ErrDamaged)
			}
			r.damaged = append(r.damaged, damage{segment: first})
		}
		first = s.number + 1
	}
	for i := range needed {
		if j.end, err = r.replaySegment(g, needed, i); err != nil {
			return err
		}
		j.ended = append(j.ended, &segment{number: needed[i].number, path: needed[i].path, length: needed[i].size})
	}
	return nil
}

// find returns the segments of the journal, oldest first.
func (j *journal) find() ([]foundSegment, error) {
	names, err := j.disk.FS.List(j.dir)
	if err != nil {
		return nil, fmt.Errorf("replay/pebble: %w", err)
	}
	var found []foundSegment
	for _, name := range names {
		number, err := strconv.ParseUint(strings.TrimSuffix(name, segmentExt), 10, 64)
		if err != nil || number == 0 || name != segmentName(number) {
			continue
		}
		s := foundSegment{number: number, path: j.path(number)}
		info, err := j.disk.FS.Stat(s.path)
		if err != nil {
			return nil, fmt.Errorf("replay/pebble: %w", err)
		}
		s.size = info.Size()
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b foundSegment) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

// readHeaders reads the headers of segments. A last one without is left out where nothing of it was acknowledged: it
// was made right before a crash, and is made again.
func (r *recovery) readHeaders(j *journal, found []foundSegment) (_ []foundSegment, err error) {
	for i := range found {
		s := &found[i]
		s.size, err = readSegment(j.disk.FS, s.path, func(in io.Reader, size int64) error {
			_, err := scanSegment(in, size, s.number, func(kind byte, payload []byte) error {
				s.begun = true
				return cmp.Or(s.header.parse(kind, payload), errStop)
			})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("replay/pebble: %s cannot be read: %w", s.path, err)
		}
		if s.begun {
			continue
		}
		damaged := i < len(found)-1
		if !damaged {
			data, err := contentsOfSegment(j.disk.FS, s.path)
			if err != nil {
				return nil, err
			}
			if damaged = r.judge(data, 0, s.number, false); !damaged {
				r.next = s.number
				return found[:i], nil
			}
		}
		if !r.accept {
			return nil, fmt.Errorf("replay/pebble: %s is damaged at its beginning; %w", s.path, ErrDamaged)
		}
	}
	return found, nil
}

// checkTables returns the number of the first segment that is needed, where the last one has this header. Tables that
// have lost a flush which the header knows of are damaged.
func (r *recovery) checkTables(j *journal, last segmentHeader, flushed uint64) (first uint64, err error) {
	switch {
	case last.first <= flushed+1:
		return flushed + 1, nil
	case !r.accept:
		return 0, fmt.Errorf("replay/pebble: the tables in %s have only what was written up to segment %d of the journal, "+
			"and had segment %d; %w", j.dir, flushed, last.first-1, ErrDamaged)
	}
	for n := flushed + 1; n < last.first; n++ {
		r.damaged = append(r.damaged, damage{segment: n})
	}
	return last.first, nil
}

// replaySegment applies the batches of one of the segments. It returns how many bytes have records.
func (r *recovery) replaySegment(g *generation, found []foundSegment, i int) (end int64, err error) {
	s := &found[i]
	data, err := contentsOfSegment(g.disk.FS, s.path)
	if err != nil {
		return 0, err
	}
	ends := i+1 < len(found) && found[i+1].number == s.number+1 && found[i+1].begun
	if ends { // the next one says where it ends
		limit := int64(min(found[i+1].header.end, uint64(len(data))))
		if limit < int64(found[i+1].header.end) && !r.accept {
			return 0, fmt.Errorf("replay/pebble: %s is damaged at byte %d; %w", s.path, limit, ErrDamaged)
		}
		data = data[:limit]
	}
	lost := int64(0)
	for {
		rest := data[end:]
		n, err := scanSegment(bytes.NewReader(rest), int64(len(rest)), s.number, g.apply)
		if err != nil {
			return 0, fmt.Errorf("replay/pebble: %s cannot be replayed: %w", s.path, err)
		}
		end += n
		if end == int64(len(data)) || !ends && !r.judge(data, end, s.number, s.number < r.last) {
			break
		}
		if !r.accept {
			return 0, fmt.Errorf("replay/pebble: %s is damaged at byte %d; %w", s.path, end, ErrDamaged)
		}
		from := end
		end = int64(len(data))
		for t := range trailersIn(data, from, s.number) {
			end = t.at
			break
		}
		lost += end - from
	}
	if lost > 0 {
		r.damaged = append(r.damaged, damage{s.number, lost})
	}
	return end, nil
}

// judge reports whether bytes of a segment that are no record are damage. Without damage, what follows them is cut off.
func (r *recovery) judge(data []byte, at int64, segment uint64, followed bool) (damaged bool) {
	for t := range trailersIn(data, at, segment) {
		if followed || t.synced > at || t.boot == r.boot && r.boot != 0 && !r.unsynced {
			return true
		}
		r.cut = true
	}
	return false
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

// apply applies a record of the journal. Its payload belongs to the database afterwards.
func (g *generation) apply(kind byte, payload []byte) error {
	switch kind {
	case recordStart, recordTrailer:
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

// contentsOfSegment returns the contents of a file.
func contentsOfSegment(system vfs.FS, path string) (data []byte, err error) {
	_, err = readSegment(system, path, func(r io.Reader, size int64) error {
		data = make([]byte, size)
		_, err := io.ReadFull(r, data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("replay/pebble: %s cannot be read: %w", path, err)
	}
	return data, nil
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
