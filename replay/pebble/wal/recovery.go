// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// ErrDamaged is the error of a store with acknowledged records lost: its journal or its tables are damaged.
var ErrDamaged = errors.New("the store is damaged")

// Recovery is the replay of a journal left by a process. It judges unreadable bytes:
//
// The death of a process loses nothing written, so only its last write may be torn, and no trailer lies behind it. A
// loss of power may take anything unsynced, and leave parts of it in any order; trailers give the synced length. All
// other bytes that are no record are damage. A segment with another one behind it was synced in full, and the next one
// gives its end.
type Recovery struct {
	Boot     string // the name of the machine's start, now; empty if the system has none
	Unsynced bool   // the system may have dropped writes of the process
	Accept   bool   // damage is skipped, up to the next trailer
	Write    bool   // the journal is to be continued: files are synced, and removed if they are not needed

	// The findings of Replay.
	Last    uint64   // number of the last segment
	Cut     bool     // unsynced bytes were cut off, although they may have been read
	Damaged []Damage // if damage is accepted

	next uint64 // number of the segment after the last one
}

// Damage is an unreadable part of the journal that had been acknowledged.
type Damage struct {
	Path  string // of the file
	Bytes int64
}

// foundSegment is a segment found at the opening of the store.
type foundSegment struct {
	number uint64
	path   string
	size   int64 // of the file
	begun  bool  // the file begins with a header
	header segment.Header
}

