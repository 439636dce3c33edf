// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math/rand/v2"
	"time"
)

// breaker keeps deliveries from a failing endpoint. After failuresToOpen failures in a row it opens for a while; then
// it permits one attempt, and opens for longer if the attempt fails. The zero breaker is closed.
type breaker struct {
	failures int       // in a row
	trips    int       // the number of times it has opened without a success between
	until    time.Time // before this no attempt is permitted; zero while it is closed
}

const (
	failuresToOpen = 5
	firstOpen      = 30 * time.Second // doubled each time it opens again
	maxOpen        = 15 * time.Minute
)

// open reports whether no attempt is permitted.
func (b *breaker) open(now time.Time) bool { return b.until.After(now) }

// halfOpen reports whether one attempt is permitted, to decide about the others.
func (b *breaker) halfOpen(now time.Time) bool { return !b.until.IsZero() && !b.open(now) }

// fail counts a failure, and reports whether the breaker has opened, or opened again.
func (b *breaker) fail(now time.Time) bool {
	b.failures++
	if b.open(now) {
		return false // an attempt begun before
	}
	if b.until.IsZero() && b.failures < failuresToOpen {
		return false
	}
	b.trips++
	b.until = now.Add(Jitter(min(firstOpen<<min(b.trips-1, 10), maxOpen)))
	return true
}

// hold opens the breaker for as long as the endpoint asks for, and reports whether it was not open.
func (b *breaker) hold(now time.Time, d time.Duration) bool {
	was := b.open(now)
	if until := now.Add(min(d, maxOpen)); until.After(b.until) {
		b.until = until
	}
	return !was
}

// succeed closes the breaker, and reports whether it was not closed.
func (b *breaker) succeed() bool {
	was := !b.until.IsZero()
	*b = breaker{}
	return was
}

// after returns a time for the next attempt at an endpoint with an open breaker. It is random, so not all waiting
// deliveries come at once.
func (b *breaker) after(now time.Time) time.Time {
	spread := min(b.until.Sub(now)/4, time.Minute) + time.Second
	return b.until.Add(time.Duration(rand.Int64N(int64(spread))))
}

// Jitter returns d, up to a fifth longer or shorter.
func Jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()*2-1)/5*float64(d))
}
