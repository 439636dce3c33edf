// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// maxLeftFor bounds Queue.leftFor. Beyond it, a scan reads more outboxes than it must.
const maxLeftFor = 1 << 16

// blocker is the reason a delivery was left in the store: an endpoint has too many, or a Leader too many endpoints. The
// zero blocker is any other reason.
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

// Due is a due delivery of an outbox.
type Due struct{ Webhook, Endpoint string }

// Offer takes the due deliveries of a Leader's outbox into memory, as far as there is room and they are not in memory
// already, and leaves the others in the store. at is when the outbox is due there: if it is later than now, Offer asks
// for a scan then.
func (q *Queue) Offer(outbox, leader string, due []Due, at, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	left, by := 0, blocker{}
	for _, d := range due {
		reason, ok := q.take(Job{outbox, d.Webhook, d.Endpoint, q}, leader, now)
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
		q.config.Leave(at)
		if by != (blocker{}) && len(q.leftFor) < maxLeftFor {
			q.leftFor[maphash.String(q.seed, outbox)] = by
		}
	}
	if at.After(now) {
		q.config.Wake(at)
	}
	q.dispatch()
}

// take takes a delivery into memory if there is room. If not, it returns the reason.
func (q *Queue) take(j Job, leader string, now time.Time) (blocker, bool) {
	if slices.Contains(q.jobs[j.Outbox], j.Webhook) {
		return blocker{}, true
	}
	if !q.running {
		return blocker{}, false // a scan follows Start
	}
	if until, held := q.inQuarantine(j.Outbox, now); held {
		q.config.Wake(until)
		return blocker{}, false
	}
	l := q.leaderOf(leader)
	if b := q.breakerOf(l, j.Endpoint); q.isDisabled(j.Endpoint) || b.open(now) {
		q.config.Wake(now.Add(soon)) // since a moment ago; the next scan postpones the delivery
		return blocker{}, false
	}
	p := q.endpoint(l, j.Endpoint, now)
	if p == nil {
		q.config.Wake(l.fullUntil)
		return blocker{leader: l}, false
	}
	if len(p.ready) >= p.quota(now) {
		p.skipped.add(q)
		return blocker{endpoint: p}, false
	}
	if len(p.ready)+p.inFlight > 0 && (q.ready >= maxReady || l.ready >= leaderReady) {
		if q.ready >= maxReady {
			q.full.add(q)
		}
		if l.ready >= leaderReady {
			l.full.add(q)
		}
		return blocker{}, false
	}
	q.jobs[j.Outbox] = append(q.jobs[j.Outbox], j.Webhook)
	p.ready = append(p.ready, j)
	p.used = now
	q.ready++
	l.ready++
	q.enqueue(p, now)
	return blocker{}, true
}

// capacityFreed asks for scans if deliveries left in the store fit into memory again.
func (s *Scheduler) capacityFreed(p *endpoint, now time.Time) {
	if len(p.ready) <= p.quota(now)/2 {
		at := now
		if !p.proven(now) {
			at = now.Add(soon) // there may be many of them, and none has much to gain
		}
		p.skipped.wake(at)
	}
	if s.ready <= maxReady/2 {
		s.full.wake(now)
	}
	if p.of.ready <= leaderReady/2 {
		p.of.full.wake(now)
	}
}

// HoldUntil returns the time until which a due delivery of a Leader to an endpoint must wait, zero if it may be
// attempted now. Waiting deliveries are spread over some time after it.
func (q *Queue) HoldUntil(leader, endpoint string, now time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isDisabled(endpoint) {
		return now.Add(Jitter(disabledFor))
	}
	if b := q.breakerOf(q.leaderOf(leader), endpoint); b.open(now) {
		return b.after(now)
	}
	return time.Time{}
}

// Skip reports whether a scan need not read an outbox due at a time: its deliveries are in memory, it is in quarantine,
// or they are still blocked.
func (q *Queue) Skip(outbox string, at, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs[outbox]) > 0 {
		return true // the end of the delivery offers the others
	}
	if until, held := q.inQuarantine(outbox, now); held {
		q.config.Leave(at)
		q.config.Wake(until)
		return true
	}
	hash := maphash.String(q.seed, outbox)
	if by, left := q.leftFor[hash]; left {
		if !by.gone(now) {
			if by.endpoint != nil {
				by.endpoint.skipped.add(q)
			}
			q.config.Leave(at)
			return true
		}
		delete(q.leftFor, hash)
	}
	return false
}

// Rescan asks for a scan of all due outboxes, at a time.
func (q *Queue) Rescan(at time.Time) {
	q.config.Leave(replay.StartOfTime)
	q.config.Wake(at)
}

// NothingLeft is called after a scan has left nothing due in the store.
func (q *Queue) NothingLeft() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.leftFor)
}
