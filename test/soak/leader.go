// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
)

// leaders are the honest Leaders, who must not notice anything.
type leaders struct {
	site     *site
	clients  []*leader.Client
	names    atomic.Int64 // of the tasks
	aidTasks atomic.Int64 // of the honest AID
	full     atomic.Bool  // the disk is full, or has been a moment ago

	mu     sync.Mutex
	wrong  []string // what is not as it should be
	count  int      // of tasks that were checked
	hooked []string // tasks with a webhook, which has to get their end
}

// newLeaders returns so many Leaders, each with a certificate of its own.
func newLeaders(s *site, n int) (*leaders, error) {
	l := &leaders{site: s}
	files, err := s.certificates("honest", n)
	if err != nil {
		return nil, err
	}
	for i := range files {
		c, err := s.client(&files[i])
		if err != nil {
			return nil, err
		}
		l.clients = append(l.clients, c)
	}
	return l, nil
}

// complain notes that something is not as it should be.
func (l *leaders) complain(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// workers is how many tasks are under way at once, at most.
const workers = 256

// phase puts the gateway under load for a time, and returns what was measured. Of a hundred tasks, one is hit by each
// of the agent's faults if faults is true. alongside, if it is not nil, runs meanwhile.
func (l *leaders) phase(
	ctx context.Context, rate int, d time.Duration, faults bool, alongside func(context.Context),
) *measured {
	m := &measured{began: time.Now(), before: counters(ctx, l.site.Admin)}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var group sync.WaitGroup
	// One for each request. What was not used within a beat is lost: after a moment in which this process had no
	// processor, all workers at once would otherwise make what they missed, and measure how they wait for each other.
	pace := make(chan struct{}, rate*int(beat/time.Millisecond)/1000)
	group.Go(func() { tick(ctx, rate, pace) })
	group.Go(func() { m.watch(ctx, l.site) })
	group.Go(func() { l.runHonestAID(ctx) })
	if alongside != nil {
		group.Go(func() { alongside(ctx) })
	}
	for range workers {
		group.Go(func() {
			for {
				select {
				case <-pace:
				case <-ctx.Done():
					return
				}
				// A task that has begun runs to its end, whatever the time.
				j := &journey{leaders: l, name: l.names.Add(1), pace: pace, m: m, over: ctx.Done()}
				j.client = l.clients[j.name%int64(len(l.clients))]
				if faults && rand.IntN(100) < len(agentFaults) {
					j.fault = agentFaults[rand.IntN(len(agentFaults))]
				}
				j.run(context.WithoutCancel(ctx))
			}
		})
	}
	group.Wait()
	m.took = time.Since(m.began)
	m.after = counters(context.WithoutCancel(ctx), l.site.Admin)
	return m
}

// beat is how often tick lets requests be made.
const beat = 10 * time.Millisecond

// tick lets so many requests a second be made.
func tick(ctx context.Context, rate int, pace chan<- struct{}) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	began, given := time.Now(), 0
	for {
		select {
		case now := <-ticker.C:
			for due := int(now.Sub(began).Seconds() * float64(rate)); given < due; given++ {
				select {
				case pace <- struct{}{}:
				default:
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// awaitWebhooks waits until the ends of all tasks with webhooks have been notified.
func (l *leaders) awaitWebhooks(ctx context.Context) {
	const most = time.Minute
	for deadline := time.Now().Add(most); ; time.Sleep(100 * time.Millisecond) {
		l.hooked = slices.DeleteFunc(l.hooked, l.site.hooks.has)
		if len(l.hooked) == 0 || ctx.Err() != nil {
			return
		}
		if time.Now().After(deadline) {
			l.complain("the ends of %d tasks were not notified within %v, such as that of %s", len(l.hooked), most, l.hooked[0])
			return
		}
	}
}

// verdict returns what was wrong, or nil.
func (l *leaders) verdict() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Printf("\n%d tasks of %d honest Leaders and %d of the honest AID were checked, %d findings; %d notifications\n",
		l.count, len(l.clients), l.aidTasks.Load(), len(l.wrong), l.site.hooks.count)
	if !l.site.alive() {
		l.wrong = append(l.wrong, "the gateway has ended; it said: "+l.site.log.String())
	}
	var errs []error
	for _, w := range l.wrong[:min(len(l.wrong), 20)] {
		errs = append(errs, errors.New(w))
	}
	return errors.Join(errs...)
}
