// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	// waitingPerSlot is how many turns may wait for each slot.
	waitingPerSlot = 8
	// One of questionShare slots is reserved for requests that are answered soon: get, cancel and others.
	questionShare = 8
	maxQuestions  = 256
)

// Slots bound the requests that are open to an agent at once, and with them the connections to it. One part is for
// requests that are answered when a turn ends, the other for requests that are answered soon, so that neither delays
// the other. A turn that is polled has a slot only during each poll. Slots may be used by any number of goroutines, and
// by several agents at once.
type Slots struct {
	max              int
	turns, questions semaphore

	// Log lines: turns wait for a slot, or for a file descriptor.
	waits, starved oncePerMinute
}

// NewSlots returns slots for n requests at once, at least 2.
func NewSlots(n int) *Slots {
	n = max(n, 2)
	asks := min(max(n/questionShare, 1), maxQuestions)
	return &Slots{max: n, turns: semaphore{max: n - asks}, questions: semaphore{max: asks}}
}

// Use returns how many turns have a slot now, and how many wait for one.
func (s *Slots) Use() (used, waiting int) {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	return s.turns.used, len(s.turns.waiting)
}

// admit returns an error of kind LimitExceeded where too many turns wait already. Turns that are admitted at the same
// moment may exceed the bound by their number.
func (s *Slots) admit() error {
	if n := s.max; s.turns.queued() >= waitingPerSlot*n {
		return task.Errorf(task.LimitExceeded, "the agent is busy: it has %d runs, and %d more wait; try again later",
			n, waitingPerSlot*n).
			WithData("limit", "max_runs").WithData("max", n)
	}
	return nil
}

// oncePerMinute limits how often a log line is written that many turns could write.
type oncePerMinute struct {
	mu   sync.Mutex
	last time.Time
}

// due reports whether to write the line now. It returns true once a minute.
func (m *oncePerMinute) due() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.last.IsZero() && time.Since(m.last) < time.Minute {
		return false
	}
	m.last = time.Now()
	return true
}

// acquire waits for a slot for the turn, and reports that the turn waits. Without an error, the caller must release the
// slot.
func (r *run) acquire() error {
	slots := r.config.Slots
	if slots.turns.try(1) {
		return nil
	}
	if !r.report(agent.Report{Delivery: agent.DeliveryQueued}) {
		return ErrAbandoned
	}
	if slots.waits.due() {
		r.log.LogAttrs(r.ctx, slog.LevelInfo, "turns wait for a free run of the agent",
			slog.Int("waiting", slots.turns.queued()+1), slog.Int("max_runs", slots.max))
	}
	if !slots.turns.acquire(r.ctx) {
		return Ended(r.ctx)
	}
	if !r.report(agent.Report{Delivery: agent.DeliverySending}) {
		slots.turns.release()
		return ErrAbandoned
	}
	return nil
}

// semaphore counts slots, and hands them out in the order of the requests. The zero semaphore has none.
type semaphore struct {
	mu        sync.Mutex
	max, used int
	waiting   []chan struct{} // closed when its slot is given
}

// try takes a slot without waiting, unless one part of all slots, such as half of them for part 2, is taken already.
func (s *semaphore) try(part int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= max(s.max/part, 1) || len(s.waiting) > 0 {
		return false
	}
	s.used++
	return true
}

// acquire waits for a slot. It reports false when ctx is done before.
func (s *semaphore) acquire(ctx context.Context) bool {
	s.mu.Lock()
	if s.used < s.max && len(s.waiting) == 0 {
		s.used++
		s.mu.Unlock()
		return true
	}
	given := make(chan struct{})
	s.waiting = append(s.waiting, given)
	s.mu.Unlock()
	select {
	case <-given:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, given); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return false
	}
	s.used-- // the slot was given in the same moment
	s.give()
	return false
}

func (s *semaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.give()
}

// give hands out the free slots. s.mu is held.
func (s *semaphore) give() {
	for s.used < s.max && len(s.waiting) > 0 {
		close(s.waiting[0])
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.used++
	}
}

func (s *semaphore) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}
