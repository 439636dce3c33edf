// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	sweepLogs  = 64                     // logs dropped in one batch
	sweepPause = 100 * time.Millisecond // between two sweeps, so that each finds many logs if many end
	sweepRetry = time.Minute            // after an error
	countPage  = 4096                   // entries read at a time in a count of all logs
)

// never is the time to drop a log that does not exist.
const never = stamp(math.MaxInt64)

// sweeper is the state shared by the sweep and the calls that end logs.
type sweeper struct {
	size    atomic.Int64  // bytes of the ended logs
	max     atomic.Int64  // Settings.MaxSize
	soonest atomic.Uint64 // stamp: the least expiry written since the last sweep began
	next    atomic.Uint64 // stamp of the next sweep; 0 during a sweep
	sooner  chan struct{} // signals that the next sweep must come earlier
	ended   chan struct{} // closed when the sweep has ended
	dropped atomic.Int64  // bytes dropped since their room was given back

	counting sync.RWMutex // held for reading by an Append ending its log, for writing while size begins anew
}

// excess returns the number of bytes of ended logs beyond the bound.
func (w *sweeper) excess() int64 {
	if most := w.max.Load(); most > 0 {
		return w.size.Load() - most
	}
	return 0
}

// expect records the end of a log of a size, and the time its retention is over.
func (w *sweeper) expect(expires stamp, size int64) {
	w.size.Add(size)
	for at := w.soonest.Load(); uint64(expires) < at; at = w.soonest.Load() {
		if w.soonest.CompareAndSwap(at, uint64(expires)) {
			break
		}
	}
	if uint64(expires) < w.next.Load() || w.excess() > 0 {
		w.sweepSoon()
	}
}

// sweepSoon makes the next sweep come as soon as there is something to drop.
func (w *sweeper) sweepSoon() {
	signal(w.sooner)
}

// sweep drops the logs whose retention is over, and other ended ones if all of them take too much, until the store is
// closed.
func (s *Store) sweep() {
	w := &s.sweeper
	defer close(w.ended)
	from := stamp(0) // no log is to be dropped earlier; the index is full of tombstones there
	counted := false // w.size is the size of all ended logs, and not only of those ended since the store was opened
	seen := int64(0) // dropped when the store rested last
	for {
		reopened := s.Reopened()
		w.next.Store(0)
		from = min(from, stamp(w.soonest.Swap(uint64(never))))
		var err error
		if !counted && w.max.Load() > 0 {
			err = s.countEnded(from)
			counted = err == nil
		}
		next := never
		if err == nil {
			next, err = s.dropEnded(&from)
		}
		if errors.Is(err, replay.ErrClosed) {
			return
		}
		if errors.Is(err, replay.ErrUnavailable) {
			select {
			case <-s.done:
				return
			case <-reopened:
			}
			from, counted = 0, false // a failed Append may have ended its log
			continue
		}
		pause := time.Now().Add(sweepPause)
		if err != nil {
			s.log.Error("replay: logs that have ended cannot be dropped", slog.Any("error", err))
			next, pause = 0, time.Now().Add(sweepRetry)
		}
		for sooner := true; sooner; {
			w.next.Store(uint64(next))
			next = min(next, stamp(w.soonest.Load()))
			if w.excess() > 0 || !counted && w.max.Load() > 0 { // it is to be counted
				next = 0
			}
			wait := max(time.Until(next.time()), time.Until(pause))
			dropped := w.dropped.Load()
			rests := dropped >= restBytes && dropped > seen && wait > restTime
			if rests {
				wait = restTime
			}
			select {
			case <-s.done:
				return
			case <-time.After(wait):
				if sooner = rests; !rests {
					break
				}
				if seen = dropped; s.giveBack() {
					w.dropped.Add(-dropped)
					seen = 0
				}
			case <-w.sooner:
			}
		}
	}
}

// dropEnded drops the logs whose retention is over, in batches, and those whose retention is over next, as long as all
// ended ones take too much. It returns the time the retention of the next one is over. It begins at from, and moves
// from on.
func (s *Store) dropEnded(from *stamp) (next stamp, err error) {
	for {
		logs, next, err := s.toDrop(*from, stampOf(time.Now()))
		if err != nil || len(logs) == 0 {
			return next, err
		}
		if err := s.drop(logs); err != nil {
			return never, err
		}
		*from = logs[len(logs)-1].at
	}
}

// expiry is an entry of the index by expiry.
type expiry struct {
	log  string
	at   stamp
	size int64 // of the log on the disk
}

// toDrop returns some of the logs to be dropped, beginning at from, and if there are none, the time of the next one.
func (s *Store) toDrop(from, now stamp) (logs []expiry, next stamp, err error) {
	if err := s.enter(context.Background()); err != nil {
		return nil, never, err
	}
	defer s.exit(&err)
	excess := s.sweeper.excess()
	it, err := s.committed().NewIter(&pebble.IterOptions{
		LowerBound: appendExpiryKey(nil, from, ""), UpperBound: []byte{spaceExpiry + 1},
	})
	if err != nil {
		return nil, never, err
	}
	next = never
	for ok := it.First(); ok && len(logs) < sweepLogs; ok = it.Next() {
		at, log := splitExpiryKey(it.Key())
		if at > now && excess <= 0 {
			next = at
			break
		}
		size := sizeIn(it.Value())
		logs = append(logs, expiry{log, at, size})
		excess -= size
	}
	return logs, next, errors.Join(it.Error(), it.Close())
}

// sizeIn returns the size of a log, the value of its entry in the index by expiry.
func sizeIn(value []byte) int64 {
	size, _ := binary.Uvarint(value)
	return int64(size)
}

