// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/cluster/clustertest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	shardCount = 16
	lease      = 3 * time.Second
)

var quiet = slog.New(slog.DiscardHandler)

func init() { lockorder.Checked = true }

// node is a process: its engine in each shard acts outside ten times a second, and appends.
type node struct {
	*cluster.Cluster
	w    *world
	name string
	link *clustertest.Link
	ctx  context.Context
	kill context.CancelFunc
	work sync.WaitGroup

	mu     lockorder.Mutex[lockorder.Task] // as those of real engines
	stores [shardCount]replay.Store        // opened by the node
	busy   [shardCount]string
	slow   time.Duration // from the loss of a shard until its engines have closed

	release chan struct{} // of a waiting call
}

// world is a cluster, and the acts of its nodes.
type world struct {
	*testing.T
	*clustertest.World
	began time.Time
	lease time.Duration // of nodes started later
	log   *slog.Logger  // likewise
	speak int           // the protocol, likewise; 0 for the present one
	slow  time.Duration // time of their writes to the registry, likewise

	mu   sync.Mutex
	acts [shardCount][]act
}

// act is an act of an owner outside.
type act struct {
	node  *node
	at    time.Duration
	epoch uint64 // of the owner
}

func newWorld(t *testing.T) *world {
	return &world{T: t, World: clustertest.New(shardCount), began: time.Now(), lease: lease, log: quiet}
}

func (w *world) start(name string) *node {
	w.Helper()
	n := w.open(name)
	if err := n.Joined(w.Context()); err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) open(name string) *node {
	w.Helper()
	n := &node{w: w, name: name, link: w.Link()}
	n.link.SlowWrites(w.slow)
	n.ctx, n.kill = context.WithCancel(context.Background())
	c := cluster.Config{Name: name, Streams: n.link, Registry: n.link, Network: n.link, Lease: w.lease, Log: w.log,
		Busy: n.isBusy, Clock: func() time.Duration { return time.Hour + time.Since(w.began) }}
	c.SetProtocol(w.speak)
	var err error
	if n.Cluster, err = cluster.Open(c); err != nil {
		w.Fatal(err)
	}
	for i := range shardCount {
		n.work.Go(func() { n.keep(i) })
	}
	return n
}

func (n *node) isBusy(shard int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.busy[shard]
}

// keep does the same as shard.Set.
func (n *node) keep(shard int) {
	for n.ctx.Err() == nil {
		s, lost, err := n.Open(n.ctx, shard)
		if err != nil {
			return
		}
		n.mu.Lock()
		n.stores[shard] = s
		n.mu.Unlock()
		held, epoch := replay.HeldBy(s), n.w.Owner(shard).Epoch
		tick := time.NewTicker(100 * time.Millisecond)
		for over := false; !over; {
			if held() == nil {
				n.w.mu.Lock()
				n.w.acts[shard] = append(n.w.acts[shard], act{n, n.w.at(), epoch})
				n.w.mu.Unlock()
			}
			select {
			case <-tick.C:
			case <-lost:
				over = true
			case <-n.ctx.Done():
				over = true
			}
		}
		tick.Stop()
		n.mu.Lock()
		n.stores[shard] = nil
		slow := n.slow
		n.mu.Unlock()
		bubble.Pass(slow)
		s.Close()
	}
}

// end is the effect of SIGTERM, but for the drain.
func (n *node) end() {
	n.kill()
	n.work.Wait()
	n.Close()
}

// die is the end of the process without a word.
func (n *node) die() {
	n.link.Kill()
	n.kill()
	go n.Close()
}

// owned returns the number of shards of each node, by the records of their streams.
func (w *world) owned() map[string]int {
	all := make(map[string]int)
	for i := range shardCount {
		all[w.Owner(i).Node]++
	}
	return all
}

// shares fails the test unless the nodes own all shards, in about equal shares.
func (w *world) shares(names ...string) {
	w.Helper()
	synctest.Wait()
	all := w.owned()
	most := (shardCount + len(names) - 1) / len(names)
	for name, n := range all {
		if !slices.Contains(names, name) || n > most {
			w.Errorf("at %v: %q owns %d shards: %v", time.Since(w.began), name, n, all)
		}
	}
}

// alone fails the test if a node has acted in a shard after another one had taken it over: then it acts again only when
// it has it back, by a claim.
func (w *world) alone() {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, acts := range w.acts {
		for j := 1; j < len(acts); j++ {
			if a, b := acts[j-1], acts[j]; b.epoch < a.epoch {
				w.Errorf("shard %d: %s acts at %v, after %s with a later claim", i, b.node.name, b.at, a.node.name)
			}
		}
	}
}

// owners returns the owner's records of all shards.
func (w *world) owners() []cluster.Owner {
	all := make([]cluster.Owner, shardCount)
	for i := range all {
		all[i] = w.Owner(i)
	}
	return all
}

// ownedBy returns a shard owned by a node.
func (w *world) ownedBy(name string) int {
	return slices.IndexFunc(w.owners(), func(o cluster.Owner) bool { return o.Node == name })
}

// move has an operator move a shard to a node, by way of one.
func (w *world) move(by *node, shard int, to string) {
	w.Helper()
	if err := by.Move(w.Context(), shard, to); err != nil {
		w.Fatal(err)
	}
}

// lastOf returns when a node has acted last, before a time.
func (w *world) lastOf(n *node, before time.Duration) (last time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, acts := range w.acts {
		for _, a := range acts {
			if a.node == n && a.at < before {
				last = max(last, a.at)
			}
		}
	}
	return last
}

// end ends nodes.
func (w *world) end(nodes ...*node) {
	for _, n := range nodes {
		n.end()
	}
}

// opened returns the stores opened by the node.
func (n *node) opened() [shardCount]replay.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stores
}

func (n *node) setBusy(reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.busy {
		n.busy[i] = reason
	}
}

// gap returns the longest time without acts of any node in a shard since a time.
func (w *world) gap(since time.Duration) (most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, acts := range w.acts {
		last := since
		for _, a := range acts {
			if a.at > since {
				most = max(most, a.at-last)
				last = a.at
			}
		}
		most = max(most, time.Since(w.began)-last)
	}
	return most
}

func (w *world) at() time.Duration { return time.Since(w.began) }

func inBubble(t *testing.T, f func(w *world)) {
	bubble.Test(t, func(t *testing.T) { f(newWorld(t)) })
}
