// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
)

// disturber disturbs a cluster, as a seed has it: one disturbance of each list after the other, in a random order, and
// then all of them again. Some of the time a gateway and a server are disturbed at once.
type disturber struct {
	*cluster
	limit    time.Duration // of a take-over
	gateways bag
	servers  bag
	next     int // the server whose turn it is
	moves    mover

	mu        sync.Mutex // guards what follows
	chance    *rand.Rand
	done      map[string]int
	healed    map[string][]time.Duration
	takeovers map[string][]time.Duration // of a shard, until another gateway owned it
}

// disturbance is what is done, and undone before it returns.
type disturbance struct {
	name string
	do   func(ctx context.Context, name string)
}

// bag is a list of which each is taken once before one is taken again.
type bag struct{ all, left []disturbance }

func (b *bag) take(chance *rand.Rand) disturbance {
	if len(b.left) == 0 {
		b.left = slices.Clone(b.all)
		chance.Shuffle(len(b.left), func(i, j int) { b.left[i], b.left[j] = b.left[j], b.left[i] })
	}
	one := b.left[0]
	b.left = b.left[1:]
	return one
}

func newDisturber(c *cluster, s clusterSettings) *disturber {
	d := &disturber{cluster: c, moves: mover{cluster: c}, chance: rand.New(rand.NewPCG(s.seed, 0)), limit: s.takeover,
		done: make(map[string]int), healed: make(map[string][]time.Duration),
		takeovers: make(map[string][]time.Duration)}
	d.gateways.all = []disturbance{
		{killGateway, d.killGateway},
		{"a gateway is cut off", d.partition(func(p *natstest.Proxy, on bool) { p.Cut(on) })},
		{"a gateway hears and says nothing", d.partition(func(p *natstest.Proxy, on bool) {
			p.Mute(on)
			p.Deaf(on)
		})},
		{"a gateway is stopped by SIGSTOP for three leases", d.freeze},
		{"the network of a gateway is slow", d.slowGateway},
		{"a rolling restart of the gateways", d.rollGateways(func(*node) {})},
	}
	if s.upgrade != "" {
		upgrade := disturbance{"a rolling upgrade of the gateways, or back", d.rollGateways((*node).swap)}
		d.gateways.all = append(d.gateways.all, upgrade)
		d.gateways.left = []disturbance{upgrade} // a short run has it, too
	}
	d.servers.all = []disturbance{
		{"kill -9 of the server that leads JetStream", func(ctx context.Context, name string) {
			d.killServer(ctx, name, d.leading())
		}},
		{"kill -9 of a server", func(ctx context.Context, name string) { d.killServer(ctx, name, d.nextServer()) }},
		{"the disk of a server is full", d.fullDisk},
		{"a server is slow", d.slowServer},
		{"the network of a server is slow", d.slowNetwork},
		{"a rolling restart of the servers", d.rollServers},
	}
	return d
}

const killGateway = "kill -9 of a gateway"

// together is how often a gateway and a server are disturbed at once, in percent.
const together = 20

// run disturbs for a time, and a little longer where a disturbance has begun. Meanwhile shards are moved.
func (d *disturber) run(ctx context.Context, limit time.Duration) {
	until := time.Now().Add(limit)
	moving, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { d.moves.run(moving) })
	defer work.Wait()
	defer stop()
	for turn := d.below(2); time.Now().Before(until) && ctx.Err() == nil; turn++ {
		var now []disturbance
		both := d.below(100) < together
		for i, b := range []*bag{&d.gateways, &d.servers} {
			if both || turn%2 == i {
				now = append(now, b.take(d.chance)) // nothing else runs
			}
		}
		d.disturb(ctx, now)
		wait(ctx, d.upTo(2*time.Second))
	}
}

// disturb makes disturbances at once, and waits until all is well again.
func (d *disturber) disturb(ctx context.Context, now []disturbance) {
	var names []string
	var work sync.WaitGroup
	for _, one := range now {
		d.done[one.name]++
		names = append(names, one.name)
	}
	name := strings.Join(names, ", and ")
	fmt.Println(time.Now().Format("15:04:05.000"), name)
	d.around.begin(trouble{name: name})
	defer d.around.end()
	for _, one := range now {
		work.Go(func() { one.do(ctx, name) }) // a take-over takes longer where a server is disturbed, too
	}
	work.Wait()
	d.heal(ctx, name)
}

