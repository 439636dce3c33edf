// SPDX-License-Identifier: Apache-2.0

// Package schedule decides which delivery is attempted next. It holds a bounded number of due deliveries in memory and
// does no I/O: what it has no room for stays in the store, where a later scan finds it.
//
// A process has one Scheduler. Each store of it, which is that of a shard, has a Queue with what is due there.
//
// Leaders take turns, and so do the endpoints of each Leader. An endpoint that does not answer has a breaker, and holds
// up only itself. What is known of an endpoint is known for one Leader: a breaker that Leaders shared would let one of
// them stop another's deliveries to a host, by URLs that fail.
package schedule

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Limits are the most endpoints that are kept in memory. They differ in tests only.
type Limits struct {
	Endpoints          int // of all Leaders
	EndpointsPerLeader int
}

const (
	maxReady    = 4096 // deliveries that wait in memory, beside one for each endpoint
	maxInFlight = 1024 // attempts in flight
	reserved    = 64   // of these, for endpoints that are proven
	maxRetries  = 512  // of these, at endpoints that have failed

	// An attempt that takes longer than this gives its slot back, so that receivers that hang cost sockets and not the
	// slots of others. Many endpoints that are not proven hang.
	slowAfter         = time.Second
	slowAfterUnproven = 100 * time.Millisecond

	maxEndpoints = 16384 // endpoints in memory; beyond it, deliveries to others wait in the store
	soon         = time.Second
)

// Scheduler holds the deliveries of all Queues that are attempted next. Its methods may be called by any number of
// goroutines at once. The lock of an outbox is taken before the Scheduler's, never after it.
type Scheduler struct {
	limits Limits
	seed   maphash.Seed

	mu     sync.Mutex // guards what follows, the Queues, the Leaders and the endpoints
	queues map[*Queue]struct{}
	slots  int // 0 before the first Start

	leaders   map[string]*leader // that have endpoints in memory
	endpoints int                // of all Leaders
	dormant   *simplelru.LRU[dormantKey, breaker]

	ready int          // deliveries that wait
	full  leftBy       // those with deliveries in the store, because all places in memory were taken
	lines [3][]*leader // Leaders that wait for their turn, by what is known of their endpoints
	turn  int          // the line whose turn it is

	fast     int // attempts that hold a slot
	unproven int // of these, those at endpoints that are not proven
	slow     int // attempts that have given their slot back
	retries  int // attempts, with a slot or without, at endpoints that have failed
}

// Job is a delivery that is due: the next one of a webhook.
type Job struct {
	Outbox, Webhook, Endpoint string
	queue                     *Queue
}

// The lines: endpoints that have answered well lately, unknown endpoints, and endpoints that have failed.
// A new endpoint must not wait for a thousand that fail.
const (
	provenLine = iota
	newLine
	failingLine
)

// New returns a Scheduler that begins no attempt before a Queue is started. No limits stand for those of production.
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

// Counts says what a Scheduler holds in memory.
type Counts struct {
	InFlight  int // attempts
	Ready     int // deliveries that wait for their turn
	Outboxes  int // with deliveries that wait or are in flight
	Endpoints int // of each Leader
	Open      int // breakers; an endpoint has one for each Leader
}

// Counts returns what is in memory now.
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
