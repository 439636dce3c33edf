// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal"
)

// ErrDamaged is the error of a store with acknowledged records lost: its journal or its tables are damaged.
var ErrDamaged = wal.ErrDamaged

// Repaired is the result of Repair.
type Repaired struct {
	Bytes int64    // of the journal, unreadable
	Files []string // damaged files of the journal; each now has the extension asideExt
	Logs  []string // with missing records; they have ended, cannot be read, and are dropped after their retention
	Cut   int      // logs that have not ended, possibly without their last records
}

// asideExt is the extension of files of no more use to the store.
const asideExt = ".damaged"

// Repair makes a store with a damaged journal openable. Readable bytes are kept, and the others are lost: a batch, as a
// rule an append to one log. Of the logs hit, those appended to again can be found, since they miss records
// (Repaired.Logs). Any other log that has not ended may have been hit: the heads of all of them are marked so
// (replay.Head.Cut), and no possibly lost number is used again (replay.Head.Lost). No intent is taken up. Until Repair
// has returned, the store is as damaged as it was.
func Repair(dir string, log *slog.Logger) (*Repaired, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return repair(vfs.Default, dir, log)
}

func repair(system vfs.FS, dir string, log *slog.Logger) (done *Repaired, err error) {
	s, err := lockedStore(system, dir, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		s.reserve.Close()
		err = errors.Join(err, s.lock.Close())
	}()
	found := wal.Recovery{Boot: disk.BootID(system), Unsynced: s.wasUnsynced(), Accept: true}
	g, err := s.openDatabase(openRepair, &found)
	if err != nil {
		if pebble.IsCorruptionError(err) {
			err = fmt.Errorf("replay/pebble: the tables of %s are damaged, and cannot be repaired: %w", dir, err)
		}
		return nil, err
	}
	s.generation = g
	done = new(Repaired)
	if len(found.Damaged) > 0 {
		err = s.salvage(&found, done)
	}
	if err := errors.Join(err, g.close(), g.disk.Err()); err != nil {
		return nil, err
	}
	for _, d := range found.Damaged {
		done.Bytes += d.Bytes
		switch err := system.Rename(d.Path, d.Path+asideExt); {
		case err == nil:
			done.Files = append(done.Files, d.Path+asideExt)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return done, nil
}

// salvage makes the database as good as it can be without a journal. The last flush records this.
func (s *Store) salvage(found *wal.Recovery, done *Repaired) error {
	m, err := markIn(s.db)
	if err != nil {
		return err
	}
	if err := errors.Join(s.mendLogs(done), s.mendIndexes(), s.mendOrphans(done)); err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer b.Close()
	// A segment may have had as many records as are left out after one loss; and unsynced records may be lost, too.
	losses := m.losses + uint64(len(found.Damaged)) + 1
	if err := flushForGood(s.db, s.system, s.dir, b, losses, found.Last); err != nil {
		return err
	}
	err = s.system.Remove(s.intents.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// mendLogs ends the logs with missing records, and marks all others that have not ended. The indexes and lists have
// them after it.
func (s *Store) mendLogs(done *Repaired) error {
	now := time.Now()
	return s.scan(spaceHead, func(b *pebble.Batch, key, value []byte) error {
		log := string(key[1:])
		h, err := parseHead(value, log, 0)
		if err != nil {
			return err
		}
		whole, err := s.whole(log, &h)
		if err != nil {
			return err
		}
		h.followed = false
		var size int64
		switch {
		case !whole:
			done.Logs = append(done.Logs, log)
			deleteRange(b, log, 0, h.Last)
			endBroken(b, log, &h, now)
			return nil
		case h.Ended.IsZero():
			done.Cut++
			h.Cut = true
		default:
			if size, err = s.endedSize(&replay.Append{Log: log, Metadata: h.Metadata}, &h); err != nil {
				return err
			}
		}
		setHead(b, log, &h, h.entry, nil)
		moveLists(b, log, nil, h.Lists)
		moveTime(b, appendDueKey, 0, stampOf(h.DueAt), log, nil)
		moveTime(b, appendExpiryKey, 0, h.expires, log, binary.AppendUvarint(nil, uint64(size)))
		return nil
	})
}

// endBroken ends a log with missing records and the head h. Its entries are deleted besides.
func endBroken(b *pebble.Batch, log string, h *head, now time.Time) {
	deleteName(b, spaceSnapshot, log)
	h.Ended = cmp.Or(h.Ended, now)
	h.expires = max(h.expires, stampOf(now.Add(replay.DefaultRetention)))
	// Without a snapshot, it cannot be read.
	h.First, h.Bytes, h.entries, h.inline, h.entry, h.DueAt = h.Last+1, 0, 0, false, nil, time.Time{}
	h.Gaps, h.Lists = nil, nil
	setHead(b, log, h, nil, nil)
	size := len(h.Metadata) + 2*nameKeyLen(log) + timeKeyLen(log)
	moveTime(b, appendExpiryKey, 0, h.expires, log, binary.AppendUvarint(nil, uint64(size)))
}

// whole reports whether everything in the head of a log is there, and nothing behind it. It makes h the head after the
// entries that follow it.
func (s *Store) whole(log string, h *head) (bool, error) {
	last := h.Last
	if err := h.passEntries(s.db, log); err != nil {
		return false, err
	}
	if h.First > 1 {
		_, err := s.snapshot(log)
		if errors.Is(err, errDamaged) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	n := entryKeyLen(log)
	bounds := appendEntryKey(appendEntryKey(nil, log, 0), log, h.Last+1)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: bounds[:n], UpperBound: bounds[n:]})
	if err != nil {
		return false, err
	}
	entries, lost := uint64(0), false // lost is whether a head is
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if entries++; seqOf(it.Key()) > last {
			// The tables may have an entry with a head that is lost in the journal, which has brought an earlier one back.
			var value []byte
			value, err = it.ValueAndErr()
			lost = lost || !h.followed || !isFollowing(value)
		}
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return false, err
	}
	if lost || entries != h.entries {
		return false, nil
	}
	var r *records
	switch {
	case h.inline:
		r = readEntry(h.entry, h.Last, h.First, h.Last)
	default:
		if r, err = s.readEntries(log, h, h.First); err != nil {
			return false, err
		}
	}
	next, size, kept := h.After(h.First-1), int64(0), uint64(0)
	for r.next() && r.seq == next {
		next, size, kept = h.After(r.seq), size+int64(len(r.data)), kept+1
	}
	return kept == h.Kept() && size == h.Bytes, r.close()
}

// mendIndexes deletes the entries of the indexes and the lists for missing logs.
func (s *Store) mendIndexes() error {
	stale := func(b *pebble.Batch, key []byte, log string, has func(*head) bool) error {
		h, closer, err := storedHead(s.db, log, 0)
		if err != nil && !errors.Is(err, replay.ErrNotFound) {
			return err
		}
		if err == nil {
			if err := closer.Close(); err != nil || has(&h) {
				return err
			}
		}
		return b.Delete(key, nil)
	}
	return errors.Join(
		s.scan(spaceDue, func(b *pebble.Batch, key, _ []byte) error {
			at, log := splitDueKey(key)
			return stale(b, key, log, func(h *head) bool { return stampOf(h.DueAt) == at })
		}),
		s.scan(spaceExpiry, func(b *pebble.Batch, key, _ []byte) error {
			at, log := splitExpiryKey(key)
			return stale(b, key, log, func(h *head) bool { return h.expires == at })
		}),
		s.scan(spaceList, func(b *pebble.Batch, key, _ []byte) error {
			list := string(key[1+2 : 1+2+int(binary.BigEndian.Uint16(key[1:]))])
			at, log := splitListKey(key, len(list))
			return stale(b, key, log, func(h *head) bool {
				return slices.ContainsFunc(h.Lists, func(l replay.Listing) bool { return l.List == list && stampOf(l.At) == at })
			})
		}))
}

// mendOrphans deletes the entries of logs without a head. Otherwise later logs of the same names would find them. A log
// with entries that follow a head has lost it, and ends.
func (s *Store) mendOrphans(done *Repaired) error {
	var name []byte // of the last log looked up
	known := false
	now := time.Now()
	return s.scan(spaceRecord, func(b *pebble.Batch, key, value []byte) error {
		log := key[1+2 : len(key)-8]
		if name == nil || !bytes.Equal(name, log) {
			name = append(make([]byte, 0, len(log)), log...)
			var err error
			if known, err = hasHead(s.db, string(log)); err != nil {
				return err
			}
		}
		if known {
			return nil
		}
		if isFollowing(value) {
			if n := len(done.Logs); n == 0 || done.Logs[n-1] != string(log) {
				done.Logs = append(done.Logs, string(log))
			}
			endBroken(b, string(log), &head{Head: replay.Head{Revision: 1, Last: seqOf(key)}}, now)
		}
		return b.Delete(key, nil)
	})
}

// scanBatch is the number of bytes of changes a scan commits at once.
const scanBatch = 1 << 20

// scan calls change for the entries of a space, as they are at its beginning, and commits the changes added to its
// batch.
func (s *Store) scan(space byte, change func(b *pebble.Batch, key, value []byte) error) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	b := s.db.NewBatch()
	defer func() { _ = b.Close() }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = change(b, it.Key(), value)
		}
		if err != nil {
			return fmt.Errorf("replay/pebble: %s cannot be repaired: %w; %w", s.dir, err, ErrDamaged)
		}
		if b.Len() < scanBatch {
			continue
		}
		if err := errors.Join(b.Commit(pebble.NoSync), b.Close()); err != nil {
			return err
		}
		b = s.db.NewBatch()
	}
	return errors.Join(it.Error(), b.Commit(pebble.NoSync))
}
