// SPDX-License-Identifier: Apache-2.0

// Package schedule decides which delivery is attempted next. It holds a bounded number of due deliveries in memory and
// does no I/O: what it has no room for stays in the store, where a later scan finds it.
//
// Leaders take turns, and so do the endpoints of each Leader. An endpoint that does not answer has a breaker, and holds
// up only itself. What is known of an endpoint is known for one Leader: a breaker that Leaders shared would let one of
// them stop another's deliveries to a host, by URLs that fail.
package schedule

import (
	"hash/maphash"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Config is what a Scheduler needs of others. Leave and Wake are called under its lock.
type Config struct {
	Run    func(*Attempt)      // makes an attempt, in a goroutine of the Scheduler
	Leave  func(at time.Time)  // records that an outbox that is due at a time was left in the store, for the next scan
	Wake   func(time.Time)     // asks for a scan of the store at a time
	Log    func() *slog.Logger // logs breakers that open and close
	Limits Limits              // default: those of production
}

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

// Scheduler holds the deliveries that are due. Its methods may be called by any number of goroutines at once. The lock
// of an outbox is taken before the Scheduler's, never after it.
type Scheduler struct {
	config   Config
	seed     maphash.Seed
	attempts sync.WaitGroup

	mu      sync.Mutex // guards what follows, the Leaders and the endpoints
	running bool
	closed  bool
	slots   int
	share   int // see Share

	leaders   map[string]*leader // that have endpoints in memory
	endpoints int                // of all Leaders
	dormant   *simplelru.LRU[dormantKey, breaker]
	disabled  map[string]bool // endpoints

	jobs  map[string][]string // by outbox: the webhooks with a delivery in memory, waiting or in flight
	ready int                 // deliveries that wait
	lines [3][]*leader        // Leaders that wait for their turn, by what is known of their endpoints
	turn  int                 // the line whose turn it is

	fast     int // attempts that hold a slot
	unproven int // of these, those at endpoints that are not proven
	slow     int // attempts that have given their slot back
	retries  int // attempts, with a slot or without, at endpoints that have failed

	// What was left in the store.
	full        bool               // some deliveries, because all places in memory are taken
	leftFor     map[uint64]blocker // hashes of outboxes that were left for one reason
	quarantined *simplelru.LRU[string, time.Time]
	paused      <-chan struct{} // no attempt begins before it is closed; nil for none
}

// Job is a delivery that is due: the next one of a webhook.
type Job struct{ Outbox, Webhook, Endpoint string }

// The lines: endpoints that have answered well lately, unknown endpoints, and endpoints that have failed.
// A new endpoint must not wait for a thousand that fail.
const (
	provenLine = iota
	newLine
	failingLine
)

// New returns a Scheduler that begins no attempt before Start.
func New(c Config) *Scheduler {
	if c.Limits == (Limits{}) {
		c.Limits = Limits{Endpoints: maxEndpoints, EndpointsPerLeader: leaderEndpoints}
	}
	dormant, _ := simplelru.NewLRU[dormantKey, breaker](maxDormant, nil) // fails for a size below 1 only
	quarantined, _ := simplelru.NewLRU[string, time.Time](maxQuarantined, nil)
	return &Scheduler{
		config:      c,
		share:       1,
		seed:        maphash.MakeSeed(),
		leaders:     make(map[string]*leader),
		dormant:     dormant,
		disabled:    make(map[string]bool),
		jobs:        make(map[string][]string),
		leftFor:     make(map[uint64]blocker),
		quarantined: quarantined,
	}
}

// Start begins to make attempts. slots is how many may be in flight; a later Start changes it.
func (s *Scheduler) Start(slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running, s.slots = true, slots
		s.dispatch()
	}
}

// Share says that the Scheduler is one of n in the process. Each has an equal part of what the process may hold: of the
// slots, and of attempts, deliveries and endpoints in memory.
func (s *Scheduler) Share(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share = n
	s.dispatch()
}

// part returns the part of a bound of the process that the Scheduler has.
func (s *Scheduler) part(n int) int { return max(n/s.share, 1) }

// Close has no further attempt begin, and waits for attempts in flight. Its caller cancels them.
func (s *Scheduler) Close() {
	s.mu.Lock()
	s.running, s.closed = false, true
	s.mu.Unlock()
	s.attempts.Wait()
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
	c := Counts{InFlight: s.fast + s.slow, Ready: s.ready, Outboxes: len(s.jobs), Endpoints: s.endpoints}
	for _, l := range s.leaders {
		for _, p := range l.endpoints {
			if p.breaker.open(now) {
				c.Open++
			}
		}
	}
	return c
}

// Remove takes a delivery that was attempted out of memory, so that the next one of its webhook can be offered.
func (s *Scheduler) Remove(j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(j)
}

func (s *Scheduler) remove(j Job) {
	ids := s.jobs[j.Outbox]
	if i := slices.Index(ids, j.Webhook); i >= 0 {
		ids = slices.Delete(ids, i, i+1)
	}
	if s.jobs[j.Outbox] = ids; len(ids) == 0 {
		delete(s.jobs, j.Outbox)
	}
}

// drain takes all that waits for an endpoint out of memory, and returns the outboxes.
func (s *Scheduler) drain(p *endpoint) (outboxes []string) {
	drained := p.ready
	p.ready = nil
	s.ready -= len(drained)
	p.of.ready -= len(drained)
	for _, j := range drained {
		s.remove(j)
		outboxes = append(outboxes, j.Outbox)
	}
	s.capacityFreed(p, time.Now())
	return outboxes
}
