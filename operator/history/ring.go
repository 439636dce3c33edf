// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	"github.com/aip-gateway/aip-gateway/internal/measure"
)

// rings keep the same in fine slots and in coarse ones.
type rings[T any] [2]*ring[T]

func newRings[T any]() rings[T] {
	return rings[T]{
		{step: Interval, slots: make([]*T, fine)},
		{step: time.Minute, slots: make([]*T, coarse)},
	}
}

// ring keeps one value for each of the last steps in which there was something.
type ring[T any] struct {
	step   time.Duration
	slots  []*T  // that of the step n is at n modulo their number
	newest int64 // the number of the newest step; the first one is 0
}

// at returns the value of the step of a time, which does not come before an earlier one.
func (r *ring[T]) at(t time.Duration) *T {
	now, size := int64(t/r.step), int64(len(r.slots))
	for n := max(r.newest+1, now-size+1); n <= now; n++ {
		r.slots[n%size] = nil
	}
	r.newest = now
	if r.slots[now%size] == nil {
		r.slots[now%size] = new(T)
	}
	return r.slots[now%size]
}

// get returns the value of a step; nil if there is none.
func (r *ring[T]) get(n int64) *T {
	size := int64(len(r.slots))
	if n < 0 || n > r.newest || n <= r.newest-size {
		return nil
	}
	return r.slots[n%size]
}

// packed are Counts in half of the memory: less than 2³² of anything happens in a minute.
type packed struct {
	calls, errors, failed uint32
	first, settled        [len(measure.Counts{})]uint32
}

func (p *packed) add(c *Counts) {
	p.calls += uint32(c.Calls)
	p.errors += uint32(c.Errors)
	p.failed += uint32(c.Failed)
	for i := range p.first {
		p.first[i] += uint32(c.First[i])
		p.settled[i] += uint32(c.Settled[i])
	}
}

func (p *packed) addTo(c *Counts) {
	c.Calls += uint64(p.calls)
	c.Errors += uint64(p.errors)
	c.Failed += uint64(p.failed)
	for i := range p.first {
		c.First[i] += uint64(p.first[i])
		c.Settled[i] += uint64(p.settled[i])
	}
}
