// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// replays measures the replay of a long task, and one task with many followers.
func replays(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, siteConfig{store: "pebble DIR"})
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.replayLong(ctx, o); err != nil {
		return err
	}
	return s.followShared(ctx, o)
}

// reStream follows a task from its beginning.
func reStream(s *site, w wire) source {
	p, sender := aipStream(s, w), w.sender(s)
	p.open = func(n int64, _ string) []byte { return streamBody(sender, "re-stream", n, "", "") }
	return p
}

// replayLong measures the replay of a task that the gateway has in memory, and of one that it must first look up.
func (s *site) replayLong(ctx context.Context, o settings) error {
	const events = 9_000 // all of them are kept
	start, again := aipStream(s, plain), reStream(s, plain)
	long := numbers.Add(1)
	if err := start.read(ctx, long, fmt.Sprintf("stream %d 0", events), func([]byte) {}); err != nil {
		return err
	}
	results := o.table(fmt.Sprintf("replay of a task with %d events", events), "events/s", "first after ms")
	replay := func() (rate, first float64, err error) {
		count := 0
		began := time.Now()
		err = again.read(ctx, long, "", func([]byte) {
			if count++; count == 1 {
				first = micros(time.Since(began)) / 1e3
			}
		})
		return float64(count) / time.Since(began).Seconds(), first, err
	}
	var rates, firsts []float64
	for range o.rounds {
		rate, first, err := replay()
		if err != nil {
			return err
		}
		rates, firsts = append(rates, rate), append(firsts, first)
	}
	results.row("in use lately", median(rates), median(firsts))
	s.stop()
	if err := errors.Join(s.restart(ctx), s.wait(ctx, portGateway)); err != nil {
		return err
	}
	rate, first, err := replay()
	if err != nil {
		return err
	}
	results.row("right after a restart", rate, first)
	return nil
}

// followShared measures one task with many followers.
func (s *site) followShared(ctx context.Context, o settings) error {
	const followers, pieces = 1000, 100
	start, follow := aipStream(s, plain), reStream(s, plain)
	shared := numbers.Add(1)
	if err := start.read(ctx, shared, "hello", func([]byte) {}); err != nil { // it exists and has settled
		return err
	}
	follow.last = fmt.Appendf(nil, `chunk-%d `, pieces-1)
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	count := 0
	var ready sync.WaitGroup
	ready.Add(followers)
	for range followers {
		group.Go(func() {
			seen := 0
			err := follow.read(ctx, shared, "", func([]byte) {
				if seen++; seen == 1 {
					ready.Done()
				}
			})
			mu.Lock()
			defer mu.Unlock()
			count += seen
			failed = errors.Join(failed, err)
		})
	}
	ready.Wait()
	before, err := s.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	begin := start
	begin.last = []byte(`"lastChunk":true`)
	begin.open = func(n int64, text string) []byte { return streamBody("leader", "continue", n, text, "") }
	if err := begin.read(ctx, shared, fmt.Sprintf("stream %d 20", pieces), func([]byte) {}); err != nil {
		return err
	}
	group.Wait()
	took := time.Since(began)
	after, err := s.cpu()
	if err := errors.Join(failed, err); err != nil {
		return err
	}
	o.table(fmt.Sprintf("one task with %d followers, an event every 20 ms", followers), "events/s", "CPU µs each").
		row("aip_gateway", float64(count)/took.Seconds(), micros(after-before)/float64(count))
	return nil
}
