// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Append implements replay.Store.
func (s *Store) Append(ctx context.Context, a replay.Append) (err error) {
	if err := s.enterToWrite(ctx); err != nil {
		return err
	}
	var changed *log // whose readers are to be woken, when no lock is held
	defer func() {
		if changed != nil {
			changed.waiters.Call()
		}
	}()
	defer s.exit(&err)
	l := s.logs.use(a.Log)
	defer s.logs.leave(l)
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.read(s.db); err != nil {
		return err
	}

	settings := s.settings.Load()
	old := l.head
	next := old
	var size int64 // when it has ended
	now := time.Now()
	if next.Head, err = a.Next(old.Head, now); err != nil {
		return err
	}
	if old.First == 0 {
		if err := s.room.err(now); err != nil {
			return err
		}
	}
	if a.End {
		next.expires = stampOf(next.Ended.Add(settings.Retention))
	}
	if next.Lost == 0 {
		next.losses = s.logs.losses.Load()
	}

	b := s.db.NewBatchWithSize(batchSize(&a))
	defer b.Close()
	records := a.Records
	if first := max(old.First, 1); next.First > first {
		trimmed, err := s.sizeOf(a.Log, first, min(next.First, old.Last+1))
		if err != nil {
			return err
		}
		next.Bytes -= trimmed
		deleteRecords(b, a.Log, first, min(next.First, old.Last+1))
		for next.First > next.Last+1-uint64(len(records)) {
			next.Bytes -= int64(len(records[0]))
			records = records[1:]
		}
		setSnapshot(b, a.Log, a.Snapshot)
	}
	seq := next.Last - uint64(len(records))
	for _, r := range records {
		seq++
		setRecord(b, a.Log, seq, r)
	}
	moveTime(b, appendDueKey, stampOf(old.DueAt), stampOf(next.DueAt), a.Log, nil)
	if a.End {
		if size, err = s.endedSize(&a, &next); err != nil {
			return err
		}
		moveTime(b, appendExpiryKey, 0, next.expires, a.Log, binary.AppendUvarint(nil, uint64(size)))
	}
	setHead(b, a.Log, &next)

	if a.End {
		s.sweeper.counting.RLock()
		defer s.sweeper.counting.RUnlock()
	}
	durable := settings.Sync == replay.SyncAlways || settings.Sync == replay.SyncState && a.Durable
	if err := s.commit(b, durable); err != nil {
		return err
	}
	l.publish(next, records)
	if next.Last > old.Last || a.End {
		changed = l
	}
	if a.End {
		s.sweeper.expect(next.expires, size)
	}
	return nil
}

// sizeOf returns the size of the records [first, end).
func (s *Store) sizeOf(log string, first, end uint64) (n int64, err error) {
	it, err := s.records(log, first, end)
	if err != nil {
		return 0, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		v := it.LazyValue()
		n += int64(v.Len())
	}
	return n, it.Close()
}
