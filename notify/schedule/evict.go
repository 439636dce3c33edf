// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"hash/maphash"
	"time"
)

// This is not an LRU cache: the endpoint dropped first is not the one unused for the longest time.

// admit reports whether another endpoint of a Leader may be kept, and drops others for it. Endpoints with deliveries
// waiting or in flight stay. Of the others, unknown endpoints are dropped first, then failing endpoints: their breakers
// become dormant. A working endpoint is dropped for its own Leader only.
func (s *Scheduler) admit(l *leader, now time.Time) bool {
	n, most := len(l.endpoints), s.limits.EndpointsPerLeader
	if n >= most && !s.evict(l, now) && !s.evictOldest(l) {
		return false
	}
	if n >= most/8 && n&(n-1) == 0 {
		s.sweep(l, now)
	}
	if s.endpoints < s.limits.Endpoints || n > 0 && s.evict(l, now) {
		return true
	}
	for _, other := range s.leaders {
		if len(other.endpoints) > n && s.evict(other, now) {
			return true
		}
	}
	return false
}

// sweep forgets the unknown endpoints of a Leader, and reports whether there were any.
func (s *Scheduler) sweep(l *leader, now time.Time) bool {
	before := s.endpoints
	for _, p := range l.endpoints {
		if p.idle(now) && !p.proven(now) {
			s.drop(p)
		}
	}
	return s.endpoints < before
}

// evict forgets some unproven endpoints of a Leader, and reports whether there were any.
func (s *Scheduler) evict(l *leader, now time.Time) bool {
	if s.sweep(l, now) {
		return true
	}
	before := s.endpoints
	for _, p := range l.endpoints {
		if before-s.endpoints == max(1, s.limits.EndpointsPerLeader/16) {
			break
		}
		if p.unused() && !p.proven(now) {
			s.dormant.Add(s.dormantKey(l.key, p.name), p.breaker)
			s.drop(p)
		}
	}
	return s.endpoints < before
}

// evictOldest forgets the endpoint of a Leader unused for the longest time, and reports whether there was one.
func (s *Scheduler) evictOldest(l *leader) bool {
	var oldest *endpoint
	for _, p := range l.endpoints {
		if p.unused() && (oldest == nil || p.used.Before(oldest.used)) {
			oldest = p
		}
	}
	if oldest == nil {
		return false
	}
	s.drop(oldest)
	return true
}

// drop takes an endpoint out of memory.
func (s *Scheduler) drop(p *endpoint) {
	delete(p.of.endpoints, p.name)
	s.endpoints--
	if len(p.of.endpoints) == 0 {
		delete(s.leaders, p.of.key)
	}
}

// dormantKey names the endpoint of a Leader by two hashes.
type dormantKey struct{ leader, endpoint uint64 }

func (s *Scheduler) dormantKey(leader, endpoint string) dormantKey {
	return dormantKey{maphash.String(s.seed, leader), maphash.String(s.seed, endpoint)}
}

// maxDormant is the number of breakers of endpoints not in memory. Beyond it the oldest is forgotten: its endpoint is
// then attempted as often as a new one.
const maxDormant = 1 << 16
