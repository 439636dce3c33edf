// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/internal/natstest"
)

const (
	clusterSize = 3               // of gateways, and of servers
	lease       = 3 * time.Second // the default of the store
)

// clusterSettings are the options of a run with several gateways.
type clusterSettings struct {
	caddy    string
	upgrade  string        // another binary, to which gateways are upgraded and from which they go back; empty for none
	disturb  time.Duration // how long there are disturbances
	tasks    int           // at a time, at most
	begins   int           // tasks that begin in a second
	leaders  int
	seed     uint64
	takeover time.Duration // in which the tasks of a gateway that was killed must go on elsewhere; 0 for no check
	out      string
}

// cluster is three gateways that share a store on three NATS servers, each a process of its own, with an agent and a
// receiver of webhooks in this one, and groups at a broker.
type cluster struct {
	*fixture
	out     string // the directory for histories, drawings and logs
	servers *natstest.Cluster
	nodes   []*node
	around  *node              // no gateway: the troubles of anything
	clients [][]*leader.Client // of each Leader, at each gateway
	agent   *countingAgent
	hooks   *hooks
	broker  *broker
	groups  []*clusterGroup
	serving []*http.Server
	*findings
}

// newCluster starts a cluster, which the caller must close.
func newCluster(ctx context.Context, s clusterSettings) (_ *cluster, err error) {
	c := &cluster{fixture: new(fixture), out: s.out, around: &node{name: "servers"}, agent: newCountingAgent(),
		findings: newFindings()}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if err := c.make(); err != nil {
		return nil, err
	}
	server, _, err := serve(c.Agent, c.agent)
	if err != nil {
		return nil, err
	}
	c.serving = append(c.serving, server)
	c.hooks = newHooks()
	if server, c.hooks.addr, err = serve("127.0.0.1:0", c.hooks); err != nil {
		return nil, err
	}
	c.serving = append(c.serving, server)
	if c.servers, err = natstest.Start(clusterSize, natstest.Config{Hidden: true}); err != nil {
		return nil, err
	}
	caddy, err := filepath.Abs(s.caddy)
	if err != nil {
		return nil, err
	}
	other, err := filepath.Abs(s.upgrade)
	if err != nil {
		return nil, err
	}
	for i := range clusterSize {
		n, err := c.newNode(i, caddy, other)
		if n != nil {
			c.nodes = append(c.nodes, n)
		}
		if err != nil {
			return nil, err
		}
	}
	var starts sync.WaitGroup
	failed := make([]error, clusterSize)
	for i, n := range c.nodes {
		starts.Go(func() { failed[i] = n.start(ctx) })
	}
	starts.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	if err := c.whole(ctx); err != nil {
		return nil, err
	}
	return c, errors.Join(c.makeLeaders(s.leaders), c.makeGroups(ctx))
}

func (c *cluster) makeLeaders(n int) error {
	files, err := c.certificates("honest", n)
	if err != nil {
		return err
	}
	for i := range files {
		config, err := c.tls(&files[i])
		if err != nil {
			return err
		}
		var at []*leader.Client
		for _, n := range c.nodes {
			one, err := leader.New("https://"+n.front, config.Clone())
			if err != nil {
				return err
			}
			one.Sender = string(files[i].AIC)
			at = append(at, one)
		}
		c.clients = append(c.clients, at)
	}
	return nil
}

// config returns the Caddyfile of a gateway.
func (c *cluster) config(n *node, urls []string) []byte {
	var monitors []string
	for _, s := range c.servers.Servers {
		monitors = append(monitors, fmt.Sprintf("http://127.0.0.1:%d", s.MonitorPort))
	}
	return fmt.Appendf(nil, `{
	admin %s
	auto_https off
	grace_period 20s
	aip {
		store jetstream %s {
			node %s
			monitor %s
			lease %v
		}
		notify {
			allow_networks 127.0.0.0/8
		}
	}
}
https://%s {
	tls %s %s {
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}
	aip_gateway a2a/legacy http://%s {
		agent {
			resend always
		}
		aic %s
		group {
			allow_brokers localhost
			token_key %s
		}
		limits {
			tasks_per_leader 1000000
		}
	}
}
`, n.admin, strings.Join(urls, " "), n.name, strings.Join(monitors, " "), lease, n.front, c.PKI.Server.Cert,
		c.PKI.Server.Key, c.PKI.CA.Cert, c.Agent, c.AIC, groupTokenKey)
}

// healLimit is how long it may take until all is well again when a disturbance is over.
const healLimit = 90 * time.Second

// whole waits until all gateways are ready, and each shard is owned by the one that should.
func (c *cluster) whole(ctx context.Context) error {
	return await(ctx, healLimit, func() error {
		for _, n := range c.nodes {
			if err := n.ready(ctx); err != nil {
				return err
			}
			r, err := n.report(ctx)
			if err != nil {
				return err
			}
			owners := make(map[string]bool)
			for _, shard := range r.Shards {
				if shard.Owner == "" || shard.Should != "" || shard.Leader == "" || len(shard.Down) > 0 {
					return fmt.Errorf("%s says that the shard %d is %+v", n.name, shard.Shard, shard)
				}
				owners[shard.Owner] = true
			}
			if len(owners) != len(c.nodes) {
				return fmt.Errorf("%s says that %d gateways own shards", n.name, len(owners))
			}
		}
		return nil
	})
}

func (c *cluster) close() {
	for _, g := range c.groups {
		g.close()
	}
	if c.broker != nil {
		_ = c.broker.Close()
	}
	for _, n := range c.nodes {
		n.kill()
		for _, p := range n.proxies {
			p.Close()
		}
	}
	if c.servers != nil {
		c.servers.Close()
	}
	for _, s := range c.serving {
		_ = s.Close()
	}
	c.agent.inner.Close()
	if c.Dir != "" {
		_ = os.RemoveAll(c.Dir)
	}
}

// runCluster has Leaders work with the gateways while these and their servers are disturbed, and checks all of it.
func runCluster(ctx context.Context, s clusterSettings) (err error) {
	if s.disturb <= 0 || s.tasks < 1 || s.begins < 1 || s.leaders < 1 {
		return errors.New("for, tasks, rate and callers must be positive")
	}
	if s.out == "" {
		if s.out, err = os.MkdirTemp("", "aip-soak-cluster-"); err != nil {
			return err
		}
	} else if err := os.MkdirAll(s.out, 0o700); err != nil {
		return err
	}
	fmt.Printf("seed %d; histories, drawings and logs are in %s\n", s.seed, s.out)
	c, err := newCluster(ctx, s)
	if err != nil {
		return err
	}
	defer c.close()
	l, err := newErrands(c, s)
	if err != nil {
		return err
	}
	defer l.close()
	began := time.Now()
	d := newDisturber(c, s)
	l.during(ctx, func(ctx context.Context) { d.run(ctx, s.disturb) })
	if err := ctx.Err(); err != nil {
		return err
	}
	d.print()
	l.awaitHooks(ctx)
	fmt.Printf("\n%d tasks in %v, of them %d with webhooks and %d in groups; %d notifications; the agent received %d "+
		"messages\n", l.count.Load(), time.Since(began).Round(time.Second), len(l.hooked), l.grouped.Load(),
		c.hooks.count(), c.agent.count())
	heard, repeated := 0, 0
	for _, g := range c.groups {
		n, again := g.count()
		heard, repeated = heard+n, repeated+again
	}
	fmt.Printf("%d messages were published in %d groups, of them %d again\n", heard+repeated, len(c.groups), repeated)
	return errors.Join(d.judge(), c.verdict())
}
