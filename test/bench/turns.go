// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"time"
)

// way is one of the ways of doing some work that are compared.
type way struct {
	target  target
	process *exec.Cmd            // the process whose CPU time is measured
	during  func() (stop func()) // begins what runs during each round; nil for nothing
	rate    int                  // of calls a second; 0 for one after the other by each caller
}

// inTurns measures ways in turns, so that none always comes first. It returns the rounds of each.
func inTurns(ctx context.Context, o settings, callers int, ways ...way) ([][]result, error) {
	for _, w := range ways {
		if _, err := w.load(ctx, callers, o.round/2); err != nil { // warm up
			return nil, err
		}
	}
	rounds := make([][]result, len(ways))
	for round := range o.rounds {
		for i := range ways {
			i = (i + round) % len(ways)
			stop := func() {}
			if ways[i].during != nil {
				stop = ways[i].during()
			}
			r, err := ways[i].measure(ctx, callers, o.round)
			stop()
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	return rounds, nil
}

// load puts the target under load for so long.
func (w *way) load(ctx context.Context, callers int, d time.Duration) (result, error) {
	if w.rate > 0 {
		return steady(ctx, w.target, callers, w.rate, d)
	}
	return load(ctx, w.target, callers, d)
}

// measure is a round of load that also measures the CPU time of the process that takes it.
func (w *way) measure(ctx context.Context, callers int, d time.Duration) (result, error) {
	before, err := cpuOf(w.process)
	if err != nil {
		return result{}, err
	}
	r, err := w.load(ctx, callers, d)
	if err != nil {
		return result{}, err
	}
	after, err := cpuOf(w.process)
	r.cpu = (after - before) / time.Duration(max(1, len(r.latencies)))
	return r, err
}