// below returns a random number below n.
func (d *disturber) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chance.IntN(n)
}

// upTo returns a random time.
func (d *disturber) upTo(most time.Duration) time.Duration {
	return time.Duration(d.below(int(most/time.Millisecond))) * time.Millisecond
}

// heal waits until all is well again after disturbances.
func (d *disturber) heal(ctx context.Context, name string) {
	began := time.Now()
	if err := d.whole(ctx); err != nil && ctx.Err() == nil {
		d.complain("the cluster is not well again after %s: %v", name, err)
		return
	}
	d.healed[name] = append(d.healed[name], time.Since(began))
}

// takeover waits until the other gateways own as many shards more as one of them has lost, and measures it.
func (d *disturber) takeover(ctx context.Context, name string, victim *node, lost, had int) {
	defer d.moves.still.Unlock() // which victim has locked
	began := time.Now()
	for taken := 0; taken < lost && ctx.Err() == nil; wait(ctx, 50*time.Millisecond) {
		took := time.Since(began)
		if took > healLimit {
			d.complain("%s: of %d shards of %s, %d are taken over after %v", name, lost, victim.name, taken, healLimit)
			return
		}
		for now := d.ownedByOthers(ctx, victim) - had; taken < min(now, lost); taken++ {
			d.mu.Lock()
			d.takeovers[name] = append(d.takeovers[name], took)
			d.mu.Unlock()
		}
	}
}

// ownedByOthers returns how many shards all but one gateway own.
func (d *disturber) ownedByOthers(ctx context.Context, but *node) (sum int) {
	for _, n := range d.nodes {
		if n != but {
			sum += n.owned(ctx)
		}
	}
	return sum
}

// victim returns a random gateway, how many shards it owns, and how many the others do. No shard is moved from then on
// until takeover, which must follow, has returned.
func (d *disturber) victim(ctx context.Context) (n *node, owned, others int) {
	d.moves.still.Lock()
	n = d.nodes[d.below(len(d.nodes))]
	return n, n.owned(ctx), d.ownedByOthers(ctx, n)
}

// restart starts a gateway that has ended.
func (d *disturber) restart(ctx context.Context, n *node) {
	if err := n.start(ctx); err != nil && ctx.Err() == nil {
		d.complain("%s does not start: %v", n.name, err)
	}
}

func (d *disturber) killGateway(ctx context.Context, name string) {
	n, lost, had := d.victim(ctx)
	n.begin(trouble{name: name, gone: true, killed: true})
	defer n.end()
	n.kill()
	d.takeover(ctx, name, n, lost, had)
	wait(ctx, d.upTo(2*time.Second))
	d.restart(ctx, n)
}

// partition returns a disturbance that has the proxies of a gateway do something.
func (d *disturber) partition(set func(p *natstest.Proxy, on bool)) func(ctx context.Context, name string) {
	return func(ctx context.Context, name string) {
		n, lost, had := d.victim(ctx)
		n.begin(trouble{name: name})
		defer n.end()
		for _, p := range n.proxies {
			set(p, true)
			defer p.Reset()
		}
		d.takeover(ctx, name, n, lost, had)
		wait(ctx, d.upTo(3*time.Second))
	}
}

func (d *disturber) freeze(ctx context.Context, name string) {
	n, lost, had := d.victim(ctx)
	n.begin(trouble{name: name})
	defer n.end()
	n.signal(syscall.SIGSTOP)
	defer n.signal(syscall.SIGCONT)
	until := time.Now().Add(3 * lease)
	d.takeover(ctx, name, n, lost, had)
	wait(ctx, time.Until(until))
}

func (d *disturber) slowGateway(ctx context.Context, name string) {
	n := d.nodes[d.below(len(d.nodes))]
	n.begin(trouble{name: name})
	defer n.end()
	for _, p := range n.proxies {
		p.Delay(time.Duration(1+d.below(20)) * time.Millisecond)
		defer p.Delay(0)
	}
	wait(ctx, 5*time.Second)
}

