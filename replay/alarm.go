// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"sync"
	"time"
)

const (
	// longestSleep is how long Alarm.Wait sleeps at most: a timer notices neither that the wall clock is stepped nor that
	// the machine was suspended.
	longestSleep = 15 * time.Second
	// stepSize is by how much the wall clock has to leave the monotonic one within one sleep, so that it was stepped and
	// not slewed.
	stepSize = time.Second
)

// Alarm is when whoever works off what is due looks at the store next, by the wall clock: a first time at once. It may
// be used by any number of goroutines at once; one of them does the looking.
type Alarm struct {
	wall  func() time.Time
	epoch time.Time     // of the monotonic clock, and what the wall clock was then
	ahead time.Duration // by how much the wall clock was ahead of the monotonic one; the looker's

	mu   sync.Mutex
	next time.Time // zero before the first look
	kick chan struct{}
}

// NewAlarm returns an alarm by a wall clock, which is time.Now but in tests.
func NewAlarm(wall func() time.Time) *Alarm {
	a := &Alarm{wall: wall, epoch: time.Now(), kick: make(chan struct{}, 1)}
	a.stepped()
	return a
}

// At lets the next look come at t, if that is earlier than planned. What is due at no time, or at the next restart,
// changes nothing.
func (a *Alarm) At(t time.Time) {
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

// Wait waits until a look is due. It reports whether the wall clock was stepped since the last look, so that what is due
// may lie anywhere, and false when done is closed.
func (a *Alarm) Wait(done <-chan struct{}) (stepped, ok bool) {
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
		early := a.Next().Sub(a.wall())
		if early <= 0 {
			return false, true
		}
		timer.Reset(min(early, longestSleep))
	}
}

// stepped reports whether the wall clock was stepped since the last call.
func (a *Alarm) stepped() bool {
	// Without its monotonic reading, a time is the wall clock's.
	ahead := a.wall().Round(0).Sub(a.epoch.Round(0)) - time.Since(a.epoch)
	by := ahead - a.ahead
	a.ahead = ahead
	return by.Abs() > stepSize
}

// Next returns when the next look is planned.
func (a *Alarm) Next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

// Begin begins a look. Whatever At is given from here on ends the sleep after it, so that nothing falls between the two.
func (a *Alarm) Begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = EndOfTime
}

// End ends a look, which says when to come again, and returns when that is: At may have been given an earlier time.
func (a *Alarm) End(next time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if next.Before(a.next) {
		a.next = next
	}
	return a.next
}
