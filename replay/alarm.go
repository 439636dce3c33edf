// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"sync"
	"time"
)

// EndOfTime is later than any Wake.
var EndOfTime = time.Unix(1<<40, 0)

// Alarm is when whoever works off what is due looks at the store next. It may be used by any number of goroutines at
// once; one of them does the looking.
type Alarm struct {
	mu   sync.Mutex
	next time.Time // zero before the first look
	kick chan struct{}
}

// NewAlarm returns an alarm that is not set.
func NewAlarm() *Alarm { return &Alarm{kick: make(chan struct{}, 1)} }

// At lets the next look come at t, if that is earlier than planned. What is due at no time, or at the next restart,
// changes nothing.
func (a *Alarm) At(t time.Time) {
	if t.IsZero() || t.Equal(AtRestart) {
		return
	}
	a.mu.Lock()
	earlier := a.next.IsZero() || t.Before(a.next)
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

// Earlier returns a channel that something comes from when a look is to come earlier than planned.
func (a *Alarm) Earlier() <-chan struct{} { return a.kick }

// Next returns when the next look is planned.
func (a *Alarm) Next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

// Begin begins a look. Whatever At is given from here on comes from Earlier, so that nothing falls between the look and
// the sleep after it.
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
