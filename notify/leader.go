// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"hash/maphash"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/quota"
)

// leader is what memory holds of one Leader's webhooks. Each Leader has endpoints, breakers and a share of all attempts
// of its own, so that what one Leader's receivers do delays no other Leader. It is guarded by the schedule's lock.
type leader struct {
	key       string
	endpoints map[string]*endpoint // by scheme://host:port

	ready   int // deliveries that wait
	flying  int // attempts under way
	untried int // of these, those at endpoints that are not proven
	retries int // of these, those at endpoints that have failed

	lines  [3][]*endpoint // endpoints whose turn will come
	inLine [3]bool        // stands in the schedule's line of the same number

	full    bool      // deliveries were left in the store for want of room
	crowded time.Time // before this, no other endpoint is looked for room for
}

// The most that one Leader may have of what all Leaders share.
const (
	leaderEndpoints = 1024
	leaderReady     = maxReady / 8 * 7
	leaderFlying    = 896 // of maxFlying
	leaderUntried   = (maxFlying - reserved) / 8 * 7
	leaderRetries   = maxRetries / 8 * 7
)

// mayTry reports whether an attempt at an endpoint of a line may begin.
func (l *leader) mayTry(line int) bool {
	return l.flying < leaderFlying && (line == provenLine || l.untried < leaderUntried) &&
		(line != failingLine || l.retries < leaderRetries)
}

// leaderOf returns the Leader of an outbox. One who has no endpoints is not kept.
func (s *schedule) leaderOf(outbox string) *leader {
	_, name, _ := logname.Split(outbox)
	key := quota.Key(name)
	l := s.leaders[key]
	if l == nil {
		l = &leader{key: key, endpoints: make(map[string]*endpoint)}
	}
	return l
}

// breakerOf returns the breaker of an endpoint of a Leader, wherever it is kept.
func (s *schedule) breakerOf(l *leader, name string) breaker {
	if p := l.endpoints[name]; p != nil {
		return p.breaker
	}
	return s.asleep[s.asleepKey(l.key, name)].breaker()
}

// endpoint returns the one of a Leader and a name, or nil if there are too many.
func (s *schedule) endpoint(l *leader, name string, now time.Time) *endpoint {
	p := l.endpoints[name]
	if p != nil || l.crowded.After(now) {
		return p
	}
	if !s.makeRoom(l, now) {
		l.crowded = now.Add(crowded)
		return nil
	}
	key := s.asleepKey(l.key, name)
	p = &endpoint{of: l, name: name, used: now, breaker: s.asleep[key].breaker()}
	delete(s.asleep, key)
	l.endpoints[name] = p
	s.leaders[l.key] = l
	s.known++
	return p
}

// makeRoom makes room for another endpoint of a Leader, and reports whether there is any. Endpoints at which something
// waits or is under way stay. Of the others, those go first of which nothing is known, then those that fail, whose
// breakers are kept. Those that work go for nobody but their own Leader.
func (s *schedule) makeRoom(l *leader, now time.Time) bool {
	n, most := len(l.endpoints), s.mostOfOne
	if n >= most && !s.evict(l, now) && !s.evictOldest(l) {
		return false
	}
	if n >= most/8 && n&(n-1) == 0 {
		s.sweep(l, now)
	}
	if s.known < s.most || n > 0 && s.evict(l, now) {
		return true
	}
	for _, other := range s.leaders {
		if len(other.endpoints) > n && s.evict(other, now) {
			return true
		}
	}
	return false
}

// sweep forgets the endpoints of a Leader of which nothing is known. It reports whether there were any.
func (s *schedule) sweep(l *leader, now time.Time) bool {
	before := s.known
	for _, p := range l.endpoints {
		if p.idle(now) && !p.proven(now) {
			s.drop(p)
		}
	}
	return s.known < before
}

// evict forgets some endpoints of a Leader that do not work. It reports whether there were any.
func (s *schedule) evict(l *leader, now time.Time) bool {
	if s.sweep(l, now) {
		return true
	}
	before := s.known
	for _, p := range l.endpoints {
		if before-s.known == max(1, s.mostOfOne/16) {
			break
		}
		if p.unused() && !p.proven(now) {
			s.sleep(p, now)
			s.drop(p)
		}
	}
	return s.known < before
}

// evictOldest forgets the endpoint of a Leader at which nothing has happened for the longest time.
func (s *schedule) evictOldest(l *leader) bool {
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
func (s *schedule) drop(p *endpoint) {
	delete(p.of.endpoints, p.name)
	s.known--
	if len(p.of.endpoints) == 0 {
		delete(s.leaders, p.of.key)
	}
}

// asleepKey names the endpoint of a Leader by two hashes.
type asleepKey struct{ leader, endpoint uint64 }

// asleepBreaker is the breaker of an endpoint that is not in memory, in a third of its size.
type asleepBreaker struct {
	until    int64 // in ms since 1970; 0 while it is closed
	used     int64 // likewise, when the endpoint last had anything to do
	failures uint16
	trips    uint16
}

// maxAsleep is the number of breakers of endpoints that are not in memory. Beyond it any of them is forgotten, which
// means that its endpoint is tried as often as a new one.
const maxAsleep = 1 << 16

func (a asleepBreaker) breaker() breaker {
	b := breaker{failures: int(a.failures), trips: int(a.trips)}
	if a.until != 0 {
		b.until = time.UnixMilli(a.until)
	}
	return b
}

func (s *schedule) asleepKey(leader, endpoint string) asleepKey {
	return asleepKey{maphash.String(s.engine.seed, leader), maphash.String(s.engine.seed, endpoint)}
}

// sleep keeps the breaker of an endpoint that goes out of memory.
func (s *schedule) sleep(p *endpoint, now time.Time) {
	if len(s.asleep) >= maxAsleep {
		old := now.Add(-breakMost).UnixMilli()
		for key, a := range s.asleep {
			if max(a.until, a.used) < old {
				delete(s.asleep, key)
			}
		}
		for key := range s.asleep {
			if len(s.asleep) < maxAsleep {
				break
			}
			delete(s.asleep, key)
		}
	}
	b := &p.breaker
	a := asleepBreaker{used: p.used.UnixMilli()}
	a.failures, a.trips = uint16(min(b.failures, 1<<15)), uint16(min(b.trips, 1<<15))
	if !b.until.IsZero() {
		a.until = b.until.UnixMilli()
	}
	s.asleep[s.asleepKey(p.of.key, p.name)] = a
}
