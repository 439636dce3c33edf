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
}

// inTurns measures ways in turns, so that none always comes first. It returns the rounds of each.
func inTurns(ctx context.Context, o settings, callers int, ways ...way) ([][]result, error) {
	for _, w := range ways {
		if _, err := load(ctx, w.target, callers, o.round/2); err != nil { // warm up
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
			r, err := measure(ctx, ways[i].process, ways[i].target, callers, o.round)
			stop()
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	return rounds, nil
}

// measure is a round of load that also measures the CPU time of the process that takes it.
func measure(ctx context.Context, process *exec.Cmd, t target, callers int, d time.Duration) (result, error) {
	before, err := cpuOf(process)
	if err != nil {
		return result{}, err
	}
	r, err := load(ctx, t, callers, d)
	if err != nil {
		return result{}, err
	}
	after, err := cpuOf(process)
	r.cpu = (after - before) / time.Duration(max(1, len(r.latencies)))
	return r, err
}
