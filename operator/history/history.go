// SPDX-License-Identifier: Apache-2.0

// Package history keeps what the process has counted in the last day, so that an overview needs no Prometheus. It
// counts nothing itself: it reads the counters that are served as metrics every Interval, and keeps how much they
// have grown, every 5 s for an hour and every minute for a day. The memory is bounded: at most 321 KiB for an agent
// that is called all the time, 17 KiB for one that is not, and 120 KiB beside them. It is lost with the process.
package history

import (
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/measure"
)

const (
	// Interval is the time between two samples.
	Interval = 5 * time.Second

	// Longest is how far back the history reaches.
	Longest = 24 * time.Hour

	fine   = Longest / 24 / Interval // slots, of Interval each
	coarse = Longest / time.Minute   // slots, of a minute each

	maxPoints = 60 // of a report
)

// Counts are what was counted of one agent.
type Counts struct {
	Calls   uint64         // that were answered
	Errors  uint64         // those of them that were answered with an error
	Failed  uint64         // tasks that have failed
	First   measure.Counts // the time of turns until their first event
	Settled measure.Counts // the time of turns until their end
}

// Add adds other counts.
func (c *Counts) Add(other *Counts) {
	c.Calls += other.Calls
	c.Errors += other.Errors
	c.Failed += other.Failed
	c.First.Add(other.First)
	c.Settled.Add(other.Settled)
}

// Levels are how much there is of something at a moment.
type Levels struct {
	Working int64 // tasks that their agents work on
	Waiting int64 // tasks that wait for their Leaders
	Pending int64 // notifications that are neither delivered nor dead
	Streams int64 // that are open
}

func (l *Levels) raise(to Levels) {
	l.Working, l.Waiting = max(l.Working, to.Working), max(l.Waiting, to.Waiting)
	l.Pending, l.Streams = max(l.Pending, to.Pending), max(l.Streams, to.Streams)
}

// Sample is what the counters show at a moment.
type Sample struct {
	Agents map[string]Counts // since the process began, by the agents' names
	Dead   uint64            // notifications that became dead letters; the counter may begin again
	Levels Levels
}

// Point is what was counted of the process in a part of a report.
type Point struct {
	Counted time.Duration // of its time; nothing is known of the rest
	Dead    uint64        // notifications that became dead letters
	Levels  Levels        // the highest of its samples
}

// Report is what was counted in the last time, in points of equal length, the oldest first.
type Report struct {
	Step   time.Duration // of each point
	Points []Point
	Agents map[string][]Counts // the points of the agents of which something was counted
}

// History is the history of a process. It may be used by any number of goroutines at once.
type History struct {
	began time.Time

	mu      sync.Mutex
	taken   time.Duration // when the last sample was, after began
	dead    uint64        // of the last sample
	process rings[Point]
	agents  map[string]*agent
}

// agent is the history of one agent. It is kept, as its counters are.
type agent struct {
	last  Counts // at the last sample
	rings rings[packed]
}

// New returns an empty history, which begins now.
func New() *History {
	return &History{began: time.Now(), process: newRings[Point](), agents: make(map[string]*agent)}
}

// UntilNext returns how long to wait for the next regular sample: each slot has one in its middle, so that none stays
// empty because a sample comes a little late.
func (h *History) UntilNext() time.Duration {
	return Interval - (time.Since(h.began)+Interval/2)%Interval
}

// Take reads the counters and adds them as a sample. There may be more of them than the regular ones. It calls read
// alone, so that no sample comes after one with later counters, whose growth would be counted twice.
func (h *History) Take(read func() Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := read()
	at := time.Since(h.began)
	counted := at - h.taken
	if counted > 2*Interval {
		counted = 0 // no configuration was there to be sampled
	}
	dead := s.Dead - min(h.dead, s.Dead)
	h.taken, h.dead = at, s.Dead
	for _, r := range h.process {
		p := r.at(at)
		p.Counted += counted
		p.Dead += dead
		p.Levels = s.Levels
	}
	for name, now := range s.Agents {
		a := h.agents[name]
		if a == nil {
			a = &agent{rings: newRings[packed]()}
			h.agents[name] = a
		}
		if grown := now.since(&a.last); grown != (Counts{}) {
			for _, r := range a.rings {
				r.at(at).add(&grown)
			}
		}
		a.last = now
	}
}

// since returns what was counted after an earlier sample.
func (c *Counts) since(earlier *Counts) Counts {
	return Counts{
		Calls: c.Calls - min(earlier.Calls, c.Calls), Errors: c.Errors - min(earlier.Errors, c.Errors),
		Failed: c.Failed - min(earlier.Failed, c.Failed),
		First:  c.First.Sub(earlier.First), Settled: c.Settled.Sub(earlier.Settled),
	}
}

// Last reports the time up to the last sample, which has at most 60 points.
func (h *History) Last(span time.Duration) Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := 0
	if span > fine*Interval {
		of = 1
	}
	r := h.process[of]
	slots := int64((min(max(span, r.step), Longest) + r.step - 1) / r.step)
	each := (slots + maxPoints - 1) / maxPoints // slots of a point
	n := (slots + each - 1) / each
	first := r.newest - n*each + 1
	report := Report{Step: time.Duration(each) * r.step, Points: make([]Point, n), Agents: make(map[string][]Counts)}
	for i := range n * each {
		if slot := r.get(first + i); slot != nil {
			p := &report.Points[i/each]
			p.Counted += slot.Counted
			p.Dead += slot.Dead
			p.Levels.raise(slot.Levels)
		}
	}
	for name, a := range h.agents {
		var points []Counts
		for i := range n * each {
			slot := a.rings[of].get(first + i)
			if slot == nil {
				continue
			}
			if points == nil {
				points = make([]Counts, n)
				report.Agents[name] = points
			}
			slot.addTo(&points[i/each])
		}
	}
	return report
}
