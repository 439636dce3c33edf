// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	sweepLogs  = 64                     // logs that are dropped in one batch
	sweepPause = 100 * time.Millisecond // between two looks, so that each finds many where many end
	sweepRetry = time.Minute            // after an error
)

// never is when a log is dropped that does not exist.
const never = stamp(math.MaxInt64)

// sweeper is what the sweep and those who end logs know together.
type sweeper struct {
	soonest atomic.Uint64 // stamp: the least expiry that was written since the last look began
	next    atomic.Uint64 // stamp of the next look; 0 while one is under way
	sooner  chan struct{} // says that the next look has to come earlier
	ended   chan struct{} // closed when the sweep has ended
}

// expect tells the sweep when a log is to be dropped.
func (w *sweeper) expect(expires stamp) {
	for at := w.soonest.Load(); uint64(expires) < at; at = w.soonest.Load() {
		if w.soonest.CompareAndSwap(at, uint64(expires)) {
			break
		}
	}
	if uint64(expires) < w.next.Load() {
		select {
		case w.sooner <- struct{}{}:
		default:
		}
	}
}

// sweep drops the logs whose retention is over, until the store is closed.
func (s *Store) sweep() {
	w := &s.sweeper
	defer close(w.ended)
	from := stamp(0) // no log is to be dropped earlier; the index is full of tombstones there
	for {
		w.next.Store(0)
		from = min(from, stamp(w.soonest.Swap(uint64(never))))
		next, err := s.dropExpired(&from)
		if errors.Is(err, replay.ErrClosed) {
			return
		}
		pause := time.Now().Add(sweepPause)
		if err != nil {
			s.log.Error("replay: logs whose retention is over cannot be dropped", slog.Any("error", err))
			next, pause = 0, time.Now().Add(sweepRetry)
		}
		for sooner := true; sooner; {
			w.next.Store(uint64(next))
			next = min(next, stamp(w.soonest.Load()))
			select {
			case <-s.done:
				return
			case <-time.After(max(time.Until(next.time()), time.Until(pause))):
				sooner = false
			case <-w.sooner:
			}
		}
	}
}

// dropExpired drops the logs whose retention is over, in batches, and returns when that of the next one is. It
// begins at from, and moves that on.
func (s *Store) dropExpired(from *stamp) (next stamp, err error) {
	for {
		expired, next, err := s.expired(*from, stampOf(time.Now()))
		if err != nil || len(expired) == 0 {
			return next, err
		}
		if err := s.drop(expired); err != nil {
			return never, err
		}
		*from = expired[len(expired)-1].at
	}
}

// expiry is an entry of the index by expiry.
type expiry struct {
	log string
	at  stamp
}

// expired returns some of the logs that are to be dropped, beginning at from, and if there are none, when the next
// one is.
func (s *Store) expired(from, now stamp) (expired []expiry, next stamp, err error) {
	if err := s.enter(context.Background()); err != nil {
		return nil, never, err
	}
	defer s.exit()
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: appendExpiryKey(nil, from, ""), UpperBound: []byte{spaceExpiry + 1},
	})
	if err != nil {
		return nil, never, err
	}
	next = never
	for ok := it.First(); ok && len(expired) < sweepLogs; ok = it.Next() {
		at, log := splitExpiryKey(it.Key())
		if at > now {
			next = at
			break
		}
		expired = append(expired, expiry{log, at})
	}
	return expired, next, errors.Join(it.Error(), it.Close())
}

// drop deletes logs. It holds all of them at once; nobody else holds more than one.
func (s *Store) drop(expired []expiry) error {
	if err := s.enter(context.Background()); err != nil {
		return err
	}
	defer s.exit()
	b := s.db.NewBatch()
	defer b.Close()
	var held []*log
	defer func() {
		for _, l := range held {
			l.write.Unlock()
			s.logs.leave(l)
		}
	}()
	for _, e := range expired {
		l := s.logs.use(e.log)
		l.write.Lock()
		held = append(held, l)
		if err := l.read(s.db); err != nil {
			return err
		}
		if l.head.First == 0 || l.head.expires != e.at {
			return errDamaged // the index and the log are written together
		}
		deleteLog(b, e.log, &l.head)
	}
	if err := s.commit(b, false); err != nil {
		return err
	}
	for _, l := range held {
		l.settle(head{})
	}
	return nil
}