// Replay replays the segments the tables do not have, and returns the journal continuing behind them. It takes commits
// from Start on: the first one makes the file it writes to, since a file of the journal is only written once. Damage
// not accepted is ErrDamaged.
func (r *Recovery) Replay(tables Tables, c Config) (*Journal, error) {
	j := &Journal{Config: c, boot: segment.BootSum(r.Boot),
		flush: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	j.idle.L = &j.mu
	return j, r.replay(tables, j)
}

// Start has the journal take commits. The tables are the same as in Replay.
func (j *Journal) Start(tables Tables) {
	if len(j.ended) > 0 {
		j.flushSoon()
	}
	go j.flushEnded(tables)
}

func (r *Recovery) replay(tables Tables, j *Journal) error {
	flushed, err := tables.Flushed()
	if err != nil {
		return err
	}
	found, err := j.find()
	if err != nil {
		return err
	}
	r.Last = flushed
	if n := len(found); n > 0 {
		r.Last = max(r.Last, found[n-1].number)
	}
	r.next = r.Last + 1
	needed := slices.DeleteFunc(slices.Clone(found), func(s foundSegment) bool { return s.number <= flushed })
	if needed, err = r.readHeaders(j, needed); err != nil {
		return err
	}
	first := flushed + 1
	if n := len(needed); n > 0 {
		last := &needed[n-1]
		if first, err = r.checkTables(j, &last.header, flushed); err != nil {
			return err
		}
		if r.Write { // the writes of a dead process are perhaps not synced
			if err := j.Disk.SyncFile(last.path); err != nil {
				return err
			}
		}
	}
	for _, s := range found {
		if s.number < first && r.Write {
			j.release(s.number, s.path, s.size)
		}
	}
	j.first, j.next = first, r.next
	needed = slices.DeleteFunc(needed, func(s foundSegment) bool { return s.number < first })
	for _, s := range needed {
		for ; first < s.number; first++ {
			if !r.Accept {
				return fmt.Errorf("replay/pebble: %s is missing; %w", j.path(first), ErrDamaged)
			}
			r.Damaged = append(r.Damaged, Damage{Path: j.path(first)})
		}
		first = s.number + 1
	}
	for i := range needed {
		if j.end, err = r.replaySegment(tables, j, needed, i); err != nil {
			return err
		}
		j.ended = append(j.ended, &Segment{number: needed[i].number, path: needed[i].path, length: needed[i].size})
	}
	return nil
}

// find returns the segments of the journal, oldest first.
func (j *Journal) find() ([]foundSegment, error) {
	names, err := j.Disk.FS.List(j.Dir)
	if err != nil {
		return nil, fmt.Errorf("replay/pebble: %w", err)
	}
	var found []foundSegment
	for _, name := range names {
		number := segment.Number(name)
		if number == 0 {
			continue
		}
		s := foundSegment{number: number, path: j.path(number)}
		info, err := j.Disk.FS.Stat(s.path)
		if err != nil {
			return nil, fmt.Errorf("replay/pebble: %w", err)
		}
		s.size = info.Size()
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b foundSegment) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

// readHeaders reads the headers of segments. A last one without a header is left out if nothing of it was acknowledged:
// it was made right before a crash, and is made again.
func (r *Recovery) readHeaders(j *Journal, found []foundSegment) (_ []foundSegment, err error) {
	for i := range found {
		s := &found[i]
		s.size, err = segment.Read(j.Disk.FS, s.path, func(in io.Reader, size int64) error {
			_, err := segment.Scan(in, size, s.number, func(kind byte, payload []byte) error {
				s.begun = true
				return cmp.Or(s.header.Parse(kind, payload), segment.ErrStop)
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
			data, err := segment.Contents(j.Disk.FS, s.path)
			if err != nil {
				return nil, err
			}
			if damaged = r.judge(data, 0, s.number, false); !damaged {
				r.next = s.number
				return found[:i], nil
			}
		}
		if !r.Accept {
			return nil, fmt.Errorf("replay/pebble: %s is damaged at its beginning; %w", s.path, ErrDamaged)
		}
	}
	return found, nil
}

// checkTables returns the number of the first needed segment, given the header of the last one. Tables that lack a
// flush the header knows of are damaged.
func (r *Recovery) checkTables(j *Journal, last *segment.Header, flushed uint64) (first uint64, err error) {
	switch {
	case last.First <= flushed+1:
		return flushed + 1, nil
	case !r.Accept:
		return 0, fmt.Errorf("replay/pebble: the tables in %s have only what was written up to segment %d of the journal, "+
			"and had segment %d; %w", j.Dir, flushed, last.First-1, ErrDamaged)
	}
	for n := flushed + 1; n < last.First; n++ {
		r.Damaged = append(r.Damaged, Damage{Path: j.path(n)})
	}
	return last.First, nil
}

// replaySegment applies the batches of one of the segments. It returns the number of bytes with records.
func (r *Recovery) replaySegment(tables Tables, j *Journal, found []foundSegment, i int) (end int64, err error) {
	s := &found[i]
	data, err := segment.Contents(j.Disk.FS, s.path)
	if err != nil {
		return 0, err
	}
	ends := i+1 < len(found) && found[i+1].number == s.number+1 && found[i+1].begun
	if ends { // the next one gives its end
		limit := int64(min(found[i+1].header.End, uint64(len(data))))
		if limit < int64(found[i+1].header.End) && !r.Accept {
			return 0, fmt.Errorf("replay/pebble: %s is damaged at byte %d; %w", s.path, limit, ErrDamaged)
		}
		data = data[:limit]
	}
	records := replayed{tables: tables}
	for {
		rest := data[end:]
		n, err := segment.Scan(bytes.NewReader(rest), int64(len(rest)), s.number, records.apply)
		if err != nil {
			return 0, fmt.Errorf("replay/pebble: %s cannot be replayed: %w", s.path, err)
		}
		end += n
		if end == int64(len(data)) || !ends && !r.judge(data, end, s.number, s.number < r.Last) {
			break
		}
		if !r.Accept {
			return 0, fmt.Errorf("replay/pebble: %s is damaged at byte %d; %w", s.path, end, ErrDamaged)
		}
		from := end
		end = int64(len(data))
		for t := range segment.Trailers(data, from, s.number) {
			end = t.At
			break
		}
		records.skipped(end - from)
	}
	if records.lost > 0 {
		r.Damaged = append(r.Damaged, Damage{s.path, records.lost})
	}
	return end, nil
}

// replayed are the records of a segment while it is replayed.
type replayed struct {
	tables Tables
	parts  []byte // of the batch with its last part still to come
	lost   int64  // skipped bytes, and the parts of batches with other parts there
}

// apply applies a record's batch, if the batch is whole with it.
func (r *replayed) apply(kind byte, payload []byte) error {
	switch kind {
	case segment.KindStart, segment.KindTrailer:
		return nil
	case segment.KindBatch:
		return r.tables.Apply(payload)
	case segment.KindPart, segment.KindLast:
		return r.join(kind, payload)
	}
	return fmt.Errorf("it has a record of kind %d", kind)
}

// join adds a part to those before it, and applies the batch with the last one.
func (r *replayed) join(kind byte, payload []byte) error {
	var p segment.Part
	if err := p.Parse(payload); err != nil {
		return err
	}
	if p.Offset == 0 { // parts before this one are of an unfinished batch
		r.parts = nil
	}
	if int(p.Offset) != len(r.parts) { // the part before it was skipped
		r.lost += int64(len(payload))
		return nil
	}
	r.parts = append(r.parts, p.Bytes...)
	if kind == segment.KindPart {
		return nil
	}
	batch := r.parts
	r.parts = nil // the batch is the database's
	return r.tables.Apply(batch)
}

// skipped counts bytes of skipped damage.
func (r *replayed) skipped(n int64) {
	r.parts = nil
	r.lost += n
}

// judge reports whether bytes of a segment without a record are damage. Without damage, the rest from there on is cut
// off.
func (r *Recovery) judge(data []byte, at int64, number uint64, followed bool) (damaged bool) {
	boot := segment.BootSum(r.Boot)
	for t := range segment.Trailers(data, at, number) {
		if followed || t.Synced > at || t.Boot == boot && boot != 0 && !r.Unsynced {
			return true
		}
		r.Cut = true
	}
	return false
}
