// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"log/slog"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

const (
	// waitingPerSlot is the most turns waiting for each slot. A Leader may have as many of them as are left for others, so
	// a Leader alone has half.
	waitingPerSlot = 16
	// One of questionShare slots is reserved for requests with an answer due soon: get, cancel and others.
	questionShare = 8
	maxQuestions  = 256
)

// Slots bound the open requests to an agent, and with them the connections to it. One part is for requests with an
// answer at the end of a turn, the other for requests with an answer due soon, so neither delays the other. A polled
// turn has a slot only during each poll. Slots may be used by any number of goroutines, and by several agents at once.
type Slots struct {
	max              int
	turns, questions semaphore

	// Log lines: turns wait for a slot, or for a file descriptor.
	waits, starved oncePerMinute
}

// NewSlots returns slots for n requests at once, at least 2. perLeader is the most turns of one Leader with a slot; 0
// is no bound.
func NewSlots(n, perLeader int) *Slots {
	n = max(n, 2)
	asks := min(max(n/questionShare, 1), maxQuestions)
	return &Slots{max: n, turns: semaphore{max: n - asks, perKey: perLeader}, questions: semaphore{max: asks}}
}

// Use returns the number of turns with a slot now, and the number of turns waiting for one.
func (s *Slots) Use() (used, waiting int) {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	return s.turns.used, s.turns.waiting
}

// admit returns an error of kind LimitExceeded if too many turns wait already: of the Leader, or of all. Turns admitted
// at the same moment may exceed the bound by their number.
func (s *Slots) admit(leader string) error {
	own, all := s.turns.queued(leader)
	if left := waitingPerSlot*s.max - all; own < left {
		return nil
	}
	if own == 0 {
		return task.Errorf(task.LimitExceeded, "the agent is busy: it has %d runs, and %d more wait; try again later",
			s.max, all).
			WithData("limit", "max_runs").WithData("max", s.max)
	}
	return task.Errorf(task.LimitExceeded,
		"the agent is busy: it has %d runs, and %d of your tasks wait for one; try again later", s.max, own).
		WithData("limit", "max_runs").WithData("max", s.max)
}

// oncePerMinute limits the writing of a log line common to many turns.
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

// acquire waits for a slot for the turn, and reports the wait. Without an error, the caller must release the slot.
func (r *run) acquire() error {
	slots, leader := r.config.Slots, r.turn.Leader
	if slots.turns.try(leader, 1) {
		return nil
	}
	if !r.report(agent.Report{Delivery: agent.DeliveryQueued}) {
		return ErrAbandoned
	}
	if slots.waits.due() {
		_, waiting := slots.turns.queued(leader)
		r.log.LogAttrs(r.ctx, slog.LevelInfo, "turns wait for a free run of the agent",
			slog.Int("waiting", waiting+1), slog.Int("max_runs", slots.max))
	}
	if !slots.turns.acquire(r.ctx, leader) {
		return Ended(r.ctx)
	}
	if !r.report(agent.Report{Delivery: agent.DeliverySending}) {
		slots.turns.release(leader)
		return ErrAbandoned
	}
	return nil
}
