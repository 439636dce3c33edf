// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"math/rand/v2"
	"time"
)

// breaker keeps deliveries from an endpoint that does not answer. It counts failures in a row; at breakAt it
// opens for a while, then lets one attempt through, and opens for longer if that fails, too. The zero breaker
// is closed. It is guarded by the schedule's lock.
type breaker struct {
	failures int       // in a row
	trips    int       // how often it has opened without a success between
	until    time.Time // not before this is an attempt let through; zero while it is closed
}

const (
	breakAt   = 5
	breakFor  = 30 * time.Second
	breakMost = 15 * time.Minute
)

// open reports whether no attempt may be made.
func (b *breaker) open(now time.Time) bool { return b.until.After(now) }

// halfOpen reports whether one attempt may be made, that decides about the others.
func (b *breaker) halfOpen(now time.Time) bool { return !b.until.IsZero() && !b.open(now) }

// fail counts a failure, and reports whether the breaker has opened, be it again.
func (b *breaker) fail(now time.Time) bool {
	b.failures++
	if b.open(now) {
		return false // an attempt that began before
	}
	if b.until.IsZero() && b.failures < breakAt {
		return false
	}
	b.trips++
	b.until = now.Add(jitter(min(breakFor<<min(b.trips-1, 10), breakMost), 0.2))
	return true
}

// hold opens the breaker for as long as the endpoint asks to be left alone, and reports whether it was closed.
func (b *breaker) hold(now time.Time, d time.Duration) bool {
	was := b.open(now)
	b.until = later(b.until, now.Add(min(d, breakMost)))
	return !was
}

// succeed closes the breaker, and reports whether it was not closed.
func (b *breaker) succeed() bool {
	was := !b.until.IsZero()
	*b = breaker{}
	return was
}

// after returns when to come back to an endpoint whose breaker is open: after it closes, and not all at once.
func (b *breaker) after(now time.Time) time.Time {
	spread := min(b.until.Sub(now)/4, time.Minute) + time.Second
	return b.until.Add(time.Duration(rand.Int64N(int64(spread))))
}

// jitter returns d, longer or shorter by up to a part of it.
func jitter(d time.Duration, part float64) time.Duration {
	return d + time.Duration((rand.Float64()*2-1)*part*float64(d))
}
