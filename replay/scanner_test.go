// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// scans is a scanner over a memory store, and the logs it has visited.
type scans struct {
	*testing.T
	Store
	scanner *DueScanner
	broken  error            // of Due
	fails   map[string]error // of visits

	mu             sync.Mutex
	visited        []string
	visits, widest int // under way now, and at most
}

func (s *scans) Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[DueLog, error] {
	if s.broken != nil {
		return func(yield func(DueLog, error) bool) { yield(DueLog{}, s.broken) }
	}
	return s.Store.Due(ctx, class, from, until)
}

func testScans(t *testing.T, test func(s *scans, began time.Time)) {
	bubble.Test(t, func(t *testing.T) {
		s := &scans{T: t, Store: NewMemory(Settings{}), fails: make(map[string]error)}
		defer s.Close()
		s.scanner = NewDueScanner(s, 'x', time.Now)
		test(s, time.Now())
	})
}

func (s *scans) due(log string, at time.Time) {
	s.Helper()
	if err := s.set(log, at); err != nil {
		s.Fatal(err)
	}
	s.scanner.ScanBy(at)
}

// set has a log be due at a time.
func (s *scans) set(log string, at time.Time) error {
	h, err := s.Head(s.Context(), log)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return s.Append(s.Context(), Append{Log: log, Expect: h.Revision, DueAt: at})
}

// visit works a log off: it is due no more.
func (s *scans) visit(log DueLog, _ time.Time) error {
	s.mu.Lock()
	s.visits++
	s.widest = max(s.widest, s.visits)
	s.visited = append(s.visited, log.Log)
	err := s.fails[log.Log]
	s.mu.Unlock()
	bubble.Pass(time.Millisecond)
	s.mu.Lock()
	s.visits--
	s.mu.Unlock()
	if err == nil {
		err = s.set(log.Log, time.Time{})
	}
	return err
}

// want scans once, and checks the visited logs and the time since the test's beginning.
func (s *scans) want(began time.Time, after time.Duration, complete bool, logs ...string) {
	s.Helper()
	if !s.scanner.Wait(s.Context()) {
		s.Fatal("no scan is due")
	}
	if got := time.Since(began).Truncate(time.Second); got != after {
		s.Errorf("a scan after %v, want %v", got, after)
	}
	s.visited = nil
	done, err := s.scanner.Scan(s.Context(), 2, s.visit)
	if done != complete || !errors.Is(err, s.broken) {
		s.Errorf("after %v: complete is %v, error %v", after, done, err)
	}
	slices.Sort(s.visited)
	if diff := cmp.Diff(logs, s.visited); diff != "" {
		s.Errorf("visited after %v (-want +got):\n%s", after, diff)
	}
}

// TestScans proves visits of logs when they are due, and again after a failure.
func TestScans(t *testing.T) {
	testScans(t, func(s *scans, began time.Time) {
		for _, log := range []string{"x1", "x2", "x3", "y1"} {
			s.due(log, began.Add(-time.Hour))
		}
		s.due("x4", began.Add(5*time.Second))
		s.due("x5", began.Add(time.Hour))
		s.due("x6", Recover)
		s.want(began, 0, true, "x1", "x2", "x3")
		if s.widest != 2 {
			s.Errorf("%d visits at a time, want 2", s.widest)
		}
		s.fails["x4"] = errors.New("later")
		s.want(began, 5*time.Second, false, "x4")
		clear(s.fails)
		s.want(began, 6*time.Second, true, "x4")
		s.broken = errors.New("broken")
		s.want(began, 21*time.Second, false)
		s.broken = nil
		s.want(began, 22*time.Second, true)
	})
}

// TestScansOfUnavailableStore proves the end of a scan when the store is unavailable, and the visit of all by the next
// one.
func TestScansOfUnavailableStore(t *testing.T) {
	testScans(t, func(s *scans, began time.Time) {
		for _, log := range []string{"x1", "x2", "x3", "x4"} {
			s.due(log, began.Add(-time.Hour))
		}
		s.fails["x1"], s.fails["x2"] = ErrUnavailable, ErrUnavailable
		s.want(began, 0, false, "x1", "x2")
		clear(s.fails)
		bubble.Pass(4 * time.Second)
		s.scanner.ScanBy(time.Now()) // the store is reopened
		s.want(began, 4*time.Second, true, "x1", "x2", "x3", "x4")
	})
}

// TestLeave proves that a left log is visited again, however long it has been due.
func TestLeave(t *testing.T) {
	testScans(t, func(s *scans, began time.Time) {
		at := began.Add(-time.Hour)
		s.due("x1", at)
		s.scanner.Wait(s.Context())
		leave := func(DueLog, time.Time) error { s.scanner.Leave(at); return nil }
		if complete, err := s.scanner.Scan(s.Context(), 1, leave); complete || err != nil {
			s.Errorf("complete is %v, error %v", complete, err)
		}
		s.want(began, 15*time.Second, true, "x1")
		s.due("x2", at) // without Leave, a scan does not look so far back
		s.want(began, 15*time.Second, true)
		s.scanner.Leave(StartOfTime)
		s.want(began, 30*time.Second, true, "x2")
		done, stop := context.WithCancel(s.Context())
		stop()
		if s.scanner.Wait(done) {
			s.Error("a scan is due after the end")
		}
	})
}
