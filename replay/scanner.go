// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// EndOfTime is later than any DueAt, and StartOfTime is earlier than any but Recover.
var (
	EndOfTime   = time.Unix(1<<40, 0)
	StartOfTime = Recover.Add(1)
)

const (
	// horizon is the time a scan reads ahead, and the longest time to the next scan.
	horizon = 15 * time.Second
	// margin is the time a scan reaches back before the one it follows: a writer may compute a DueAt a little before it
	// appends it.
	margin = time.Minute
	// retryScan is the time until a scan is repeated after it could not read the store, or could not visit a log.
	retryScan = time.Second
)

// DueScanner visits the logs of one class when they are due. Its owner calls Wait and Scan by turns in one goroutine;
// ScanBy and Leave may be called by any number of goroutines at once.
type DueScanner struct {
	store Store
	class byte
	alarm *alarm
	from  time.Time // all logs due before it have been visited

	mu   sync.Mutex
	left time.Time // the earliest time given to Leave since the last scan began; EndOfTime for none
}

// NewDueScanner returns a scanner of the logs of a class, going by the clock wall. Its first scan is due at once.
func NewDueScanner(store Store, class byte, wall func() time.Time) *DueScanner {
	return &DueScanner{store: store, class: class, alarm: newAlarm(wall), from: StartOfTime, left: EndOfTime}
}

// ScanBy makes the next scan due at t, unless it is due earlier. A zero t, and Recover, change nothing.
func (s *DueScanner) ScanBy(t time.Time) { s.alarm.at(t) }

// Leave reports a log due at a time as not dealt with, so the next scan visits it again. ScanBy plans this scan.
func (s *DueScanner) Leave(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Before(s.left) {
		s.left = at
	}
}

// Wait waits until the next scan is due. It reports false when ctx is done.
func (s *DueScanner) Wait(ctx context.Context) bool {
	stepped, ok := s.alarm.wait(ctx.Done())
	if stepped {
		s.Leave(StartOfTime)
	}
	return ok
}

// Scan visits the due logs, at most parallel at a time. After an error of its visit, a log is visited again about a
// second later. ErrUnavailable ends the scan, and the owner calls ScanBy when the store is reopened. Scan reports
// whether nothing is left, be it by an error or by Leave; its error is a failure to read the store.
func (s *DueScanner) Scan(
	ctx context.Context, parallel int, visit func(log DueLog, now time.Time) error,
) (complete bool, err error) {
	s.mu.Lock()
	if s.left.Before(s.from) {
		s.from = s.left
	}
	s.left = EndOfTime
	s.mu.Unlock()

	s.alarm.begin()
	now := s.alarm.wall()
	next := now.Add(horizon)
	var (
		group              sync.WaitGroup
		retry, unavailable atomic.Bool
		slots              = make(chan struct{}, parallel)
		begin              = group.Go
	)
	if parallel == 1 { // no goroutine for each of very many logs
		begin = func(visit func()) { visit() }
	}
	fail := func(at time.Time, err error) {
		s.Leave(at)
		if errors.Is(err, ErrUnavailable) {
			unavailable.Store(true)
		} else {
			retry.Store(true)
		}
	}
	for due, dueErr := range s.store.Due(ctx, s.class, s.from, next) {
		if dueErr != nil {
			err = dueErr
			fail(s.from, err)
			break
		}
		if due.At.After(now) {
			next = due.At
			break
		}
		slots <- struct{}{}
		if unavailable.Load() {
			s.Leave(due.At)
			break
		}
		begin(func() {
			defer func() { <-slots }()
			if err := visit(due, now); err != nil {
				fail(due.At, err)
			}
		})
	}
	group.Wait()
	if again := now.Add(retryScan); retry.Load() && again.Before(next) {
		next = again
	}
	s.alarm.end(next)
	s.from = now.Add(-margin)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left.Equal(EndOfTime), err
}
