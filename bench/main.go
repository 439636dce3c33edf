// SPDX-License-Identifier: Apache-2.0

// Command bench measures the gateway beside Caddy's own reverse_proxy: the same binary, the same agent, in
// turns, in one run. What counts are the ratios; the absolute numbers are those of the machine and the moment.
//
//	go run ./bench [-run unary,stream,replay,idle,stored] [-rounds 6] [-round 2s] [-conns 32] [-tasks 100000]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// settings are what a run can be told.
type settings struct {
	caddy  string
	rounds int
	round  time.Duration
	conns  int
	tasks  int
}

// measurements in the order in which they run.
var measurements = []struct {
	name string
	run  func(context.Context, settings) error
}{
	{"unary", unary},
	{"stream", streams},
	{"replay", replays},
	{"idle", idle},
	{"stored", stored},
}

func main() {
	var s settings
	which := flag.String("run", "unary,stream,replay,idle,stored", "what to measure")
	flag.StringVar(&s.caddy, "caddy", "./caddy", "the binary that is measured")
	flag.IntVar(&s.rounds, "rounds", 6, "pairs of rounds")
	flag.DurationVar(&s.round, "round", 2*time.Second, "length of a round")
	flag.IntVar(&s.conns, "conns", 32, "connections of the unary load")
	flag.IntVar(&s.tasks, "tasks", 100_000, "stored tasks for stored")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen := strings.Split(*which, ",")
	for _, m := range measurements {
		if !slices.Contains(chosen, m.name) {
			continue
		}
		if err := m.run(ctx, s); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", m.name, err)
			stop()
			os.Exit(1)
		}
	}
}

// percentile returns the value below which a share of the sorted values lies.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func us(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/1e3) }