// rollGateways returns a disturbance that restarts one gateway after the other, as an operator does. What is to change
// of a gateway changes while it does not run.
func (d *disturber) rollGateways(change func(*node)) func(ctx context.Context, name string) {
	return func(ctx context.Context, name string) {
		for _, n := range d.nodes {
			n.begin(trouble{name: name, gone: true})
			if err := n.stop(); err != nil {
				d.complain("%v", err)
			}
			change(n)
			d.restart(ctx, n)
			err := d.whole(ctx)
			if n.end(); err != nil && ctx.Err() == nil {
				d.complain("%s: %v", name, err)
			}
		}
	}
}

// leading returns the server that leads JetStream, or any one if there is none.
func (d *disturber) leading() *natstest.Server {
	if s := d.cluster.servers.Leader(); s != nil {
		return s
	}
	return d.nextServer()
}

// nextServer returns the servers one after the other.
func (d *disturber) nextServer() *natstest.Server {
	d.next++
	return d.cluster.servers.Servers[d.next%clusterSize]
}

// run starts a server that has ended.
func (d *disturber) startServer(s *natstest.Server) {
	if err := errors.Join(s.Run(), d.cluster.servers.Ready()); err != nil {
		d.complain("%v", err)
	}
}

func (d *disturber) killServer(ctx context.Context, name string, s *natstest.Server) {
	s.Kill()
	wait(ctx, time.Second+d.upTo(9*time.Second))
	d.startServer(s)
}

// fullDisk has the disk of a server be full. A server stops using such a disk, and is restarted when there is room.
func (d *disturber) fullDisk(ctx context.Context, name string) {
	s := d.nextServer()
	if err := fillDisk(s.PID(), true); err != nil {
		d.complain("%v", err)
		return
	}
	wait(ctx, fullFor)
	s.Kill()
	d.startServer(s)
}

// slowServer lets a server, and so its disk, work a sixth of the time.
func (d *disturber) slowServer(ctx context.Context, name string) {
	process, err := os.FindProcess(d.nextServer().PID())
	if err != nil {
		d.complain("%v", err)
		return
	}
	for until := time.Now().Add(6 * time.Second); time.Now().Before(until) && ctx.Err() == nil; {
		_ = process.Signal(syscall.SIGSTOP)
		time.Sleep(50 * time.Millisecond)
		_ = process.Signal(syscall.SIGCONT)
		time.Sleep(10 * time.Millisecond)
	}
}

// slowNetwork has all gateways reach a server slowly.
func (d *disturber) slowNetwork(ctx context.Context, name string) {
	s := d.below(clusterSize)
	for _, n := range d.nodes {
		n.proxies[s].Delay(time.Duration(1+d.below(50)) * time.Millisecond)
		defer n.proxies[s].Delay(0)
	}
	wait(ctx, 5*time.Second)
}

// rollServers restarts one server after the other, as an operator does.
func (d *disturber) rollServers(ctx context.Context, name string) {
	for _, s := range d.cluster.servers.Servers {
		if ctx.Err() != nil {
			return
		}
		s.Stop()
		d.startServer(s)
		if err := d.whole(ctx); err != nil && ctx.Err() == nil {
			d.complain("%s: %v", name, err)
		}
	}
}

// print says what was done.
func (d *disturber) print() {
	fmt.Printf("\n%d moves of shards\n", d.moves.moved)
	fmt.Printf("\n%-62s %5s %20s %20s\n", "disturbances", "", "well after, s", "taken over after, s")
	fmt.Printf("%-62s %5s %10s %9s %10s %9s\n", "", "", "median", "max", "median", "max")
	names := maps.Clone(d.done)
	for name, healed := range d.healed {
		names[name] = len(healed)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Printf("%-62s %5d %s %s\n", name, names[name], middleAndMost(d.healed[name]), middleAndMost(d.takeovers[name]))
	}
}

func middleAndMost(all []time.Duration) string {
	if len(all) == 0 {
		return fmt.Sprintf("%10s %9s", "-", "-")
	}
	slices.Sort(all)
	return fmt.Sprintf("%10.1f %9.1f", all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
}

// judge returns an error if tasks went on too late.
func (d *disturber) judge() error {
	for name, all := range d.takeovers {
		if most := slices.Max(all); d.limit > 0 && most > d.limit {
			return fmt.Errorf("%s: another gateway went on with a shard after %v, which is more than %v", name, most, d.limit)
		}
	}
	return nil
}
