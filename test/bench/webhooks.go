// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

const (
	liveTasks     = 1000 // that the sink is notified of
	deadEndpoints = 1000 // half of them refuse connections, half take them and never answer
	deadTasks     = 10   // of each, each with a delivery that is due
	feeders       = 16
	pending       = 2048                 // notifications that were made and have not arrived, at most
	pace          = 5 * time.Millisecond // between two changes where there is no hurry
)

// webhooks measures deliveries to an endpoint that works: alone, and beside a thousand that do not. Every round
// has an engine and a store of its own, so that what it finds dead has died just now, which is when the dead cost most.
func webhooks(ctx context.Context, o settings) error {
	names := [2]string{"alone", fmt.Sprintf("beside %d dead endpoints", deadEndpoints)}
	var rounds [2][]delivered
	var ratios, cpu []float64
	for round := range max(2, o.rounds/2) {
		for i := range rounds {
			i = (i + round) % 2
			d, err := deliver(ctx, o, i == 1, round == 0)
			if err != nil {
				return fmt.Errorf("%s: %w", names[i], err)
			}
			rounds[i] = append(rounds[i], d)
		}
		ratios = append(ratios, rounds[1][round].rate/rounds[0][round].rate)
		cpu = append(cpu, float64(rounds[1][round].cpu)/float64(rounds[0][round].cpu))
	}
	of := func(i int, value func(*delivered) float64) float64 {
		var values []float64
		for round := range rounds[i] {
			values = append(values, value(&rounds[i][round]))
		}
		return median(values)
	}
	full := o.table(
		fmt.Sprintf("webhooks: deliveries of %d tasks to one endpoint, as fast as they go, pebble", liveTasks),
		"per s",
		"p50 µs",
		"p99 µs",
		"CPU µs each",
	)
	for i, name := range names {
		full.row(name, of(i, func(d *delivered) float64 { return d.rate }),
			of(i, func(d *delivered) float64 { return micros(percentile(d.full, 0.5)) }),
			of(i, func(d *delivered) float64 { return micros(percentile(d.full, 0.99)) }),
			of(i, func(d *delivered) float64 { return micros(d.cpu) }))
	}
	paced := o.table(fmt.Sprintf("webhooks: from the change to arrival, a change every %v", pace), "p50 µs", "p99 µs")
	for i, name := range names {
		paced.row(name, of(i, func(d *delivered) float64 { return micros(percentile(d.paced, 0.5)) }),
			of(i, func(d *delivered) float64 { return micros(percentile(d.paced, 0.99)) }))
	}
	restart := o.table("webhooks: from the change to the first arrival, right after a restart, once", "ms")
	for i, name := range names {
		restart.row(name, micros(rounds[i][0].restart)/1e3)
	}
	pairs := o.table(
		fmt.Sprintf("webhooks: beside the dead to alone, %d pairs", len(ratios)), "median", "least", "greatest")
	pairs.row("deliveries a second", spread(ratios)...)
	pairs.row("CPU of a delivery", spread(cpu)...)
	seen := o.table("webhooks: what else there was, in a round", "failed", "hanging", "twice", "arrived")
	for i, name := range names {
		seen.row(
			name,
			of(i, func(d *delivered) float64 { return float64(d.failed) }),
			of(i, func(d *delivered) float64 { return float64(d.hanging) }),
			of(i, func(d *delivered) float64 { return float64(d.again) }),
			of(i, func(d *delivered) float64 { return float64(len(d.full) + len(d.paced)) }),
		)
	}
	return nil
}

// delivered is what a round has shown.
type delivered struct {
	rate float64 // distinct notifications that arrived a second, as fast as they go
	// from the change to arrival, meanwhile: with so many in flight, most of it is waiting for a turn
	full    []time.Duration
	paced   []time.Duration // likewise, when there is no hurry
	cpu     time.Duration   // of the engine, the store and who feeds them, for each notification; not of the sink
	restart time.Duration   // from the change to arrival, of the first notification after a restart
	failed  uint64          // attempts that failed
	hanging int             // attempts that are still waiting for an answer at the end
	again   int             // notifications that arrived more than once
}

// deliver is one round, and after it perhaps a restart, which takes its time: the engine does not know any more
// then that the sink works, and endpoints that hang are before it.
func deliver(ctx context.Context, o settings, dead, restart bool) (_ delivered, err error) {
	s, err := newStand(ctx)
	if err != nil {
		return delivered{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.live(); err != nil {
		return delivered{}, err
	}
	s.feed(o.round/4, 0) // warm up: the engine has learned that the sink works, before it learns what does not
	if err := s.awaitAll(); err != nil {
		return delivered{}, err
	}
	s.take()
	if dead {
		if err := s.bury(); err != nil {
			return delivered{}, err
		}
	}
	runtime.GC() // what came before is not this round's

	var d delivered
	before, err := ownCPU()
	if err != nil {
		return d, err
	}
	began := time.Now()
	s.feed(2*o.round, 0)
	if err := s.awaitAll(); err != nil {
		return d, err
	}
	took := time.Since(began)
	after, err := ownCPU()
	if err != nil {
		return d, err
	}
	d.full, _ = s.take()
	if len(d.full) == 0 {
		return d, errors.New("nothing has arrived")
	}
	d.rate = float64(len(d.full)) / took.Seconds()
	d.cpu = (after - before) / time.Duration(len(d.full))

	s.feed(o.round, pace)
	if err := s.awaitAll(); err != nil {
		return d, err
	}
	d.paced, d.again = s.take()
	counts := s.counts()
	d.failed, d.hanging = counts.Failed, counts.InFlight
	if !restart {
		return d, nil
	}
	s.engine.Close()
	if err := s.open(); err != nil {
		return d, err
	}
	select { // let it find in the store what is due
	case <-time.After(o.round / 4):
	case <-ctx.Done():
		return d, ctx.Err()
	}
	s.pending <- struct{}{}
	s.notify(s.tasks[0])
	err = s.awaitAll()
	if first, _ := s.take(); err == nil {
		d.restart = first[0]
	}
	return d, err
}
