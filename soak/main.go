// SPDX-License-Identifier: Apache-2.0

// Command soak runs the real binary for a long time under load, faults and attacks, and checks what honest callers get
// meanwhile. Twenty Leaders start, continue, complete, cancel, stream and set webhooks at a steady rate, and an AID
// logs in and has tasks: for a quiet time, then while the agent cuts connections and is slow, the disk is full, the
// configuration is replaced, and a stranger, a Leader, an AID, an agent and a member of a group attack, and then for a
// quiet time again. Every task must end as the agent says, with a history that is legal and complete; latencies, memory
// and open files must stay what they were.
//
//	go run ./soak [-caddy ./caddy] [-for 10m] [-quiet 1m] [-rate 500] [-ratio 2] [-memory 1024] [-faults=false]
//	[-attack=false]
//
// It needs Linux, prlimit of util-linux for the full disk, and RabbitMQ as make rabbitmq unpacks it. Load, gateway,
// agents and attackers share the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// settings are the options of a run.
type settings struct {
	caddy   string
	faulty  time.Duration
	quiet   time.Duration
	callers int
	rate    int     // requests of the honest Leaders a second
	ratio   float64 // how much greater latencies may become; 0 for no check
	memory  int     // MiB that the gateway may hold; 0 for no check
	faults  bool
	attack  bool
}

func main() {
	var s settings
	flag.StringVar(&s.caddy, "caddy", "./caddy", "the binary that is run")
	flag.DurationVar(&s.faulty, "for", 10*time.Minute, "how long with faults and attacks")
	flag.DurationVar(&s.quiet, "quiet", time.Minute, "how long without, before and at most a quarter of it after")
	flag.IntVar(&s.callers, "callers", 20, "how many honest Leaders there are")
	flag.IntVar(&s.rate, "rate", 500, "requests of the honest Leaders a second")
	flag.Float64Var(&s.ratio, "ratio", 2, "how many times the latencies of the quiet run are allowed; 0: all")
	flag.IntVar(&s.memory, "memory", 1024, "how many MiB the gateway's process may hold; 0: all")
	flag.BoolVar(&s.faults, "faults", true, "cut connections, fill the disk, and replace the configuration")
	flag.BoolVar(&s.attack, "attack", true, "let a stranger, a Leader, an AID, an agent and a member of a group attack")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	if s.faulty <= 0 || s.quiet <= 0 || s.rate < 1 || s.callers < 1 {
		return errors.New("for, quiet, callers and rate must be positive")
	}
	site, err := newSite(ctx, s.caddy, s.memory)
	if err != nil {
		return err
	}
	defer site.close()
	l, err := newLeaders(site, s.callers)
	if err != nil {
		return err
	}
	if _, err := l.clients[0].Do(ctx, begin("first", "hello")); err != nil {
		return fmt.Errorf("the gateway does not work: %w", err)
	}

	quiet := l.phase(ctx, s.rate, s.quiet, false, nil)
	var a *attack
	if s.attack {
		if a, err = newAttack(site); err != nil {
			return err
		}
	}
	faulty := l.phase(ctx, s.rate, s.faulty, s.faults, func(ctx context.Context) {
		if a != nil {
			go a.run(ctx)
		}
		if s.faults {
			site.disturb(ctx, s.faulty, l)
		}
	})
	if a != nil {
		<-a.ended
	}
	after := l.phase(ctx, s.rate, max(s.quiet/4, 5*time.Second), false, nil)
	if err := ctx.Err(); err != nil {
		return err
	}
	l.awaitWebhooks(ctx)
	printTable(quiet, faulty, after)
	var attacked error
	if a != nil {
		a.print()
		attacked = a.verdict()
	}
	return errors.Join(l.verdict(), attacked, judge(quiet, faulty, after, s))
}
