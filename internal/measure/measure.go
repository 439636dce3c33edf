// SPDX-License-Identifier: Apache-2.0

// Package measure counts durations for metrics, without a lock, and without an allocation if nothing is traced. The
// export of metrics is the host's business.
package measure

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// bounds are the upper bounds of the buckets, the last one excluded: it has none.
var bounds = [...]time.Duration{
	100 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
}

// Durations is a histogram of durations. The zero value is ready for use, by any number of goroutines at once. It must
// not be copied.
type Durations struct {
	buckets   [len(bounds) + 1]atomic.Uint64
	sum       atomic.Int64 // nanoseconds
	exemplars [len(bounds) + 1]atomic.Pointer[Exemplar]
}

// Exemplar is a duration with a trace.
type Exemplar struct {
	Took            float64 // seconds
	At              time.Time
	TraceID, SpanID string
}

// Add counts a duration.
func (d *Durations) Add(took time.Duration) { d.add(took) }

// AddTraced counts the duration of the work recorded by a span. If the span is sampled, it is the exemplar of its
// bucket from now on. Otherwise nothing is allocated.
func (d *Durations) AddTraced(took time.Duration, span trace.Span) {
	i := d.add(took)
	if of := span.SpanContext(); of.IsSampled() {
		d.exemplars[i].Store(&Exemplar{took.Seconds(), time.Now(), of.TraceID().String(), of.SpanID().String()})
	}
}

// add counts a duration, and returns its bucket.
func (d *Durations) add(took time.Duration) int {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	d.buckets[i].Add(1)
	d.sum.Add(int64(took))
	return i
}

// Counts has the number of durations in each bucket of a histogram.
type Counts [len(bounds) + 1]uint64

// Counts returns the number of durations in each bucket.
func (d *Durations) Counts() (c Counts) {
	for i := range c {
		c[i] = d.buckets[i].Load()
	}
	return c
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	for i, n := range other {
		c[i] += n
	}
}

// Total returns the number of durations.
func (c Counts) Total() (n uint64) {
	for _, one := range c {
		n += one
	}
	return n
}

// Quantile returns the time not exceeded by a part q, between 0 and 1, of the durations. Like Prometheus, it supposes
// the durations of a bucket to be spread evenly, and none to exceed the last bound. It is 0 for no durations.
func (c Counts) Quantile(q float64) time.Duration {
	rank := q * float64(c.Total())
	var below time.Duration
	for i, bound := range bounds {
		n := float64(c[i])
		if n > 0 && rank <= n {
			return below + time.Duration(float64(bound-below)*rank/n)
		}
		rank, below = rank-n, bound
	}
	if c[len(bounds)] == 0 {
		return 0
	}
	return below
}

// Snapshot is the content of a histogram at a moment.
type Snapshot struct {
	Count   uint64
	Sum     float64            // seconds
	Buckets map[float64]uint64 // the number of durations of at most so many seconds

	Exemplars []*Exemplar // the last one of each bucket with any
}

// Snapshot returns the content of the histogram. A duration added meanwhile is in it, or is not.
func (d *Durations) Snapshot() Snapshot {
	s := Snapshot{Buckets: make(map[float64]uint64, len(bounds))}
	for i := range d.buckets {
		s.Count += d.buckets[i].Load()
		if i < len(bounds) {
			s.Buckets[bounds[i].Seconds()] = s.Count
		}
		if e := d.exemplars[i].Load(); e != nil {
			s.Exemplars = append(s.Exemplars, e)
		}
	}
	s.Sum = time.Duration(d.sum.Load()).Seconds()
	return s
}
