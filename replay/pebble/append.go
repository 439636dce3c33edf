// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Append implements replay.Writer.
func (w *writer) Append(ctx context.Context, a replay.Append) (err error) {
	s := w.store
	a.Log = w.name
	if err := s.enterToWrite(ctx); err != nil {
		return err
	}
	var changed *log // its readers are to be woken, with no lock held
	defer func() {
		if changed != nil {
			changed.waiters.Appended()
		}
	}()
	defer s.exit(&err)
	l := w.use()
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.read(s.generation); err != nil {
		return err
	}

	settings, old := s.settings.Load(), l.head
	next, err := s.nextHead(&a, &old, settings)
	if err != nil {
		return err
	}
	if a.Drop {
		if err := s.dropNow(l); err != nil || old.First == 0 {
			return err
		}
		changed = l
		return nil
	}
	if isIntent(&a, &old, settings) {
		next.pending = true
		ok, err := s.intents.add(a.Log, &next)
		if ok {
			s.meter.appends.Add(1)
			l.publish(next, nil)
		}
		if ok || err != nil {
			return err
		}
	}
	next.pending = false
	records, inline, err := s.write(l, &a, &next, settings)
	if err != nil {
		return err
	}
	l.publish(next, records)
	if a.Durable && !a.End {
		l.rest(&next, a.Metadata, inline, records)
	}
	if next.Last > old.Last || a.End {
		changed = l
	}
	return nil
}

// nextHead returns the head of a log after an append, but for the fields depending on the storage of its records.
func (s *Store) nextHead(a *replay.Append, old *head, settings *replay.Settings) (next head, err error) {
	next = *old
	now := time.Now()
	if next.Head, err = a.Next(old.Head, now); err != nil {
		return head{}, err
	}
	if old.First == 0 && !a.Drop {
		if err := s.free.Err(now); err != nil {
			return head{}, err
		}
	}
	if a.End {
		next.expires = stampOf(next.Ended.Add(settings.Retention))
	}
	if next.Lost == 0 {
		next.losses = s.logs.losses.Load()
	}
	return next, nil
}

// write commits an append giving the log the head next, and completes it. It returns the results of setRecords. The
// caller holds l.write.
func (s *Store) write(l *log, a *replay.Append, next *head, settings *replay.Settings) (
	records [][]byte, inline []byte, err error,
) {
	old := l.head
	b := s.db.NewBatchWithSize(batchSize(a))
	defer b.Close()
	follows := l.follows(a, next)
	records, inline, err = s.setRecords(b, l, a, next, follows)
	if err != nil {
		return nil, nil, err
	}
	var size int64 // when it has ended
	if a.End {
		if size, err = s.endedSize(a, next); err != nil {
			return nil, nil, err
		}
		moveTime(b, appendExpiryKey, 0, next.expires, a.Log, binary.AppendUvarint(nil, uint64(size)))
	}
	if !follows {
		due, lists := stampOf(old.DueAt), old.Lists
		if old.pending {
			due, lists = 0, nil // it is not in the index, and in no list
		}
		moveTime(b, appendDueKey, due, stampOf(next.DueAt), a.Log, nil)
		moveLists(b, a.Log, lists, next.Lists)
		next.followed = mayFollow(a, next)
		setHead(b, a.Log, next, inline, records)
	}

	if a.End {
		s.sweeper.counting.RLock()
		defer s.sweeper.counting.RUnlock()
	}
	// A large batch that is not durable would be synced with the next durable one, and that one would wait for all of it.
	durable := settings.Sync == replay.SyncAlways ||
		settings.Sync == replay.SyncState && (a.Durable || b.Len() > s.sizes.Part)
	if err := s.commitAppend(b, a.Log, len(a.Records), durable); err != nil {
		return nil, nil, err
	}
	s.meter.appends.Add(1)
	if old.First == 0 || old.pending {
		s.logs.begun(a.Log)
	}
	if old.pending {
		s.intents.complete(a.Log)
	}
	if a.End {
		s.sweeper.expect(next.expires, size)
	}
	return records, inline, nil
}

