// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	sweepLogs  = 64          // logs that are dropped in one batch
	sweepRetry = time.Minute // after an error
)

// sweep drops the logs whose retention is over, until the store is closed.
func (s *Store) sweep() {
	defer close(s.swept)
	for {
		// While the index is being read, every log that ends wakes the sweeper: it may have been missed.
		s.nextSweep.Store(math.MaxInt64)
		next, err := s.dropExpired(time.Now())
		var wait <-chan time.Time
		switch {
		case errors.Is(err, replay.ErrClosed):
			return
		case err != nil:
			s.log.Error("replay: logs whose retention is over could not be dropped", slog.Any("error", err))
			wait = time.After(sweepRetry)
		case next != 0:
			s.nextSweep.Store(int64(next))
			wait = time.After(time.Until(next.time()))
		}
		select {
		case <-s.done:
			return
		case <-wait:
		case <-s.sooner:
		}
	}
}

// expect wakes the sweeper if a log is to be dropped sooner than it knows.
func (s *Store) expect(expires stamp) {
	if int64(expires) < s.nextSweep.Load() {
		select {
		case s.sooner <- struct{}{}:
		default:
		}
	}
}

// dropExpired drops the logs whose retention is over, in batches, and returns when that of the next one is; 0
// where there is none.
func (s *Store) dropExpired(now time.Time) (stamp, error) {
	for {
		expired, next, err := s.expired(stampOf(now))
		if err != nil || len(expired) == 0 {
			return next, err
		}
		if err := s.drop(expired); err != nil {
			return 0, err
		}
	}
}

// expiry is an entry of the index by expiry.
type expiry struct {
	log string
	at  stamp
}

// expired returns some of the logs whose retention is over, and if there are none, when that of the next one is.
func (s *Store) expired(now stamp) (expired []expiry, next stamp, err error) {
	if err := s.enter(context.Background()); err != nil {
		return nil, 0, err
	}
	defer s.exit()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceExpiry}, UpperBound: []byte{spaceExpiry + 1}})
	if err != nil {
		return nil, 0, err
	}
	for ok := it.First(); ok && len(expired) < sweepLogs; ok = it.Next() {
		at, log := splitTimeKey(it.Key())
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
