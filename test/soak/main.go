// SPDX-License-Identifier: Apache-2.0

// Command soak runs the real binary for a long time under load, faults and attacks, and checks what honest callers get
// meanwhile. Twenty Leaders start, continue, complete, cancel, stream and set webhooks at a steady rate, and an AID
// logs in and has tasks: for a quiet time, then while the agent cuts connections and is slow, the disk is full, the
// configuration is replaced, and a stranger, a Leader, an AID, an agent and a member of a group attack, and then for a
// quiet time again. Every task must end as the agent says, with a history that is legal and complete; latencies, memory
// and open files must stay what they were.
//
//	cd soak
//	go run . [-caddy ../../caddy] [-for 10m] [-quiet 1m] [-rate 500] [-ratio 2] [-memory 1024] [-faults=false]
//	[-attack=false] [-profile DIR]
//
// The gateway, its agent, and those who attack are a process each, and the honest callers another one. All of them
// share the machine. The attackers, which stand on machines of their own in the field, run only while a processor is
// idle (chrt --idle), and so does the broker of the group that is attacked: what they need to attack is not taken from
// the gateway, but what the gateway does because of them is. Processors that are never idle are slower all the same:
// they share parts with each other, and a busy one is not free at once. So loops keep them busy in the same way in all
// phases, the quiet ones, too. A run in which an attack was made too rarely has failed.
//
// With -cluster it runs three gateways over three NATS servers instead, and disturbs both: it kills them, stops them,
// cuts them off, makes them and their networks slow, fills a disk, and restarts them, one of these after the other in a
// random order. Leaders start, continue, complete and cancel meanwhile, at several gateways at once, follow streams and
// get webhooks. What each of them is answered must be linearizable, as package history has it; events and notifications
// must come in order, the same everywhere; the agent must not receive a message twice; a call may fail where the store
// cannot be used, or its gateway is not there; and all must be well again after each disturbance.
//
//	go run . -cluster [-caddy ../../caddy] [-for 10m] [-tasks 300] [-begins 25] [-seed N] [-takeover 10s] [-out DIR]
//	[-upgrade FILE]
//
// With -upgrade the gateways are upgraded one by one to another binary, and later back, and so on.
// Histories, logs and findings are written to a directory, and a history that is not linearizable is drawn there.
//
// It needs Linux, prlimit and chrt of util-linux, and RabbitMQ as make rabbitmq unpacks it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
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
	profile string // a directory; empty for no profiles
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == partArg {
		exit(runPart(os.Args[2]))
	}
	var s settings
	several := flag.Bool("cluster", false, "run three gateways over JetStream, and disturb them and their servers")
	var c clusterSettings
	flag.IntVar(&c.tasks, "tasks", 300, "with -cluster: how many tasks there are at a time, at most")
	flag.IntVar(&c.begins, "begins", 25, "with -cluster: how many tasks begin in a second")
	flag.Uint64Var(&c.seed, "seed", rand.Uint64N(1e6), "with -cluster: what chooses the disturbances")
	flag.DurationVar(&c.takeover, "takeover", 10*time.Second, "with -cluster: in which others go on with the tasks of a "+
		"gateway; 0: no check")
	flag.StringVar(&c.upgrade, "upgrade", "", "with -cluster: another binary, to which gateways are upgraded, and back")
	flag.StringVar(&c.out, "out", "", "with -cluster: a directory for histories, drawings and logs; default: a new one")
	flag.StringVar(&s.caddy, "caddy", "../../caddy", "the binary that is run")
	flag.DurationVar(&s.faulty, "for", 10*time.Minute, "how long with faults and attacks")
	flag.DurationVar(&s.quiet, "quiet", time.Minute, "how long without, before and at most a quarter of it after")
	flag.IntVar(&s.callers, "callers", 20, "how many honest Leaders there are")
	flag.IntVar(&s.rate, "rate", 500, "requests of the honest Leaders a second")
	flag.Float64Var(&s.ratio, "ratio", 2, "how many times the latencies of the quiet run are allowed; 0: all")
	flag.IntVar(&s.memory, "memory", 1024, "how many MiB the gateway's process may hold; 0: all")
	flag.BoolVar(&s.faults, "faults", true, "cut connections, fill the disk, and replace the configuration")
	flag.BoolVar(&s.attack, "attack", true, "let a stranger, a Leader, an AID, an agent and a member of a group attack")
	flag.StringVar(&s.profile, "profile", "", "a directory for profiles of the gateway under faults and attacks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *several {
		c.caddy, c.disturb, c.leaders = s.caddy, s.faulty, s.callers
		exit(runCluster(ctx, c))
	}
	exit(run(ctx, s))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, s settings) error {
	if s.faulty <= 0 || s.quiet <= 0 || s.rate < 1 || s.callers < 1 {
		return errors.New("for, quiet, callers and rate must be positive")
	}
	site, err := newSite(ctx, s.caddy, s.memory, s.attack)
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

	if s.attack {
		machines, err := newPart("machines", site.fixture)
		if err != nil {
			return err
		}
		defer machines.close()
	}
	quiet := l.phase(ctx, s.rate, s.quiet, false, nil)
	var deeds []deed
	var failed error
	faulty := l.phase(ctx, s.rate, s.faulty, s.faults, func(ctx context.Context) {
		var group sync.WaitGroup
		defer group.Wait()
		if s.attack {
			group.Go(func() { deeds, failed = site.attackers.attackDuring(ctx) })
		}
		if s.profile != "" {
			group.Go(func() {
				if err := site.profile(ctx, s.profile, s.faulty/3); err != nil {
					l.complain("profile: %v", err)
				}
			})
		}
		if s.faults {
			site.disturb(ctx, s.faulty, l)
		}
	})
	if failed != nil {
		return fmt.Errorf("the attackers: %w", failed)
	}
	after := l.phase(ctx, s.rate, max(s.quiet/4, 5*time.Second), false, nil)
	if err := ctx.Err(); err != nil {
		return err
	}
	l.awaitWebhooks(ctx)
	printTable(quiet, faulty, after)
	if s.attack {
		printDeeds(deeds)
	}
	return errors.Join(l.verdict(), judgeDeeds(deeds), judge(quiet, faulty, after, s))
}
