// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// schedule decides which delivery has its turn. It holds deliveries that are due, up to a bound, by endpoint;
// the endpoints stand in line and take turns.
//
// Locks: a box's before the schedule's, never the other way round.
type schedule struct {
	engine *Engine

	mu              sync.Mutex // guards all below, and the endpoints
	running         bool
	slots           int
	leaders         map[string]*leader // those with endpoints in memory, by quota.Key
	known           int                // endpoints of all of them
	most, mostOfOne int                // endpoints of all Leaders, and of one: maxEndpoints and leaderEndpoints, but for tests
	asleep          map[asleepKey]asleepBreaker
	disabled        map[string]time.Time // endpoints, since when

	jobs  map[string][]string // ids of the webhooks of an outbox whose delivery is in memory, waiting or under way
	ready int                 // deliveries that wait
	lines [3][]*leader        // Leaders whose turn will come, by what is known of their endpoints
	turn  int                 // the line whose turn it is

	fast    int // attempts that hold a slot
	untried int // of these, those at endpoints that are not proven
	slow    int // attempts that have given their slot back
	retries int // attempts, with a slot or without, at endpoints that have failed

	full   bool                 // deliveries were left in the store for want of room for all
	leftAt time.Time            // the earliest time of what was left since the last scan; replay.EndOfTime for nothing
	leftOf map[uint64]blocker   // hashes of outboxes that were left for one reason
	shut   <-chan struct{}      // no attempt begins before it is closed; nil for none
	sore   map[string]time.Time // outboxes that the store would not write, and when to try again
}

// job is a delivery that is due: the next one of a webhook.
type job struct {
	outbox, webhook string
	to              *endpoint
}

// flight is an attempt under way.
type flight struct {
	job
	untried bool
	retry   bool
	slow    bool
	landed  bool
	timer   *time.Timer
}

// The lines: endpoints that have answered well lately, those of which nothing is known, and those that have failed.
// One that is new must not wait for a thousand that fail.
const (
	provenLine = iota
	newLine
	failingLine
)

const (
	maxReady     = 4096 // deliveries that wait in memory, beside one for each endpoint
	maxFlying    = 1024 // attempts under way
	reserved     = 64   // of these, for endpoints that are proven
	maxRetries   = 512  // of these, at endpoints that have failed
	slowAfter    = time.Second
	slowUntried  = 100 * time.Millisecond // likewise, at an endpoint that is not proven: many of them hang
	maxEndpoints = 16384                  // endpoints in memory; beyond it, deliveries to others wait in the store
	crowded      = 5 * time.Second        // when to look again for room for another endpoint
	maxLeftOf    = 1 << 16                // beyond it, a scan reads more heads than it must
	maxSore      = 1024                   // beyond it, any one is tried again too early
	soreFor      = 10 * time.Second
	disabledFor  = time.Hour // how long what is due at a disabled endpoint is put off at a time
	soon         = time.Second
)

func (s *schedule) init(e *Engine) {
	s.engine = e
	s.leaders = make(map[string]*leader)
	s.most, s.mostOfOne = maxEndpoints, leaderEndpoints
	s.asleep = make(map[asleepKey]asleepBreaker)
	s.disabled = make(map[string]time.Time)
	s.jobs = make(map[string][]string)
	s.leftOf = make(map[uint64]blocker)
	s.sore = make(map[string]time.Time)
	s.leftAt = replay.EndOfTime
}

// start begins, or goes on with another number of slots.
func (s *schedule) start(slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine.base.Err() == nil {
		s.running, s.slots = true, slots
		s.dispatch()
	}
}

// halt ends dispatching for good.
func (s *schedule) halt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// gate returns when to come back with what is due of an outbox at an endpoint, or the zero time if it may be delivered
// now.
func (s *schedule) gate(outbox, name string, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, off := s.disabled[name]; off {
		return now.Add(jitter(disabledFor, 0.2))
	}
	if b := s.breakerOf(s.leaderOf(outbox), name); b.open(now) {
		return b.after(now)
	}
	return time.Time{}
}

