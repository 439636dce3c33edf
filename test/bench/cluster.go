// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// gateways is how many gateways share the servers, and as many servers there are.
const gateways = 3

// trio is three gateways over three NATS servers, which have one agent, on one machine.
type trio struct {
	servers *natstest.Cluster
	alone   *site // the agent's, with a gateway over Pebble
	sites   []*site
	aims    []aim
}

// aim is a figure beside what it is to reach: at least, or at most.
type aim struct {
	name        string
	got, target float64
	most        bool
}

// clustered measures several gateways over JetStream beside one over Pebble, and beside a client that only publishes.
func clustered(ctx context.Context, o settings) error {
	c, err := newTrio(ctx, o.caddy, 0)
	if err != nil {
		return err
	}
	defer c.close()
	for _, measure := range []func(context.Context, settings) error{
		c.starts, c.follow, c.replay, c.memory, c.takeOver, // the last one ends a gateway
	} {
		if err := measure(ctx, o); err != nil {
			return err
		}
	}
	t := o.table("several gateways: what is to be reached", "median", "target", "missed by")
	for _, a := range c.aims {
		missed := a.target - a.got
		if a.most {
			missed = -missed
		}
		t.row(a.name, a.got, a.target, max(0, missed))
	}
	return nil
}

// newTrio starts them, when so many tasks are stored.
func newTrio(ctx context.Context, caddy string, tasks int) (_ *trio, err error) {
	c := new(trio)
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.servers, err = natstest.Start(gateways, natstest.Config{}); err != nil {
		return nil, err
	}
	if c.alone, err = newSite(ctx, caddy, siteConfig{store: "pebble DIR"}); err != nil {
		return nil, err
	}
	if tasks > 0 {
		name := "http://" + c.alone.addr(portAgent)
		if err = fillStreams(ctx, c.servers.URL(), name, tasks); err != nil {
			return nil, err
		}
	}
	for i := range gateways {
		s, err := newSite(ctx, caddy, siteConfig{beside: c.alone, store: fmt.Sprintf(
			"jetstream %s {\n\t\t\tnode bench-%d\n\t\t}",
			strings.ReplaceAll(c.servers.URL(), ",", " "), i)})
		if err != nil {
			return nil, err
		}
		c.sites = append(c.sites, s)
	}
	return c, c.awaitBalance(ctx)
}

func (c *trio) close() {
	for _, s := range append(c.sites, c.alone) {
		if s != nil {
			s.close()
		}
	}
	if c.servers != nil {
		c.servers.Close()
	}
}

// balanceLimit is how long many stored tasks may take to be read by gateways that start.
const balanceLimit = 10 * time.Minute

