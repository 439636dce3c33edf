// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"time"

	"github.com/aip-gateway/aip-gateway/notify/delivery"
)

// Attempt is an attempt in flight.
type Attempt struct {
	Job
	to       *endpoint
	unproven bool
	retry    bool
	slow     bool // has given its slot back
	ended    bool
	timer    *time.Timer
}

// enqueue puts an endpoint into a line if it has deliveries and may have another attempt in flight.
func (s *Scheduler) enqueue(p *endpoint, now time.Time) {
	if p.inLine || len(p.ready) == 0 || p.inFlight >= p.width(now) {
		return
	}
	p.inLine = true
	line := newLine
	switch {
	case p.proven(now):
		line = provenLine
	case p.breaker.failures > 0:
		line = failingLine
	}
	l := p.of
	l.lines[line] = append(l.lines[line], p)
	s.enqueueLeader(l, line)
}

// enqueueLeader puts a Leader into a line if it has endpoints there and may have another attempt in flight.
func (s *Scheduler) enqueueLeader(l *leader, line int) {
	if !l.inLine[line] && len(l.lines[line]) > 0 && s.mayAttempt(l, line) {
		l.inLine[line] = true
		s.lines[line] = append(s.lines[line], l)
	}
}

// dispatch begins attempts while there are slots. Endpoints that are not proven get half of the slots, so that those
// that hang keep no other endpoint waiting.
func (s *Scheduler) dispatch() {
	if !s.running || s.isPaused() {
		return
	}
	now := time.Now()
	for s.fast < s.part(s.slots) && s.fast+s.slow < s.part(maxInFlight) {
		p := s.next()
		if p == nil {
			return
		}
		p.inLine = false
		if len(p.ready) == 0 || p.inFlight >= p.width(now) {
			continue // it has changed while it was in line
		}
		a := &Attempt{Job: p.ready[0], to: p, unproven: !p.proven(now), retry: p.breaker.failures > 0}
		p.ready = p.ready[1:]
		s.ready--
		p.of.ready--
		p.inFlight++
		p.of.inFlight++
		p.used = now
		s.fast++
		after := slowAfter
		if a.unproven {
			s.unproven++
			p.of.unproven++
			after = slowAfterUnproven
		}
		if a.retry {
			s.retries++
			p.of.retries++
		}
		s.enqueue(p, now)
		s.capacityFreed(p, now)
		a.timer = time.AfterFunc(after, func() { s.giveSlotBack(a) })
		s.attempts.Go(func() {
			defer s.end(a)
			s.config.Run(a)
		})
	}
}

// next takes an endpoint of the Leader that is first in the line whose turn it is, or in the next line that may
// proceed. A Leader that has more endpoints there goes to the end of the line.
func (s *Scheduler) next() *endpoint {
	mayAttempt := s.unproven < s.part(s.slots/2) && s.fast+s.slow < s.part(maxInFlight-reserved)
	for range s.lines {
		s.turn = (s.turn + 1) % len(s.lines)
		line := s.turn
		if line != provenLine && !mayAttempt || line == failingLine && s.retries >= s.part(maxRetries) {
			continue
		}
		for len(s.lines[line]) > 0 {
			l := s.lines[line][0]
			s.lines[line][0] = nil
			s.lines[line] = s.lines[line][1:]
			l.inLine[line] = false
			if !s.mayAttempt(l, line) {
				continue // end puts it into the line again
			}
			p := l.lines[line][0]
			l.lines[line][0] = nil
			l.lines[line] = l.lines[line][1:]
			s.enqueueLeader(l, line)
			return p
		}
	}
	return nil
}

// giveSlotBack takes the slot from an attempt that takes long.
func (s *Scheduler) giveSlotBack(a *Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.ended || a.slow {
		return
	}
	a.slow = true
	s.slow++
	s.fast--
	if a.unproven {
		s.unproven--
	}
	s.dispatch()
}

// end ends an attempt.
func (s *Scheduler) end(a *Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.ended = true
	a.timer.Stop()
	l := a.to.of
	l.inFlight--
	if a.unproven {
		l.unproven--
	}
	if a.retry {
		s.retries--
		l.retries--
	}
	if a.slow {
		s.slow--
	} else {
		s.fast--
		if a.unproven {
			s.unproven--
		}
	}
	now := time.Now()
	a.to.inFlight--
	for line := range l.lines {
		s.enqueueLeader(l, line)
	}
	s.enqueue(a.to, now)
	s.capacityFreed(a.to, now)
	s.dispatch()
}

// Report records what an attempt says of its endpoint. Where the endpoint's breaker opens, its deliveries leave memory,
// and Report returns their outboxes: they are due later.
func (s *Scheduler) Report(a *Attempt, o *delivery.Outcome) (outboxes []string) {
	switch o.Result {
	case delivery.Undeliverable, delivery.Internal, delivery.Canceled:
		return nil
	}
	now := time.Now()
	s.mu.Lock()
	p := a.to
	p.used = now
	var opened, closed bool
	wasClosed := p.breaker.until.IsZero()
	if o.Result == delivery.Unavailable {
		if opened = p.breaker.fail(now); o.RetryAfter > 0 {
			opened = p.breaker.hold(now, o.RetryAfter) || opened
		}
		if opened {
			outboxes = s.drain(p)
		}
	} else {
		closed = p.breaker.succeed()
		if o.Result == delivery.Delivered {
			p.deliveredAt = now
		}
	}
	failures, until := p.breaker.failures, p.breaker.until
	s.mu.Unlock()
	switch {
	case opened && wasClosed:
		s.config.Log().Warn("a webhook endpoint does not work; its deliveries wait",
			"endpoint", p.name, "failures", failures, "until", until, "error", o.Error)
	case closed:
		s.config.Log().Warn("a webhook endpoint works again", "endpoint", p.name)
	}
	return outboxes
}
