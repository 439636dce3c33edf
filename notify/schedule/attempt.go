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
	if p.inLine || p.inFlight >= p.width(now) || p.next() < 0 {
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
	if !l.inLine[line] && len(l.lines[line]) > 0 && l.mayAttempt(line) {
		l.inLine[line] = true
		s.lines[line] = append(s.lines[line], l)
	}
}

// dispatch begins attempts while there are slots. Endpoints not proven get half of the slots, so hanging ones keep no
// other endpoint waiting.
func (s *Scheduler) dispatch() {
	now := time.Now()
	for s.fast < s.slots && s.fast+s.slow < maxInFlight {
		p := s.next()
		if p == nil {
			return
		}
		p.inLine = false
		i := p.next()
		if i < 0 || p.inFlight >= p.width(now) {
			continue // it has changed while it was in line
		}
		a := &Attempt{Job: p.ready[i], to: p, unproven: !p.proven(now), retry: p.breaker.failures > 0}
		copy(p.ready[1:], p.ready[:i]) // those before it, of paused Queues
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
		a.queue.attempts.Go(func() {
			defer s.end(a)
			a.queue.config.Run(a)
		})
	}
}

// next takes an endpoint of the first Leader in the present line, or in the next line free to proceed. A Leader with
// more endpoints there goes to the end of the line.
func (s *Scheduler) next() *endpoint {
	mayAttempt := s.unproven < max(1, s.slots/2) && s.fast+s.slow < maxInFlight-reserved
	for range s.lines {
		s.turn = (s.turn + 1) % len(s.lines)
		line := s.turn
		if line != provenLine && !mayAttempt || line == failingLine && s.retries >= maxRetries {
			continue
		}
		for len(s.lines[line]) > 0 {
			l := s.lines[line][0]
			s.lines[line][0] = nil
			s.lines[line] = s.lines[line][1:]
			l.inLine[line] = false
			if !l.mayAttempt(line) {
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

// giveSlotBack takes the slot from a long attempt.
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

// Report records an attempt's outcome for its endpoint. If the endpoint's breaker opens, its deliveries leave memory,
// and Report returns the outboxes of this Queue: they are due later.
func (q *Queue) Report(a *Attempt, o *delivery.Outcome) (outboxes []string) {
	switch o.Result {
	case delivery.Undeliverable, delivery.Internal, delivery.Canceled:
		return nil
	}
	now := time.Now()
	q.mu.Lock()
	p := a.to
	p.used = now
	var opened, closed bool
	wasClosed := p.breaker.until.IsZero()
	if o.Result == delivery.Unavailable {
		if opened = p.breaker.fail(now); o.RetryAfter > 0 {
			opened = p.breaker.hold(now, o.RetryAfter) || opened
		}
		if opened {
			outboxes = q.drain(p)
			for len(p.ready) > 0 { // of other Queues: their scans postpone them
				other := p.ready[0].queue
				other.drain(p)
				other.Rescan(now)
			}
		}
	} else {
		closed = p.breaker.succeed()
		if o.Result == delivery.Delivered {
			p.deliveredAt = now
		}
	}
	failures, until := p.breaker.failures, p.breaker.until
	q.mu.Unlock()
	switch {
	case opened && wasClosed:
		q.config.Log().Warn("a webhook endpoint does not work; its deliveries wait",
			"endpoint", p.name, "failures", failures, "until", until, "error", o.Error)
	case closed:
		q.config.Log().Warn("a webhook endpoint works again", "endpoint", p.name)
	}
	return outboxes
}
