// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// leader is the memory of one Leader's webhooks. Each Leader has endpoints, breakers and a share of all attempts of its
// own, so the receivers of one Leader delay no other Leader.
type leader struct {
	key       string               // as given to Offer
	endpoints map[string]*endpoint // by scheme://host:port

	ready    int // waiting deliveries
	inFlight int // attempts
	unproven int // of these, those at endpoints not proven
	retries  int // of these, those at failed endpoints

	lines  [3][]*endpoint // endpoints waiting for their turn
	inLine [3]bool        // waits in the Scheduler's line of the same number

	full      leftBy    // those with its deliveries in the store, because all its places in memory were taken
	fullUntil time.Time // before this, no other endpoint is admitted
}

// The most for one Leader of the things shared by all Leaders.
const (
	leaderEndpoints = 1024
	leaderReady     = maxReady / 8 * 7
	leaderInFlight  = 896 // of maxInFlight
	leaderUnproven  = (maxInFlight - reserved) / 8 * 7
	leaderRetries   = maxRetries / 8 * 7
)

// fullFor is the wait of a Leader without room for another endpoint before it looks for room again.
const fullFor = 5 * time.Second

// mayAttempt reports whether an attempt at an endpoint of a line may begin.
func (l *leader) mayAttempt(line int) bool {
	return l.inFlight < leaderInFlight && (line == provenLine || l.unproven < leaderUnproven) &&
		(line != failingLine || l.retries < leaderRetries)
}

// leaderOf returns a Leader. One without endpoints is not kept.
func (s *Scheduler) leaderOf(key string) *leader {
	l := s.leaders[key]
	if l == nil {
		l = &leader{key: key, endpoints: make(map[string]*endpoint)}
	}
	return l
}

// breakerOf returns the breaker of an endpoint of a Leader, in memory or dormant.
func (s *Scheduler) breakerOf(l *leader, name string) breaker {
	if p := l.endpoints[name]; p != nil {
		return p.breaker
	}
	b, _ := s.dormant.Peek(s.dormantKey(l.key, name))
	return b
}

// endpoint returns the endpoint of a Leader and a name, or nil if there are too many.
func (s *Scheduler) endpoint(l *leader, name string, now time.Time) *endpoint {
	p := l.endpoints[name]
	if p != nil || l.fullUntil.After(now) {
		return p
	}
	if !s.admit(l, now) {
		l.fullUntil = now.Add(fullFor)
		return nil
	}
	key := s.dormantKey(l.key, name)
	p = &endpoint{of: l, name: name, used: now}
	p.breaker, _ = s.dormant.Peek(key)
	s.dormant.Remove(key)
	l.endpoints[name] = p
	s.leaders[l.key] = l
	s.endpoints++
	return p
}
