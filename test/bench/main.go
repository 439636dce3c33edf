// SPDX-License-Identifier: Apache-2.0

// Command bench measures the gateway beside Caddy's own reverse_proxy: the same binary, the same agent, in
// turns, in one run. What counts are the ratios; the absolute numbers are those of the machine and the moment.
// What no proxy does, webhooks and translate, is measured within this process: the former beside itself, with and
// without dead endpoints.
//
//	go run . [-run unary,stream] [-rounds 6] [-round 2s] [-conns 32] [-tasks 100000] [-for 1h] [-json file]
//		[-profile dir]
//
// By default it runs everything but observe, checks, trust, cluster and takeover, which need nats-server, and what
// takes long: idle and aun, which wait for the collector, start, which first stores tasks, and retention. It is a
// module of its own, so that what only it needs is not in the gateway's go.mod, and runs in its folder.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are the options of a run.
type settings struct {
	*report
	caddy   string
	rounds  int
	round   time.Duration
	conns   int
	tasks   int
	lasts   time.Duration // how long retention loads
	profile string
}

// measurement is one thing that can be measured.
type measurement struct {
	name string
	run  func(context.Context, settings) error
}

// measurements in the order in which they run.
var measurements = []measurement{
	{"unary", unary},
	{"unary-tls", unaryTLS},
	{"latency", latencies},
	{"texts", texts},
	{"limits", limits},
	{"stores", stores},
	{"tuning", tuning},
	{"observe", observed},
	{"checks", checks},
	{"trust", trusted},
	{"budget", budget},
	{"stream", streams},
	{"stream-tls", streamsTLS},
	{"replay", replays},
	{"get", gets},
	{"stored", stored},
	{"webhooks", webhooks},
	{"translate", translated},
	{"group", groups},
	{"size", sizes},
	{"start", starts},
	{"idle", idle},
	{"aun", aunClients},
	{"cluster", clustered},
	{"takeover", takeOvers},
	{"retention", retention},
}

// byDefault are the measurements that run if none are named.
const byDefault = "unary,unary-tls,limits,stores,tuning,budget,stream,stream-tls,replay,get,stored,webhooks," +
	"translate,group,size"

func main() {
	if len(os.Args) > 1 {
		if serve, ok := children[os.Args[1]]; ok {
			if err := serve(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	s := settings{report: newReport()}
	which := flag.String("run", byDefault,
		"what to measure: these, latency, texts, start, idle, aun, cluster, takeover, retention")
	flag.StringVar(&s.caddy, "caddy", "../../caddy", "the binary that is measured")
	flag.IntVar(&s.rounds, "rounds", 6, "pairs of rounds")
	flag.DurationVar(&s.round, "round", 2*time.Second, "length of a round")
	flag.IntVar(&s.conns, "conns", 32, "connections of the unary load")
	flag.IntVar(&s.tasks, "tasks", 100_000, "stored tasks for stored, start and takeover")
	flag.DurationVar(&s.lasts, "for", time.Hour, "how long retention puts the gateway under load")
	flag.StringVar(&s.profile, "profile", "", "keep the CPU profiles of budget in this folder")
	file := flag.String("json", "", "also write the numbers to this file")
	flag.Parse()
	if err := run(s, strings.Split(*which, ","), *file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(s settings, chosen []string, file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, name := range chosen {
		if !slices.ContainsFunc(measurements, func(m measurement) bool { return m.name == name }) {
			return fmt.Errorf("there is no measurement %q", name)
		}
	}
	if s.rounds < 1 || s.round <= 0 || s.conns < 1 || s.tasks <= few {
		return fmt.Errorf("rounds, round and conns must be positive, and tasks more than %d", few)
	}
	for _, m := range measurements {
		if !slices.Contains(chosen, m.name) {
			continue
		}
		if err := m.run(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if file == "" {
		return nil
	}
	return s.write(file)
}
