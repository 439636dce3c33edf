// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// Node is a node of the cluster, as this one knows it.
type Node struct {
	Name        string
	Incarnation string
	Version     string
	Protocol    int
	Started     time.Time
	Self        bool
	Living      bool
	Left        bool          // it has announced its end; otherwise, if it does not live, it is gone
	Draining    bool          // it gets no shards
	Silent      time.Duration // since its record was seen to change last
	Owns        int           // shards, as it says itself
}

// Nodes returns the nodes seen since this one was started, by name.
func (c *Cluster) Nodes() []Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Node, 0, len(c.members))
	now := c.config.Clock()
	for name, m := range c.members {
		draining := m.Draining
		if m.Incarnation == c.incarnation {
			draining = c.self.draining // its record may be a moment late
		}
		all = append(all, Node{Name: name, Incarnation: m.Incarnation, Version: m.Version, Protocol: m.Protocol,
			Started: m.Started, Self: m.Incarnation == c.incarnation, Living: m.living(), Left: m.Left, Draining: draining,
			Silent: now - m.seen, Owns: m.Owns})
	}
	slices.SortFunc(all, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Shard is a shard, as this node knows it.
type Shard struct {
	Number int
	Owner  Owner     // as the leader of its stream has it
	Err    error     // reason the leader was not asked
	Should string    // the node to own it; empty while this node knows no living one
	Here   bool      // this node works on it
	Since  time.Time // since when it does
	Busy   string    // reason it does not move now, if it should and this node owns it
	Doubt  bool      // this node does not act on it now
}

// Shards returns all shards, with their owners' records; it asks for these.
func (c *Cluster) Shards(ctx context.Context) []Shard {
	all := make([]Shard, len(c.shards))
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, c.config.Lease)
			defer cancel()
			all[i].Number = i
			all[i].Owner, all[i].Err = c.config.Streams.Owner(ctx, i)
		})
	}
	work.Wait()
	c.describe(all)
	for i := range all {
		if all[i].Here && all[i].Should != c.config.Name {
			all[i].Busy = c.busy(i)
		}
	}
	return all
}

// describe fills in this node's own knowledge of all shards.
func (c *Cluster) describe(all []Shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var owners []string
	if nodes := c.living(); len(nodes) > 0 {
		owners = assign(len(c.shards), nodes)
	}
	for i := range all {
		if owners != nil {
			all[i].Should = owners[i]
		}
		if s := c.shards[i].store; s != nil {
			all[i].Here, all[i].Since, all[i].Doubt = true, c.shards[i].since, s.Held() != nil
		}
	}
}

// Since returns the start times of this node's ownership of its shards. It asks neither nodes nor servers.
func (c *Cluster) Since() map[int]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[int]time.Time)
	for i := range c.shards {
		if c.shards[i].store != nil {
			all[i] = c.shards[i].since
		}
	}
	return all
}

// The services of every node.
const (
	drainService = "cluster/drain"
	moveService  = "cluster/move"
)

// Drain has this node get no shards, and give up its own, one by one: busy ones when they are no longer busy, or when
// ctx is done. It returns when it owns none, or when there is no other node to own them.
func (c *Cluster) Drain(ctx context.Context) {
	c.setDraining(true)
	defer func() {
		c.mu.Lock()
		c.self.force = false
		c.mu.Unlock()
	}()
	done, forced := ctx.Done(), (<-chan time.Time)(nil)
	for {
		c.mu.Lock()
		owns, changed := 0, c.changed
		for i := range c.shards {
			if c.shards[i].store != nil {
				owns++
			}
		}
		nodes := c.living()
		alone := len(nodes) == 0 || slices.ContainsFunc(nodes, func(n candidate) bool { return n.name == c.config.Name })
		if me := c.members[c.config.Name]; me == nil || !me.Draining {
			alone = alone && !c.joined // the record that says so is not written yet
		}
		moving := c.moving >= 0
		c.mu.Unlock()
		if owns == 0 && !moving || alone {
			return
		}
		select {
		case <-changed:
		case <-time.After(c.config.Lease / 60): // an ended move is no change
		case <-done:
			done, forced = nil, time.After(c.config.Lease)
			c.mu.Lock()
			c.self.force = true
			c.mu.Unlock()
			c.kick()
		case <-forced:
			return
		case <-c.ctx.Done():
			return
		}
	}
}

// setDraining has the record of this node say whether it gets shards.
func (c *Cluster) setDraining(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.self.draining != on {
		c.self.draining = on
		c.hurry()
	}
}

