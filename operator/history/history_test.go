// SPDX-License-Identifier: Apache-2.0

package history

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/measure"
)

// counters are those of a process that is sampled.
type counters struct {
	t *testing.T
	h *History
	Sample
}

func newCounters(t *testing.T) *counters {
	return &counters{t, New(), Sample{Agents: make(map[string]Counts)}}
}

// count adds calls, and turns that took a second, of an agent.
func (c *counters) count(name string, calls uint64) {
	n := c.Agents[name]
	n.Calls += calls
	n.Errors += calls / 2
	n.Failed += calls / 4
	n.First[8] += calls
	n.Settled[9] += calls
	c.Agents[name] = n
}

// take takes a sample now.
func (c *counters) take() { c.h.Take(func() Sample { return c.Sample }) }

// run takes the regular samples of a time, after doing something before each.
func (c *counters) run(span time.Duration, before func()) {
	for range span / Interval {
		bubble.Pass(c.h.UntilNext())
		before()
		c.take()
	}
}

// sums returns the totals of a report.
func sums(r Report) (all map[string]Counts, counted time.Duration) {
	all = make(map[string]Counts)
	for name, points := range r.Agents {
		var sum Counts
		for i := range points {
			sum.Add(&points[i])
		}
		all[name] = sum
	}
	for _, p := range r.Points {
		counted += p.Counted
	}
	return all, counted
}

// TestHistory: whatever is counted is in the reports of all times that reach back to it, once.
func TestHistory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCounters(t)
		c.run(2*time.Hour, func() { c.count("old", 1) })
		c.run(10*time.Minute, func() { c.count("busy", 4) })
		c.run(2*time.Minute, func() {})
		for _, tc := range []struct {
			span, step time.Duration
			points     int
			calls      map[string]uint64
		}{
			{time.Minute, 5 * time.Second, 12, map[string]uint64{}},
			{5 * time.Minute, 5 * time.Second, 60, map[string]uint64{"busy": 4 * 36}},
			{time.Hour, time.Minute, 60, map[string]uint64{"busy": 4 * 120, "old": 48 * 12}},
			{6 * time.Hour, 6 * time.Minute, 60, map[string]uint64{"busy": 4 * 120, "old": 120 * 12}},
			{24 * time.Hour, 24 * time.Minute, 60, map[string]uint64{"busy": 4 * 120, "old": 120 * 12}},
			{48 * time.Hour, 24 * time.Minute, 60, map[string]uint64{"busy": 4 * 120, "old": 120 * 12}},
		} {
			r := c.h.Last(tc.span)
			if r.Step != tc.step || len(r.Points) != tc.points {
				t.Errorf("%v: %d points of %v, want %d of %v", tc.span, len(r.Points), r.Step, tc.points, tc.step)
			}
			all, counted := sums(r)
			got := make(map[string]uint64)
			for name, n := range all {
				got[name] = n.Calls
				if n.Errors != n.Calls/2 && name == "busy" || n.First.Total() != n.Calls || n.Settled.Total() != n.Calls {
					t.Errorf("%v: %s has %+v", tc.span, name, n)
				}
			}
			if diff := cmp.Diff(tc.calls, got); diff != "" {
				t.Errorf("%v: calls: %s", tc.span, diff)
			}
			if want := min(tc.span, 132*time.Minute); counted < want-time.Minute || counted > want+Interval {
				t.Errorf("%v: %v were counted, want %v", tc.span, counted, want)
			}
		}
	})
}

// TestHistoryForgets: a day later nothing is left, and what was counted before is not counted again.
func TestHistoryForgets(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCounters(t)
		c.run(time.Hour, func() { c.count("a", 100); c.Dead += 3; c.Levels.Streams = 9 })
		c.run(25*time.Hour, func() { c.Levels.Streams = 0 })
		r := c.h.Last(Longest)
		if len(r.Agents) != 0 {
			t.Errorf("it still has %v", r.Agents)
		}
		for i, p := range r.Points {
			if want := (Point{Counted: 24 * time.Minute}); i < len(r.Points)-1 && p != want {
				t.Errorf("point %d is %+v", i, p)
			}
		}
		c.count("a", 1)
		c.take()
		if all, _ := sums(c.h.Last(5 * time.Minute)); all["a"].Calls != 1 {
			t.Errorf("after a day there are %d calls, want 1", all["a"].Calls)
		}
	})
}

// TestHistoryOfAPause: a time without a sample is not known, and a counter that begins again takes nothing away. What
// is sampled more often is counted once.
func TestHistoryOfAPause(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newCounters(t)
		c.run(time.Minute, func() { c.Dead += 2; c.Levels.Working = 5; c.take(); c.take() })
		bubble.Pass(2 * time.Minute)
		c.Dead, c.Levels.Working = 0, 1 // the engines of another process
		c.run(time.Minute, func() { c.Dead++ })
		var counted time.Duration
		var dead uint64
		var empty int
		for _, p := range c.h.Last(5 * time.Minute).Points {
			counted, dead = counted+p.Counted, dead+p.Dead
			if p == (Point{}) {
				empty++
			}
			if p.Counted > Interval {
				t.Errorf("%v were counted in %v", p.Counted, Interval)
			}
		}
		if counted > 2*time.Minute || counted < 2*time.Minute-3*Interval || dead != 24+11 {
			t.Errorf("%v were counted, with %d dead letters", counted, dead)
		}
		if empty < 24 { // of the pause, and before the beginning
			t.Errorf("%d points are empty", empty)
		}
	})
}

// TestSamplesAtOnce: samples that are taken at the same time count everything once.
func TestSamplesAtOnce(t *testing.T) {
	h := New()
	var calls atomic.Uint64
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 2000 {
				calls.Add(1)
				h.Take(func() Sample { return Sample{Agents: map[string]Counts{"a": {Calls: calls.Load()}}} })
			}
		})
	}
	work.Wait()
	if all, _ := sums(h.Last(Longest)); all["a"].Calls != calls.Load() {
		t.Errorf("there are %d calls in the history, want %d", all["a"].Calls, calls.Load())
	}
}

// TestMemory: the bounds that the comment of the package says.
func TestMemory(t *testing.T) {
	const slots = int(fine + coarse)
	pointers := slots * int(unsafe.Sizeof(uintptr(0)))
	if n := pointers + slots*(int(unsafe.Sizeof(packed{})+15)/16*16); n > 321<<10 {
		t.Errorf("an agent takes %d bytes", n)
	}
	if pointers > 17<<10 {
		t.Errorf("an idle agent takes %d bytes", pointers)
	}
	if n := pointers + slots*int(unsafe.Sizeof(Point{})); n > 120<<10 {
		t.Errorf("the process takes %d bytes", n)
	}
	h, s := New(), Sample{Agents: map[string]Counts{"a": {Calls: 1, First: measure.Counts{1}}}}
	read := func() Sample { return s }
	h.Take(read)
	if n := testing.AllocsPerRun(100, func() { h.Take(read) }); n > 2 { // the slots of the process, once in a while
		t.Errorf("a sample in which nothing has changed allocates %v times", n)
	}
}