// setRecords sets the entries of the records of an append, and of those the log keeps besides, if they change. follows
// is the result of log.follows. It returns the records kept by the log, and the entry inline in the head, if there is
// one.
func (s *Store) setRecords(b *pebble.Batch, l *log, a *replay.Append, next *head, follows bool) (
	_ [][]byte, _ []byte, err error,
) {
	old, records, inline := &l.head, a.Records, []byte(nil)
	if old.inline {
		stored, err := l.stored(s.generation, true)
		if err != nil {
			return nil, nil, err
		}
		inline = stored.entry
	}
	if next.First > max(old.First, 1) {
		if inline, err = s.trim(b, a.Log, inline, old, next); err != nil {
			return nil, nil, err
		}
		for next.First > next.Last+1-uint64(len(records)) {
			next.Bytes -= int64(len(records[0]))
			records = records[1:]
		}
		setSnapshot(b, a.Log, a.Snapshot)
	}
	if next.inline = fitsInline(a, next, inline, records); !next.inline {
		if inline != nil {
			setEntry(b, a.Log, old.Last, inline, nil, false)
			next.entries++
		}
		if len(records) > 0 {
			setEntry(b, a.Log, next.Last, nil, records, follows)
			next.entries++
		}
	}
	return records, inline, nil
}

// isIntent returns whether an append to a log with a head can be an intent.
func isIntent(a *replay.Append, h *head, settings *replay.Settings) bool {
	return a.Intent && h.First == 0 && len(a.Records) == 0 && !a.End && !a.Durable && settings.Sync != replay.SyncAlways
}

// fitsInline returns whether all records of a log are inline in its head after a: an entry already inline, nil if there
// is none, and those of a. More records are added to such an entry only by the end of the log, because a running log
// would write the first ones again with each append.
func fitsInline(a *replay.Append, next *head, entry []byte, records [][]byte) bool {
	switch {
	case next.entries > 0, entry == nil && len(records) == 0:
		return false
	case entry != nil && len(records) > 0 && (!a.End || a.Skip > 0):
		return false
	}
	return entryLen(entry, records) <= maxInline
}

// trim deletes the records of a log not kept by next. The log has the head old, with this entry inline. trim returns
// the rest of the entry, and subtracts the deleted records from next.
func (g *generation) trim(b *pebble.Batch, log string, inline []byte, old, next *head) (_ []byte, err error) {
	switch {
	case old.inline:
		return trimEntry(inline, old, next)
	case old.entries > 0:
		return nil, g.trimEntries(b, log, old, next)
	}
	return nil, nil
}

// trimEntry is trim for a log with all records inline in its head.
func trimEntry(entry []byte, old, next *head) ([]byte, error) {
	var kept [][]byte
	r := readEntry(entry, old.Last, old.First, old.Last)
	for r.next() {
		if r.seq < next.First {
			next.Bytes -= int64(len(r.data))
			continue
		}
		kept = append(kept, r.data)
	}
	if err := r.close(); err != nil || len(kept) == 0 {
		return nil, err
	}
	return appendEntry(nil, nil, kept), nil
}

// trimEntries is trim for a log with records in entries of their own. Entries are deleted whole, and the one with the
// first kept record is written again.
func (g *generation) trimEntries(b *pebble.Batch, log string, old, next *head) error {
	r, err := g.readEntries(log, old, old.First)
	if err != nil {
		return err
	}
	var deleted []storedEntry
	var kept [][]byte                                    // the rest of an entry
	for within := false; r.next(); within = r.left > 0 { // an entry with its first records deleted
		if r.seq < next.First {
			next.Bytes -= int64(len(r.data))
			if r.left == 0 {
				deleted = append(deleted, storedEntry{r.seq, r.size})
			}
			continue
		}
		if within {
			kept = append(kept, bytes.Clone(r.data))
		}
		if !within || r.left == 0 {
			break
		}
	}
	switch err := r.close(); {
	case err != nil:
		return err
	case uint64(len(deleted)) > next.entries:
		return errDamaged
	}
	next.entries -= uint64(len(deleted))
	deleteEntries(b, log, deleted)
	if len(kept) > 0 {
		setEntry(b, log, r.seq, nil, kept, false)
	}
	return nil
}
