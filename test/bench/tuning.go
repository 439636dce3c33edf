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
		fmt.Sprintf("GOMAXPROCS=%d", runtime.NumCPU()), fmt.Sprintf("GOMAXPROCS=%d", 2*runtime.NumCPU()),
		"GOGC=50", "GOGC=200", "GOGC=400",
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
	var sites []*site
	var ways []way
	for _, env := range [][]string{{change}, nil} {
		s, err := newSite(ctx, o.caddy, siteConfig{env: env})
		if err != nil {
			return nil, err
		}
		defer s.close()
		sites = append(sites, s)
		ways = append(ways, way{target: aipStart(s, plain), process: s.gateway})
	}
	rounds, err := inTurns(ctx, o, o.conns, ways...)
	if err != nil {
		return nil, err
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