// awaitBalance waits until each gateway owns its part of the shards.
func (c *trio) awaitBalance(ctx context.Context) error {
	for deadline := time.Now().Add(balanceLimit); time.Now().Before(deadline) && ctx.Err() == nil; {
		var report adminapi.ClusterReport
		err := get(ctx, "http://"+c.sites[0].addr(portAdmin)+adminapi.Cluster, &report)
		owners := map[string]bool{}
		settled := err == nil && len(report.Shards) > 0
		for _, s := range report.Shards {
			owners[s.Owner] = true
			settled = settled && s.Owner != "" && s.Should == ""
		}
		if settled && len(owners) == gateways {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.Join(errors.New("the gateways do not own all shards"), ctx.Err())
}

// get reads a page of JSON.
func get(ctx context.Context, url string, v any) error {
	return fetch(ctx, url, func(body io.Reader) error { return json.NewDecoder(body).Decode(v) })
}

// manyLeaders is how many Leaders start tasks, so that every shard has some of them.
const manyLeaders = 96

// startsOf is aipStart with so many Leaders.
func startsOf(s *site, leaders int64) target {
	t := aipStart(s, plain)
	one := t.body
	t.body = func(dst []byte, n int64) []byte {
		before := len(dst)
		dst = one(dst, n)
		request := strings.Replace(string(dst[before:]), `"senderId":"leader"`,
			fmt.Sprintf(`"senderId":"leader-%d"`, n%leaders), 1)
		return append(dst[:before], request...)
	}
	return t
}

// loadAll puts all gateways under load by so many callers in all.
func (c *trio) loadAll(ctx context.Context, leaders int64, callers int, d time.Duration) (all result, failed error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	for i, s := range c.sites {
		group.Go(func() {
			r, err := load(ctx, startsOf(s, leaders), max(1, (callers+i)/len(c.sites)), d)
			mu.Lock()
			defer mu.Unlock()
			all.rate += r.rate
			all.latencies = append(all.latencies, r.latencies...)
			failed = errors.Join(failed, err)
		})
	}
	group.Wait()
	slices.Sort(all.latencies)
	return all, failed
}

// startTasks has callers start tasks at all gateways, in rounds, until there are so many at least. It returns how many.
func (c *trio) startTasks(ctx context.Context, least, callers int, round time.Duration) (n int, err error) {
	for n < least {
		r, err := c.loadAll(ctx, manyLeaders, callers, round)
		if err != nil {
			return n, err
		}
		n += len(r.latencies)
	}
	return n, nil
}

// starts measures starts at all gateways beside one that has Pebble, and beside a client that publishes the same bytes,
// to as many streams like those of the gateways, with as many at once.
func (c *trio) starts(ctx context.Context, o settings) error {
	const warm = 2000
	before, err := c.stored(ctx)
	if err != nil {
		return err
	}
	n, err := c.startTasks(ctx, warm, o.conns, o.round/2)
	if err != nil {
		return err
	}
	after, err := c.stored(ctx)
	if err != nil {
		return err
	}
	written, bytes := int(after.written-before.written), int(after.bytes-before.bytes)
	bare, err := newPublisher(ctx, c.servers.URL(), bytes/written, (written+n/2)/n)
	if err != nil {
		return err
	}
	defer bare.close()
	cost := o.table("what a start writes to the streams", "messages", "bytes")
	cost.row("each start", float64(written)/float64(n), float64(bytes)/float64(n))
	for _, callers := range []int{gateways, o.conns, 4 * o.conns} {
		ways := []struct {
			name string
			run  func(callers int, d time.Duration) (result, error)
		}{
			{"three gateways, a start", func(n int, d time.Duration) (result, error) {
				return c.loadAll(ctx, manyLeaders, n, d)
			}},
			{"three gateways, a start of one Leader", func(n int, d time.Duration) (result, error) {
				return c.loadAll(ctx, 1, n, d)
			}},
			{"one gateway over Pebble, a start", func(n int, d time.Duration) (result, error) {
				return load(ctx, startsOf(c.alone, manyLeaders), n, d)
			}},
			{"what a start writes, only published", func(n int, d time.Duration) (result, error) {
				return bare.load(ctx, bare.start, n, d)
			}},
			{"a message, only published", func(n int, d time.Duration) (result, error) {
				return bare.load(ctx, bare.message, n, d)
			}},
			{"the agent's answer", func(n int, d time.Duration) (result, error) {
				return load(ctx, a2aSend(c.alone, plain, "agent alone", portAgent), n, d)
			}},
		}
		rounds := make([][]result, len(ways))
		for round := range o.rounds {
			for i := range ways {
				i = (i + round) % len(ways)
				r, err := ways[i].run(callers, o.round)
				if err != nil {
					return fmt.Errorf("%s: %w", ways[i].name, err)
				}
				rounds[i] = append(rounds[i], r)
			}
		}
		t := o.table("several gateways: "+plural(callers, "caller"), "per s", "p50 µs", "p99 µs", "to publish", "least",
			"greatest")
		for i, w := range ways {
			p := pairs{gateway: rounds[i], proxy: rounds[3]}
			t.row(w.name, append(summary(rounds[i])[:3], spread(p.ratios())...)...)
		}
		for _, of := range []int{3, 4} {
			target := []float64{3: 0.75, 4: 0.35}[of]
			p := pairs{gateway: rounds[0], proxy: rounds[of]}
			c.aims = append(c.aims, aim{fmt.Sprintf("starts, %s, to %q", plural(callers, "caller"), ways[of].name),
				median(p.ratios()), target, false})
		}
	}
	return nil
}

// streamsOf counts what the streams of the gateways hold.
type streamsOf struct{ written, bytes uint64 }

// stored returns what the gateways have written to their streams: all messages ever, and the bytes that are there.
func (c *trio) stored(ctx context.Context) (all streamsOf, err error) {
	var page struct {
		Accounts []struct {
			Streams []struct {
				Name  string `json:"name"`
				State struct {
					Bytes   uint64 `json:"bytes"`
					LastSeq uint64 `json:"last_seq"`
				} `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/jsz?streams=true", c.servers.Servers[0].MonitorPort)
	if err := get(ctx, url, &page); err != nil {
		return all, err
	}
	for _, a := range page.Accounts {
		for _, s := range a.Streams {
			if strings.HasPrefix(s.Name, "aip-") {
				all.written += s.State.LastSeq
				all.bytes += s.State.Bytes
			}
		}
	}
	return all, nil
}

// follow measures how much later than the agent sends them events arrive, at a gateway of three and at one alone.
func (c *trio) follow(ctx context.Context, o settings) error {
	work := agentWork{200, 100, 50}
	t := o.table("several gateways: "+work.String(), "events/s", "p50 µs", "p99 µs")
	var p50, p99 []float64
	for range max(1, o.rounds/3) {
		for i, s := range append(slices.Clone(c.sites), c.alone) {
			r, err := s.flow(ctx, aipStream(s, plain), work)
			if err != nil {
				return err
			}
			name := fmt.Sprintf("gateway %d of three", i+1)
			if s == c.alone {
				name = "one gateway over Pebble"
			} else {
				p50 = append(p50, micros(percentile(r.latencies, 0.5)))
				p99 = append(p99, micros(percentile(r.latencies, 0.99)))
			}
			t.row(name, r.rate, micros(percentile(r.latencies, 0.5)), micros(percentile(r.latencies, 0.99)))
		}
	}
	c.aims = append(c.aims, aim{work.String() + ", p50 µs", median(p50), 3000, true},
		aim{work.String() + ", p99 µs", median(p99), 40_000, true})
	return nil
}

// replay measures the replay of a long task, at the gateway that owns it and at the others.
func (c *trio) replay(ctx context.Context, o settings) error {
	const events = 9_000 // all of them are kept
	t := o.table(fmt.Sprintf("several gateways: replay of a task with %d events", events), "events/s")
	var long int64
	for i, s := range append(slices.Clone(c.sites), c.alone) {
		again := reStream(s, plain)
		if i == 0 || s == c.alone {
			start := aipStream(s, plain)
			long = numbers.Add(1)
			if err := start.read(ctx, long, fmt.Sprintf("stream %d 0", events), func([]byte) {}); err != nil {
				return err
			}
		}
		var rates []float64
		for range o.rounds {
			count := 0
			began := time.Now()
			if err := again.read(ctx, long, "", func([]byte) { count++ }); err != nil {
				return err
			}
			rates = append(rates, float64(count)/time.Since(began).Seconds())
		}
		name := fmt.Sprintf("gateway %d of three", i+1)
		if s == c.alone {
			name = "one gateway over Pebble"
		} else {
			c.aims = append(c.aims, aim{"replay at " + name + ", events/s", median(rates), 300_000, false})
		}
		t.row(name, median(rates))
	}
	return nil
}

// memory measures what tasks that rest take, of the gateways and of the servers.
func (c *trio) memory(ctx context.Context, o settings) error {
	before, err := c.held(ctx)
	if err != nil {
		return err
	}
	n, err := c.startTasks(ctx, o.tasks, o.conns, o.round)
	if err != nil {
		return err
	}
	after, err := c.held(ctx)
	if err != nil {
		return err
	}
	t := o.table(fmt.Sprintf("several gateways: bytes for each of %d tasks that rest", n), "of one", "of all three")
	for i, name := range []string{"memory of a gateway", "memory of a server", "disk of a server"} {
		grown := (after[i] - before[i]) / float64(n)
		t.row(name, grown/gateways, grown)
	}
	return nil
}

// held returns what the gateways and the servers hold, after they have been idle: the memory of all gateways, that of
// all servers, and what all servers have on their disks, in bytes.
func (c *trio) held(ctx context.Context) (sum [3]float64, err error) {
	for _, s := range c.sites[1:] {
		if err := s.collect(ctx); err != nil {
			return sum, err
		}
	}
	idle, err := c.sites[0].idleRSS(ctx)
	sum[0] = idle
	for _, s := range c.sites[1:] {
		if err != nil {
			return sum, err
		}
		idle, err = s.rss()
		sum[0] += idle
	}
	for _, s := range c.servers.Servers {
		var vars struct {
			Mem float64 `json:"mem"`
		}
		var js struct {
			Storage float64 `json:"storage"`
		}
		at := fmt.Sprintf("http://127.0.0.1:%d/", s.MonitorPort)
		if err := errors.Join(get(ctx, at+"varz", &vars), get(ctx, at+"jsz", &js)); err != nil {
			return sum, err
		}
		sum[1] += vars.Mem
		sum[2] += js.Storage
	}
	return sum, err
}

// takeOver kills the last gateway, and has Leaders of all shards call the first one at that moment. A call for a shard
// without an owner waits for the next one.
func (c *trio) takeOver(ctx context.Context, o settings) error {
	waited, err := c.killOne()
	if err != nil {
		return err
	}
	t := o.table("several gateways: one is killed", "calls", "median ms", "greatest ms")
	t.row("calls that wait for another owner", float64(len(waited)), micros(percentile(waited, 0.5))/1e3,
		micros(percentile(waited, 1))/1e3)
	return nil
}

// killOne kills the last gateway, and returns how long the calls have waited that needed another owner.
func (c *trio) killOne() (waited []time.Duration, err error) {
	const noticed = 500 * time.Millisecond // a call that takes less was for a shard that had its owner
	start := startsOf(c.sites[0], manyLeaders)
	c.sites[gateways-1].stop()
	var mu sync.Mutex
	began := time.Now()
	err = together(manyLeaders, func(int) error {
		if err := start.callOnce(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if d := time.Since(began); d > noticed {
			waited = append(waited, d)
		}
		return nil
	})
	slices.Sort(waited)
	return waited, err
}
