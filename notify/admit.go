// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"hash/maphash"
	"slices"
	"time"
)

// blocker is why a delivery was left in the store: an endpoint has too many, or a Leader too many endpoints. The zero
// blocker is any other reason.
type blocker struct {
	endpoint *endpoint
	leader   *leader
}

// gone reports whether the reason has passed. The schedule's lock is held.
func (b blocker) gone(now time.Time) bool {
	if b.endpoint != nil {
		return len(b.endpoint.ready) < b.endpoint.quota(now)
	}
	return !b.leader.crowded.After(now)
}

// admit gives what is due in an outbox its place in line, or leaves it to be found in the store when there is
// room. What is due later is left to the keeper. b.mu is held.
func (b *box) admit(now time.Time) {
	s := &b.engine.sched
	wake, _ := b.note.wake()
	s.mu.Lock()
	defer s.mu.Unlock()
	left, by := 0, blocker{}
	for i := range b.note.Configs {
		c := &b.note.Configs[i]
		if _, due := b.note.due(c, now); !due {
			continue
		}
		reason, ok := s.enqueue(b.name, c, now)
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
		s.leftAt = earlier(s.leftAt, wake)
		if by != (blocker{}) && len(s.leftOf) < maxLeftOf {
			s.leftOf[maphash.String(b.engine.seed, b.name)] = by
		}
	}
	if wake.After(now) {
		b.engine.alarm.At(wake)
	}
	s.dispatch()
}

// enqueue puts the delivery of a webhook into memory, if there is room. If not, it returns why.
func (s *schedule) enqueue(outbox string, c *config, now time.Time) (blocker, bool) {
	if slices.Contains(s.jobs[outbox], c.Webhook.ID) {
		return blocker{}, true
	}
	if !s.running {
		return blocker{}, false // Configure looks at everything
	}
	if until, sore := s.sore[outbox]; sore {
		if until.After(now) {
			s.engine.alarm.At(until)
			return blocker{}, false
		}
		delete(s.sore, outbox)
	}
	name := endpointOf(c.Webhook.URL)
	l := s.leaderOf(outbox)
	_, off := s.disabled[name]
	if b := s.breakerOf(l, name); off || b.open(now) {
		s.engine.alarm.At(now.Add(soon)) // since a moment ago; the next look puts it off
		return blocker{}, false
	}
	p := s.endpoint(l, name, now)
	if p == nil {
		s.engine.alarm.At(l.crowded)
		return blocker{leader: l}, false
	}
	if len(p.ready) >= p.quota(now) {
		p.skipped = true
		return blocker{endpoint: p}, false
	}
	if len(p.ready)+p.flying > 0 && (s.ready >= maxReady || l.ready >= leaderReady) {
		s.full = s.full || s.ready >= maxReady
		l.full = l.full || l.ready >= leaderReady
		return blocker{}, false
	}
	s.jobs[outbox] = append(s.jobs[outbox], c.Webhook.ID)
	p.ready = append(p.ready, job{outbox, c.Webhook.ID, p})
	p.used = now
	s.ready++
	l.ready++
	s.queue(p, now)
	return blocker{}, true
}