// endedSize returns the size on the disk, before compression, of a log ended by a.
func (s *Store) endedSize(a *replay.Append, h *head) (int64, error) {
	size := h.Bytes + int64(h.Kept()) + int64(h.entries)*int64(entryKeyLen(a.Log)) +
		int64(len(a.Metadata)+2*nameKeyLen(a.Log)+timeKeyLen(a.Log))
	switch {
	case h.First <= 1: // nothing was trimmed
	case a.Trim+1 == h.First:
		size += int64(len(a.Snapshot))
	default:
		snapshot, err := s.snapshot(a.Log)
		if err != nil {
			return 0, err
		}
		size += int64(len(snapshot))
	}
	return size, nil
}

// countEnded sets sweeper.size to the size of all ended logs. None is to be dropped before from.
func (s *Store) countEnded(from stamp) error {
	s.sweeper.counting.Lock()
	of, snapshot, err := s.takeSnapshot(context.Background())
	if err == nil {
		s.sweeper.size.Store(0)
	}
	s.sweeper.counting.Unlock()
	if err != nil {
		return err
	}
	defer of.dropSnapshot(snapshot)
	lower := appendExpiryKey(nil, from, "")
	for more := true; more; {
		var size int64
		var err error
		if size, lower, more, err = s.countSome(of, snapshot, lower); err != nil {
			return err
		}
		s.sweeper.size.Add(size)
	}
	return nil
}

// countSome returns the size of some of the ended logs with entries from lower on, the beginning of the entries of the
// rest, and whether there is a rest.
func (s *Store) countSome(of *generation, snapshot *pebble.Snapshot, lower []byte) (
	size int64, rest []byte, more bool, err error,
) {
	if err := s.enter(context.Background()); err != nil {
		return 0, nil, false, err
	}
	defer s.exit(&err)
	if s.generation != of {
		return 0, nil, false, errReplaced
	}
	it, err := snapshot.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: []byte{spaceExpiry + 1}})
	if err != nil {
		return 0, nil, false, err
	}
	n := 0
	for ok := it.First(); ok && !more; ok = it.Next() {
		size += sizeIn(it.Value())
		if n++; n == countPage {
			more, rest = true, append(bytes.Clone(it.Key()), 0) // the least greater key
		}
	}
	return size, rest, more, errors.Join(it.Error(), it.Close())
}

// drop deletes logs, but for pinned ones that may be kept for longer. It locks all of them at once; no other function
// locks more than one.
func (s *Store) drop(logs []expiry) (err error) {
	if err := s.enterToWrite(context.Background()); err != nil {
		return err
	}
	defer s.exit(&err)
	b := s.db.NewBatch()
	defer b.Close()
	lists, err := s.committed().NewIter(&pebble.IterOptions{
		LowerBound: []byte{spaceList}, UpperBound: []byte{spaceList + 1},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lists.Close()) }()
	var held []*log
	defer func() {
		for _, l := range held {
			l.write.Unlock()
			s.logs.leave(l)
		}
	}()
	var size int64
	heads := make([]head, len(logs)) // after the commit
	for i, e := range logs {
		l := s.logs.use(e.log)
		l.write.Lock()
		held = append(held, l)
		if err := l.read(s.generation); err != nil {
			return err
		}
		if l.head.First == 0 || l.head.expires != e.at {
			return errDamaged // the index and the log are written together
		}
		if heads[i], err = s.postpone(b, l, e, lists); err != nil {
			return err
		}
		if heads[i].First > 0 {
			continue
		}
		if err := s.intents.forget(e.log); err != nil {
			return err
		}
		if err := s.deleteLog(b, e.log, &l.head); err != nil {
			return err
		}
		size += e.size
	}
	if err := s.commit(b, false); err != nil {
		return err
	}
	s.sweeper.size.Add(-size)
	s.sweeper.dropped.Add(size)
	for i, l := range held {
		l.publish(heads[i], nil)
		if heads[i].First > 0 {
			s.sweeper.expect(heads[i].expires, 0)
		}
	}
	return nil
}

// postpone has a log dropped later if it is pinned and may be kept for longer. It returns the log's new head; the zero
// head if it is to be dropped. lists is over the keys of lists. The caller holds l.write.
func (s *Store) postpone(b *pebble.Batch, l *log, e expiry, lists *pebble.Iterator) (head, error) {
	pins := appendList(nil, replay.PinsOf(e.log))
	if !lists.SeekGE(pins) || !bytes.HasPrefix(lists.Key(), pins) {
		return head{}, lists.Error()
	}
	at, ok := s.settings.Load().Postpone(l.head.Ended, e.at.time(), time.Now())
	if !ok {
		return head{}, nil
	}
	h, err := l.stored(s.generation, true)
	if err != nil {
		return head{}, err
	}
	h.expires = stampOf(at)
	moveTime(b, appendExpiryKey, e.at, h.expires, e.log, binary.AppendUvarint(nil, uint64(e.size)))
	setHead(b, e.log, &h, h.entry, nil)
	return h, nil
}

// dropNow deletes a log that has not ended. The caller holds l.write.
func (s *Store) dropNow(l *log) error {
	if l.head.First == 0 {
		return nil
	}
	if l.head.pending {
		s.intents.complete(l.name)
	}
	if err := s.intents.forget(l.name); err != nil {
		return err
	}
	if !l.head.pending { // the database has it
		b := s.db.NewBatch()
		defer b.Close()
		if err := s.deleteLog(b, l.name, &l.head); err != nil {
			return err
		}
		if err := s.commit(b, false); err != nil {
			return err
		}
	}
	l.publish(head{}, nil)
	return nil
}
