// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
)

// tuning measures what an operator can change about the process, each setting against the default: starts, in turns.
func tuning(ctx context.Context, o settings) error {
	var all [][]float64
	changes := []string{
		fmt.Sprintf("GOMAXPROCS=%d", 2*runtime.NumCPU()), "GOGC=50", "GOGC=200", "GOGC=400",
	}
	for _, change := range changes {
		values, err := tuned(ctx, o, change)
		if err != nil {
			return err
		}
		all = append(all, values)
	}
	t := o.table("a setting against the default: unary start, "+plural(o.conns, "connection"),
		"throughput", "p99", "CPU each", "RSS")
	for i, change := range changes {
		t.row(change, all[i]...)
	}
	return nil
}

// tuned returns the ratios of one setting to the default: of throughput, p99, CPU time and memory.
func tuned(ctx context.Context, o settings, change string) ([]float64, error) {
	var sites [2]*site
	for i, env := range [][]string{{change}, nil} {
		s, err := newSite(ctx, o.caddy, siteConfig{env: env})
		if err != nil {
			return nil, err
		}
		defer s.close()
		sites[i] = s
		if _, err := load(ctx, aipStart(s, plain), o.conns, o.round/2); err != nil { // warm up
			return nil, err
		}
	}
	var rounds [2][]result
	for round := range o.rounds {
		for i := range sites {
			i = (i + round) % 2
			r, err := sites[i].measure(ctx, aipStart(sites[i], plain), o.conns, o.round)
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	a, b := summary(rounds[0]), summary(rounds[1])
	var rss [2]float64
	for i, s := range sites {
		var err error
		if rss[i], err = s.rss(); err != nil {
			return nil, err
		}
	}
	return []float64{a[0] / b[0], a[2] / b[2], a[3] / b[3], rss[0] / rss[1]}, nil
}
