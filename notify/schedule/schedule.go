// SPDX-License-Identifier: Apache-2.0

// Package schedule chooses the next delivery to attempt. It holds a bounded number of due deliveries in memory and does
// no I/O: those without room stay in the store, for a later scan to find.
//
// A process has one Scheduler. Each store of it, a shard's, has a Queue with the deliveries due there.
//
// Leaders take turns, and so do the endpoints of each Leader. A failing endpoint has a breaker, and holds up only
// itself. The knowledge of an endpoint is for one Leader: a breaker shared by Leaders would let one of them stop
// another's deliveries to a host, by failing URLs.
package schedule

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Limits are the most endpoints kept in memory. They differ in tests only.
type Limits struct {
	Endpoints          int // of all Leaders
	EndpointsPerLeader int
}

const (
	maxReady    = 4096 // waiting deliveries in memory, beside one for each endpoint
	maxInFlight = 1024 // attempts in flight
	reserved    = 64   // of these, for proven endpoints
	maxRetries  = 512  // of these, at failed endpoints

	// An attempt that takes longer than this gives its slot back, so hanging receivers cost sockets and not the slots of
	// others. Many endpoints not proven hang.
	slowAfter         = time.Second
	slowAfterUnproven = 100 * time.Millisecond

	maxEndpoints = 16384 // endpoints in memory; beyond it, deliveries to others wait in the store
	soon         = time.Second
)

// Scheduler holds the next deliveries of all Queues to be attempted. Its methods may be called by any number of
// goroutines at once. The lock of an outbox is taken before the Scheduler's, never after it.
type Scheduler struct {
	limits Limits
	seed   maphash.Seed

	mu     sync.Mutex // guards the fields below, the Queues, the Leaders and the endpoints
	queues map[*Queue]struct{}
	slots  int // 0 before the first Start

	leaders   map[string]*leader // those with endpoints in memory
	endpoints int                // of all Leaders
	dormant   *simplelru.LRU[dormantKey, breaker]

	ready int          // deliveries that wait
	full  leftBy       // those with deliveries in the store, because all places in memory were taken
	lines [3][]*leader // Leaders waiting for their turn, by the health of their endpoints
	turn  int          // the present line

	fast     int // attempts with a slot
	unproven int // of these, those at endpoints not proven
	slow     int // attempts with their slot given back
	retries  int // attempts, with a slot or without, at failed endpoints
}

// Job is a due delivery: the next one of a webhook.
type Job struct {
	Outbox, Webhook, Endpoint string
	queue                     *Queue
}

// The lines: endpoints proven by a good answer lately, unknown endpoints, and failed endpoints. A new endpoint must not
// wait for a thousand failing ones.
const (
	provenLine = iota
	newLine
	failingLine
)

// New returns a Scheduler. It begins no attempt before a Queue is started. No limits stand for those of production.
func New(limits Limits) *Scheduler {
	if limits == (Limits{}) {
		limits = Limits{Endpoints: maxEndpoints, EndpointsPerLeader: leaderEndpoints}
	}
	dormant, _ := simplelru.NewLRU[dormantKey, breaker](maxDormant, nil) // fails for a size below 1 only
	return &Scheduler{
		limits:  limits,
		seed:    maphash.MakeSeed(),
		queues:  make(map[*Queue]struct{}),
		leaders: make(map[string]*leader),
		dormant: dormant,
	}
}

// Counts are the counts of things in a Scheduler's memory.
type Counts struct {
	InFlight  int // attempts
	Ready     int // deliveries waiting for their turn
	Outboxes  int // with deliveries waiting or in flight
	Endpoints int // of each Leader
	Open      int // breakers; an endpoint has one for each Leader
}

// Counts returns the counts of now.
func (s *Scheduler) Counts() Counts {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Counts{InFlight: s.fast + s.slow, Ready: s.ready, Endpoints: s.endpoints}
	for q := range s.queues {
		c.Outboxes += len(q.jobs)
	}
	for _, l := range s.leaders {
		for _, p := range l.endpoints {
			if p.breaker.open(now) {
				c.Open++
			}
		}
	}
	return c
}
