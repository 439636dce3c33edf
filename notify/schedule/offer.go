// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// maxLeftFor bounds Scheduler.leftFor. Beyond it, a scan reads more outboxes than it must.
const maxLeftFor = 1 << 16

// blocker is why a delivery was left in the store: an endpoint has too many, or a Leader too many endpoints. The zero
// blocker is any other reason.
type blocker struct {
	endpoint *endpoint
	leader   *leader
}

// gone reports whether the reason has passed.
func (b blocker) gone(now time.Time) bool {
	if b.endpoint != nil {
		return len(b.endpoint.ready) < b.endpoint.quota(now)
	}
	return !b.leader.fullUntil.After(now)
}

// Due is a delivery of an outbox that is due.
type Due struct{ Webhook, Endpoint string }

// Offer takes the due deliveries of a Leader's outbox into memory, as far as there is room and they are not in memory
// already, and leaves the others in the store. at is when the outbox is due there: where that is later than now, Offer
// asks for a scan then.
func (s *Scheduler) Offer(outbox, leader string, due []Due, at, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left, by := 0, blocker{}
	for _, d := range due {
		reason, ok := s.take(Job{outbox, d.Webhook, d.Endpoint}, leader, now)
		if ok {
			continue
		}
		if left++; left == 1 {
			by = reason
		} else if by != reason {
			by = blocker{}
		}
	}
	if left > 0 {
		s.config.Leave(at)
		if by != (blocker{}) && len(s.leftFor) < maxLeftFor {
			s.leftFor[maphash.String(s.seed, outbox)] = by
		}
	}
	if at.After(now) {
		s.config.Wake(at)
	}
	s.dispatch()
}

// take takes a delivery into memory if there is room. If not, it returns why.
func (s *Scheduler) take(j Job, leader string, now time.Time) (blocker, bool) {
	if slices.Contains(s.jobs[j.Outbox], j.Webhook) {
		return blocker{}, true
	}
	if !s.running {
		return blocker{}, false // a scan follows Start
	}
	if until, held := s.inQuarantine(j.Outbox, now); held {
		s.config.Wake(until)
		return blocker{}, false
	}
	l := s.leaderOf(leader)
	if b := s.breakerOf(l, j.Endpoint); s.disabled[j.Endpoint] || b.open(now) {
		s.config.Wake(now.Add(soon)) // since a moment ago; the next scan postpones the delivery
		return blocker{}, false
	}
	p := s.endpoint(l, j.Endpoint, now)
	if p == nil {
		s.config.Wake(l.fullUntil)
		return blocker{leader: l}, false
	}
	if len(p.ready) >= p.quota(now) {
		p.skipped = true
		return blocker{endpoint: p}, false
	}
	if len(p.ready)+p.inFlight > 0 && (s.ready >= s.part(maxReady) || l.ready >= s.part(leaderReady)) {
		s.full = s.full || s.ready >= s.part(maxReady)
		l.full = l.full || l.ready >= s.part(leaderReady)
		return blocker{}, false
	}
	s.jobs[j.Outbox] = append(s.jobs[j.Outbox], j.Webhook)
	p.ready = append(p.ready, j)
	p.used = now
	s.ready++
	l.ready++
	s.enqueue(p, now)
	return blocker{}, true
}

// capacityFreed asks for a scan where what was left in the store fits into memory again.
func (s *Scheduler) capacityFreed(p *endpoint, now time.Time) {
	if p.skipped && len(p.ready) <= p.quota(now)/2 {
		p.skipped = false
		if p.proven(now) {
			s.config.Wake(now)
		} else {
			s.config.Wake(now.Add(soon)) // there may be many of them, and none has much to gain
		}
	}
	if half := s.part(maxReady / 2); s.full && s.ready <= half || p.of.full && p.of.ready <= s.part(leaderReady/2) {
		s.full, p.of.full = s.full && s.ready > half, false
		s.config.Wake(now)
	}
}

// HoldUntil returns the time until which a due delivery of a Leader to an endpoint must wait, zero if it may be
// attempted now. Deliveries that wait are spread over some time after it.
func (s *Scheduler) HoldUntil(leader, endpoint string, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disabled[endpoint] {
		return now.Add(Jitter(disabledFor))
	}
	if b := s.breakerOf(s.leaderOf(leader), endpoint); b.open(now) {
		return b.after(now)
	}
	return time.Time{}
}

// Skip reports whether a scan need not read an outbox that is due at a time: its deliveries are in memory, it is in
// quarantine, or what blocked its deliveries still does.
func (s *Scheduler) Skip(outbox string, at, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs[outbox]) > 0 {
		return true // the end of that delivery offers the others
	}
	if until, held := s.inQuarantine(outbox, now); held {
		s.config.Leave(at)
		s.config.Wake(until)
		return true
	}
	hash := maphash.String(s.seed, outbox)
	if by, left := s.leftFor[hash]; left {
		if !by.gone(now) {
			if by.endpoint != nil {
				by.endpoint.skipped = true
			}
			s.config.Leave(at)
			return true
		}
		delete(s.leftFor, hash)
	}
	return false
}

// Rescan asks for a scan of all outboxes that are due, at a time.
func (s *Scheduler) Rescan(at time.Time) {
	s.config.Leave(replay.StartOfTime)
	s.config.Wake(at)
}

// NothingLeft is called after a scan that has left nothing in the store that is due.
func (s *Scheduler) NothingLeft() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.leftFor)
}
