// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Config has the functions a Queue needs of others. Leave and Wake are called under the lock of the Scheduler.
type Config struct {
	Run   func(*Attempt)      // makes an attempt, in a goroutine of the Queue
	Leave func(at time.Time)  // records an outbox due at a time and left in the store, for the next scan
	Wake  func(time.Time)     // asks for a scan of the store at a time
	Log   func() *slog.Logger // logs opening and closing breakers
}

// Queue offers the deliveries of one store to a Scheduler, and has the knowledge of that store alone. Its methods may
// be called by any number of goroutines at once.
type Queue struct {
	*Scheduler
	config   Config
	attempts sync.WaitGroup

	// The lock of the Scheduler guards the fields below.
	running  bool
	closed   bool
	jobs     map[string][]string  // by outbox: the webhooks with a delivery in memory, waiting or in flight
	disabled map[string]time.Time // endpoints, and the time of the disabling

	// Deliveries left in the store.
	leftFor     map[uint64]blocker // hashes of outboxes left for one reason
	quarantined *simplelru.LRU[string, time.Time]
	paused      <-chan struct{} // no attempt begins before it is closed; nil for none
}

// Open returns a new Queue. No attempt of it begins before Start.
func (s *Scheduler) Open(c Config) *Queue {
	quarantined, _ := simplelru.NewLRU[string, time.Time](maxQuarantined, nil) // fails for a size below 1 only
	q := &Queue{
		Scheduler:   s,
		config:      c,
		jobs:        make(map[string][]string),
		disabled:    make(map[string]time.Time),
		leftFor:     make(map[uint64]blocker),
		quarantined: quarantined,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[q] = struct{}{}
	return q
}

// Start begins to make attempts. slots is the most in flight, of all Queues; a later Start changes it.
func (q *Queue) Start(slots int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.running, q.slots = true, slots
		q.dispatch()
	}
}

// Close has no further attempt begin, takes waiting deliveries out of memory, and waits for attempts in flight. Its
// caller cancels them.
func (q *Queue) Close() {
	q.mu.Lock()
	q.running, q.closed = false, true
	for _, l := range q.leaders {
		for _, p := range l.endpoints {
			q.drain(p)
			p.skipped.remove(q)
		}
		l.full.remove(q)
	}
	q.full.remove(q)
	clear(q.leftFor)
	q.mu.Unlock()
	q.attempts.Wait()
	q.mu.Lock()
	delete(q.queues, q)
	q.mu.Unlock()
}

// Remove takes a delivery out of memory after its attempt. Then the next one of its webhook can be offered.
func (q *Queue) Remove(j Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(j)
}

func (q *Queue) remove(j Job) {
	ids := q.jobs[j.Outbox]
	if i := slices.Index(ids, j.Webhook); i >= 0 {
		ids = slices.Delete(ids, i, i+1)
	}
	if q.jobs[j.Outbox] = ids; len(ids) == 0 {
		delete(q.jobs, j.Outbox)
	}
}

// drain takes the Queue's waiting deliveries to an endpoint out of memory, and returns the outboxes.
func (q *Queue) drain(p *endpoint) (outboxes []string) {
	p.ready = slices.DeleteFunc(p.ready, func(j Job) bool {
		if j.queue != q {
			return false
		}
		q.remove(j)
		outboxes = append(outboxes, j.Outbox)
		return true
	})
	if len(p.ready) == 0 {
		p.ready = nil // a failing endpoint keeps no memory
	}
	q.ready -= len(outboxes)
	p.of.ready -= len(outboxes)
	q.capacityFreed(p, time.Now())
	return outboxes
}

// leftBy are Queues with deliveries left in the store for one reason.
type leftBy []*Queue

func (l *leftBy) add(q *Queue) {
	if !slices.Contains(*l, q) {
		*l = append(*l, q)
	}
}

func (l *leftBy) remove(q *Queue) {
	*l = slices.DeleteFunc(*l, func(other *Queue) bool { return other == q })
}

// wake asks for scans of their stores at a time: the reason has passed.
func (l *leftBy) wake(at time.Time) {
	for _, q := range *l {
		q.config.Wake(at)
	}
	*l = nil
}
