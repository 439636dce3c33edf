// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"sync"
	"time"
)

const (
	// longestSleep is the longest sleep of alarm.wait at a time: a timer notices neither a step of the wall clock nor a
	// suspension of the machine.
	longestSleep = 15 * time.Second
	// stepSize is the least change of the wall clock against the monotonic one, within one sleep, to count as a step. Less
	// is slewing.
	stepSize = time.Second
)

// alarm is the time of the next scan, by the wall clock. The first scan is due at once. Any number of goroutines may
// call at; the scanning one calls the other methods.
type alarm struct {
	wall  func() time.Time
	epoch time.Time     // time the alarm was made, by the wall clock and the monotonic one
	ahead time.Duration // lead of the wall clock over the monotonic one at the last call of stepped

	mu   sync.Mutex
	next time.Time // of the next scan; zero before the first one
	kick chan struct{}
}

// newAlarm returns an alarm by the clock wall; it is time.Now except in tests.
func newAlarm(wall func() time.Time) *alarm {
	a := &alarm{wall: wall, epoch: time.Now(), kick: make(chan struct{}, 1)}
	a.stepped()
	return a
}

// at plans the next scan for t, unless it is planned earlier. A zero t, and Recover, change nothing.
func (a *alarm) at(t time.Time) {
	if t.IsZero() || t.Equal(Recover) {
		return
	}
	a.mu.Lock()
	earlier := t.Before(a.next)
	if earlier {
		a.next = t
	}
	a.mu.Unlock()
	if earlier {
		select {
		case a.kick <- struct{}{}:
		default:
		}
	}
}

// wait waits until a scan is due. stepped reports whether the wall clock was stepped since the last scan, so logs with
// any DueAt may be due now. ok is false when done is closed.
func (a *alarm) wait(done <-chan struct{}) (stepped, ok bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return false, false
		case <-a.kick:
		case <-timer.C:
		}
		if a.stepped() {
			return true, true
		}
		early := a.planned().Sub(a.wall())
		if early <= 0 {
			return false, true
		}
		timer.Reset(min(early, longestSleep))
	}
}

// stepped reports whether the wall clock was stepped since the last call.
func (a *alarm) stepped() bool {
	// Without its monotonic reading, a time is the wall clock's.
	ahead := a.wall().Round(0).Sub(a.epoch.Round(0)) - time.Since(a.epoch)
	by := ahead - a.ahead
	a.ahead = ahead
	return by.Abs() > stepSize
}

// planned returns when the next scan is planned.
func (a *alarm) planned() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

// begin begins a scan. A call of at from here on counts for the next scan.
func (a *alarm) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = EndOfTime
}

// end ends a scan and plans the next one for a time, or earlier, if at was called with an earlier time. It returns that
// time.
func (a *alarm) end(next time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if next.Before(a.next) {
		a.next = next
	}
	return a.next
}