// queue lets an endpoint stand in line if it has anything to do and may do more at the same time.
func (s *schedule) queue(p *endpoint, now time.Time) {
	if p.inLine || len(p.ready) == 0 || p.flying >= p.width(now) {
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
	s.lineUp(l, line)
}

// lineUp lets a Leader stand in a line if it has endpoints there and may try one.
func (s *schedule) lineUp(l *leader, line int) {
	if !l.inLine[line] && len(l.lines[line]) > 0 && l.mayTry(line) {
		l.inLine[line] = true
		s.lines[line] = append(s.lines[line], l)
	}
}

// dispatch starts attempts while there are slots. Endpoints that are not proven get half of the slots, so that
// those which hang keep nobody else from being tried.
func (s *schedule) dispatch() {
	if !s.running || s.paused() {
		return
	}
	now := time.Now()
	for s.fast < s.slots && s.fast+s.slow < maxFlying {
		p := s.pop()
		if p == nil {
			return
		}
		p.inLine = false
		if len(p.ready) == 0 || p.flying >= p.width(now) {
			continue // it has changed while it stood in line
		}
		f := &flight{job: p.ready[0], untried: !p.proven(now), retry: p.breaker.failures > 0}
		p.ready = p.ready[1:]
		s.ready--
		p.of.ready--
		p.flying++
		p.of.flying++
		p.used = now
		s.fast++
		after := slowAfter
		if f.untried {
			s.untried++
			p.of.untried++
			after = slowUntried
		}
		if f.retry {
			s.retries++
			p.of.retries++
		}
		s.queue(p, now)
		s.room(p, now)
		f.timer = time.AfterFunc(after, func() { s.slowDown(f) })
		s.engine.work.Go(func() { s.engine.run(f) })
	}
}

// pop takes an endpoint of the Leader who is the first in the line whose turn it is, or in the next one that may go on.
// A Leader who has more endpoints there goes to the end of the line.
func (s *schedule) pop() *endpoint {
	mayTry := s.untried < max(1, s.slots/2) && s.fast+s.slow < maxFlying-reserved
	for range s.lines {
		s.turn = (s.turn + 1) % len(s.lines)
		line := s.turn
		if line != provenLine && !mayTry || line == failingLine && s.retries >= maxRetries {
			continue
		}
		for len(s.lines[line]) > 0 {
			l := s.lines[line][0]
			s.lines[line][0] = nil
			s.lines[line] = s.lines[line][1:]
			l.inLine[line] = false
			if !l.mayTry(line) {
				continue // land lets it stand in line again
			}
			p := l.lines[line][0]
			l.lines[line][0] = nil
			l.lines[line] = l.lines[line][1:]
			s.lineUp(l, line)
			return p
		}
	}
	return nil
}

// room tells the keeper when what was left in the store has room.
func (s *schedule) room(p *endpoint, now time.Time) {
	if p.skipped && len(p.ready) <= p.quota(now)/2 {
		p.skipped = false
		if p.proven(now) {
			s.engine.alarm.At(now)
		} else {
			s.engine.alarm.At(now.Add(soon)) // there may be many of them, and none has much to gain
		}
	}
	if s.full && s.ready <= maxReady/2 || p.of.full && p.of.ready <= leaderReady/2 {
		s.full, p.of.full = s.full && s.ready > maxReady/2, false
		s.engine.alarm.At(now)
	}
}

// slowDown takes the slot from an attempt that takes long.
func (s *schedule) slowDown(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.landed || f.slow {
		return
	}
	f.slow = true
	s.slow++
	s.fast--
	if f.untried {
		s.untried--
	}
	s.dispatch()
}

// land ends an attempt.
func (s *schedule) land(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.landed = true
	f.timer.Stop()
	l := f.to.of
	l.flying--
	if f.untried {
		l.untried--
	}
	if f.retry {
		s.retries--
		l.retries--
	}
	if f.slow {
		s.slow--
	} else {
		s.fast--
		if f.untried {
			s.untried--
		}
	}
	now := time.Now()
	f.to.flying--
	for line := range l.lines {
		s.lineUp(l, line)
	}
	s.queue(f.to, now)
	s.room(f.to, now)
	s.dispatch()
}

// forget takes a delivery out of memory, so that the next one of its webhook may come.
func (s *schedule) forget(j job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlist(j)
}

func (s *schedule) unlist(j job) {
	ids := s.jobs[j.outbox]
	if i := slices.Index(ids, j.webhook); i >= 0 {
		ids = slices.Delete(ids, i, i+1)
	}
	if s.jobs[j.outbox] = ids; len(ids) == 0 {
		delete(s.jobs, j.outbox)
	}
}

// drain takes all that waits for an endpoint out of memory, for readmit.
func (s *schedule) drain(p *endpoint) []job {
	drained := p.ready
	p.ready = nil
	s.ready -= len(drained)
	p.of.ready -= len(drained)
	for _, j := range drained {
		s.unlist(j)
	}
	s.room(p, time.Now())
	return drained
}

// suffer keeps an outbox from being delivered for a while: the store would not write what came of an attempt,
// and the receiver is not to get the same again at once.
func (s *schedule) suffer(outbox string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sore) >= maxSore {
		for one := range s.sore {
			delete(s.sore, one)
			break
		}
	}
	s.sore[outbox] = now.Add(soreFor)
	s.leftAt = afterRestart
	s.engine.alarm.At(now.Add(soreFor))
}

// pause begins no attempt before reopened is closed: what comes of an attempt cannot be stored, so that the receiver would
// get the same again and again.
func (s *schedule) pause(reopened <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = reopened
}

// paused reports whether no attempt may begin.
func (s *schedule) paused() bool {
	if s.shut == nil {
		return false
	}
	select {
	case <-s.shut:
		s.shut = nil
		return false
	default:
		return true
	}
}

// resume goes on after the store has been reopened.
func (s *schedule) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sore)
	s.leftAt = afterRestart
	s.engine.alarm.At(time.Now())
	s.dispatch()
}
