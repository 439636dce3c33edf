// SPDX-License-Identifier: Apache-2.0

// Command soak runs the real binary for a long time under load and faults, and checks what a Leader gets meanwhile.
// A first Leader starts, continues, completes, cancels, streams and sets webhooks at a steady rate: for a quiet time,
// then while the agent cuts connections and is slow, the disk is full, the configuration is replaced and a second
// Leader attacks, and then for a quiet time again. Every task must end as the agent says, with a history that is legal
// and complete; latencies, memory and open files must stay what they were.
//
//	go run ./soak [-caddy ./caddy] [-for 10m] [-quiet 1m] [-rate 500] [-ratio 2] [-attack=false]
//
// It needs Linux, and prlimit of util-linux for the full disk. Load, gateway and agent share the machine.
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
	caddy  string
	faulty time.Duration
	quiet  time.Duration
	rate   int     // requests of the first Leader a second
	ratio  float64 // how much greater latencies may become; 0 for no check
	attack bool
}

func main() {
	var s settings
	flag.StringVar(&s.caddy, "caddy", "./caddy", "the binary that is run")
	flag.DurationVar(&s.faulty, "for", 10*time.Minute, "how long with faults")
	flag.DurationVar(&s.quiet, "quiet", time.Minute, "how long without, before and at most a quarter of it after")
	flag.IntVar(&s.rate, "rate", 500, "requests of the first Leader a second")
	flag.Float64Var(&s.ratio, "ratio", 2, "how many times the latencies of the quiet run are allowed; 0: all")
	flag.BoolVar(&s.attack, "attack", true, "let a second Leader attack")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	if s.faulty <= 0 || s.quiet <= 0 || s.rate < 1 {
		return errors.New("for, quiet and rate must be positive")
	}
	site, err := newSite(ctx, s.caddy)
	if err != nil {
		return err
	}
	defer site.close()
	first, err := site.client(&site.pki.Leader)
	if err != nil {
		return err
	}
	if _, err := first.Do(ctx, begin("first", "hello")); err != nil {
		return fmt.Errorf("the gateway does not work: %w", err)
	}
	l := newLeader(site, first)

	quiet := l.phase(ctx, s.rate, s.quiet, false, nil)
	var a *attack
	faulty := l.phase(ctx, s.rate, s.faulty, true, func(ctx context.Context) {
		if s.attack {
			a = newAttack(site)
			go a.run(ctx)
		}
		site.disturb(ctx, s.faulty, l)
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
	if a != nil {
		a.print()
	}
	return errors.Join(l.verdict(), judge(quiet, faulty, after, s.ratio))
}