// DrainNode has a node get no shards from now on, and give up its own as soon as they are not busy; or get shards
// again. It is forgotten when the node is started again.
func (c *Cluster) DrainNode(ctx context.Context, name string, on bool) error {
	_, err := c.CallNode(ctx, name, drainService, []byte(fmt.Sprint(on)))
	return err
}

// Move has a shard owned by a node as long as the node lives and does not drain.
func (c *Cluster) Move(ctx context.Context, number int, name string) error {
	if number < 0 || number >= len(c.shards) {
		return fmt.Errorf("there is no shard %d: they are numbered from 0 to %d", number, len(c.shards)-1)
	}
	request, err := json.Marshal(want{number, time.Now().UnixNano()})
	if err != nil {
		return err
	}
	_, err = c.CallNode(ctx, name, moveService, request)
	return err
}

// operate handles the services of every node.
func (c *Cluster) operate() {
	c.Handle(drainService, func(_ context.Context, _ int, request []byte) ([]byte, error) {
		c.setDraining(string(request) == "true")
		return nil, nil
	})
	c.Handle(moveService, func(_ context.Context, _ int, request []byte) ([]byte, error) {
		var w want
		if err := json.Unmarshal(request, &w); err != nil || w.Shard < 0 || w.Shard >= len(c.shards) {
			return nil, errors.New("there is no such shard")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.self.wants = append(slices.DeleteFunc(slices.Clone(c.self.wants), func(o want) bool {
			return o.Shard == w.Shard
		}), w)
		c.hurry()
		return nil, nil
	})
}

// CallNode has a node carry out a request. The node may be this one.
func (c *Cluster) CallNode(ctx context.Context, name, service string, request []byte) ([]byte, error) {
	if name == c.config.Name {
		return c.callHere(ctx, shard.AnyShard, service, request)
	}
	to, lives := c.named(name)
	if !lives {
		return nil, fmt.Errorf("no node %q of the cluster lives", name)
	}
	return c.ask(ctx, to, shard.AnyShard, service, request, nil)
}

// named returns the node of a name, if it lives.
func (c *Cluster) named(name string) (_ Owner, lives bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[name]
	if m == nil || !m.living() {
		return Owner{}, false
	}
	return Owner{Node: name, Incarnation: m.Incarnation}, true
}

// Each implements shard.Peers: it asks all nodes at once, and yields their answers with their names.
func (c *Cluster) Each(ctx context.Context, service string, request []byte) iter.Seq2[shard.Answer, error] {
	return func(yield func(shard.Answer, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var work sync.WaitGroup
		defer work.Wait()
		defer cancel()
		type answer struct {
			shard.Answer
			err  error
			done chan struct{}
		}
		var all []*answer
		for _, n := range c.Nodes() {
			if !n.Living {
				continue
			}
			a := &answer{Answer: shard.Answer{Node: n.Name}, done: make(chan struct{})}
			all = append(all, a)
			work.Go(func() {
				defer close(a.done)
				a.Data, a.err = c.CallNode(ctx, a.Node, service, request)
			})
		}
		for _, a := range all {
			<-a.done
			if !yield(a.Answer, a.err) {
				return
			}
		}
	}
}

// stats counts events, for metrics.
type stats struct {
	lapses, gone, fenced atomic.Uint64
	claims, takeOvers    measure.Durations
}

// Stats are the events since the node was started, and the present state.
type Stats struct {
	Lapses    uint64           // number of lapses of the lease of this node
	Gone      uint64           // number of times another node was declared gone
	Fenced    uint64           // shards lost because another node had claimed them
	Claims    uint64           // shards claimed
	TakeOvers uint64           // of them, from a gone node
	ClaimTook measure.Snapshot // until the logs of the shard were known
	// TakeOverTook is the time from the last sign of the gone node.
	TakeOverTook measure.Snapshot
	Owned        int // shards owned by this node
	Calls        int // of this node, carried out by others now
	Serving      int // of others, carried out by this node now
	Held         int // bytes of the requests and replies of those
}

// Stats returns them.
func (c *Cluster) Stats() Stats {
	s := Stats{Lapses: c.stats.lapses.Load(), Gone: c.stats.gone.Load(), Fenced: c.stats.fenced.Load(),
		ClaimTook: c.stats.claims.Snapshot(), TakeOverTook: c.stats.takeOvers.Snapshot()}
	s.Claims, s.TakeOvers = s.ClaimTook.Count, s.TakeOverTook.Count
	c.mu.Lock()
	for i := range c.shards {
		if c.shards[i].store != nil {
			s.Owned++
		}
	}
	c.mu.Unlock()
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	s.Calls, s.Serving, s.Held = len(c.calls.pending), len(c.calls.serving), c.calls.held
	return s
}
