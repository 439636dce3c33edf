// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"time"
)

// endpoint is the state of one scheme, host and port for the webhooks of one Leader. Endpoints take turns, however many
// deliveries each of them has, and a failing one holds up only itself.
type endpoint struct {
	of          *leader
	name        string // scheme://host:port
	ready       []Job  // deliveries waiting for their turn, oldest first
	inFlight    int    // attempts
	breaker     breaker
	deliveredAt time.Time // when it last answered with 2xx
	used        time.Time // when it last had anything to do
	inLine      bool      // waits in one of the lines
	skipped     leftBy    // those with deliveries to it in the store, because too many waited in memory
}

// provenFor is the time of trust in an endpoint after an answer with 2xx.
const provenFor = 10 * time.Minute

// proven reports whether an endpoint has answered well lately. Others get one attempt at a time.
func (p *endpoint) proven(now time.Time) bool {
	return p.breaker.failures == 0 && !p.deliveredAt.IsZero() && now.Sub(p.deliveredAt) < provenFor
}

// InFlightPerEndpoint is the number of attempts in flight at one proven endpoint.
const InFlightPerEndpoint = 16

const (
	readyProven   = 1024 // waiting deliveries of one endpoint in memory; the others stay in the store
	readyUnproven = 2    // likewise, if it is not known to answer
)

// width is the most attempts in flight.
func (p *endpoint) width(now time.Time) int {
	if p.proven(now) {
		return InFlightPerEndpoint
	}
	return 1
}

// quota is the most deliveries waiting.
func (p *endpoint) quota(now time.Time) int {
	if p.proven(now) {
		return readyProven
	}
	return readyUnproven
}

// next returns the index of the next delivery to attempt: the oldest one of a Queue not paused. It is -1 for none.
func (p *endpoint) next() int {
	return slices.IndexFunc(p.ready, func(j Job) bool { return !j.queue.isPaused() })
}

// unused reports whether no delivery waits or is in flight.
func (p *endpoint) unused() bool { return p.inFlight == 0 && len(p.ready) == 0 && len(p.skipped) == 0 }

// idle reports whether nothing is lost when the endpoint is dropped from memory.
func (p *endpoint) idle(now time.Time) bool {
	if !p.unused() {
		return false
	}
	since := p.used
	if p.breaker.until.After(since) {
		since = p.breaker.until
	}
	return p.breaker.failures == 0 && p.breaker.until.IsZero() || now.Sub(since) > maxOpen
}

// State is the known state of an endpoint.
type State struct {
	Endpoint string
	Breaker  BreakerState
	InFlight int       // attempts
	Failures int       // in a row
	Until    time.Time // when an endpoint with an open breaker is attempted again
	Since    time.Time // when a disabled one was disabled
}

// BreakerState is the state of an endpoint's breaker. A greater one is worse.
type BreakerState uint8

// The states.
const (
	Closed   BreakerState = iota // attempts are made
	HalfOpen                     // the next attempt decides
	Open                         // no attempt is made
	Disabled                     // no attempt is made until an operator enables the endpoint
)

// States returns the endpoints in memory, by each Leader, and the disabled endpoints.
func (s *Scheduler) States() []State {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]State, 0, s.endpoints)
	for _, l := range s.leaders {
		for name, p := range l.endpoints {
			o := State{Endpoint: name, InFlight: p.inFlight, Failures: p.breaker.failures}
			switch {
			case p.breaker.open(now):
				o.Breaker, o.Until = Open, p.breaker.until
			case p.breaker.halfOpen(now):
				o.Breaker = HalfOpen
			}
			states = append(states, o)
		}
	}
	for q := range s.queues {
		for name, since := range q.disabled {
			states = append(states, State{Endpoint: name, Breaker: Disabled, Since: since})
		}
	}
	return states
}
