// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"context"
	"strconv"
	"sync"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Shards are shards in memory, shared by several Nodes. They stand for processes.
type Shards struct {
	mu      sync.Mutex
	shards  []memoryShard
	nodes   []*Node
	changed chan struct{} // closed at the next change
}

// memoryShard is one shard. The mutex of Shards guards it, but the store.
type memoryShard struct {
	logs *replay.Memory

	appending sync.RWMutex // read-locked by an append, so none is under way when the owner changes
	owner     *owned       // nil for none
	assigned  *Node        // the owner to be; nil for none
	seize     bool         // it does not wait until the owner has closed its store
}

// NewShards returns a number of shards without owners.
func NewShards(n int) *Shards {
	s := &Shards{shards: make([]memoryShard, n), changed: make(chan struct{})}
	for i := range s.shards {
		s.shards[i].logs = replay.NewMemory(replay.Settings{})
	}
	return s
}

// Logs returns the logs of a shard, for others than its owner.
func (s *Shards) Logs(shard int) *replay.Memory { return s.shards[shard].logs }

// Node returns a new Node; it owns nothing yet.
func (s *Shards) Node() *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &Node{of: s, name: "node-" + strconv.Itoa(len(s.nodes)+1), services: make(map[string]service)}
	s.nodes = append(s.nodes, n)
	return n
}

// Assign has a Node own a shard, or none if it is nil. With seize, the Node takes the shard over while the owner works
// on it, as with a process that does not answer; otherwise the owner closes its store before.
func (s *Shards) Assign(shard int, to *Node, seize bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.shards[shard]
	m.assigned, m.seize = to, seize
	if m.owner != nil && m.owner.node != to && !seize {
		m.owner.lose()
	}
	s.change()
}

// Leave takes a shard from the Node owning it, and gives it to no other one.
func (n *Node) Leave(shard int) { n.of.Assign(shard, nil, false) }

// change wakes all waiting for a change. s.mu is held.
func (s *Shards) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Node is a process, as far as its shards go. It implements replay.Shards, and shard.Peers.
type Node struct {
	of   *Shards
	name string

	// Under the mutex of Shards.
	services map[string]service
	dead     bool
}

// Count implements replay.Shards.
func (n *Node) Count() int { return len(n.of.shards) }

// Logs implements replay.Shards.
func (n *Node) Logs(shard int) replay.Logs { return n.of.shards[shard].logs }

// Act calls f if the Node owns a shard, and reports whether it does. No other Node takes the shard over meanwhile: so
// acts a process outside the store within the lease of its shard.
func (n *Node) Act(shard int, f func()) bool {
	m := &n.of.shards[shard]
	m.appending.RLock()
	defer m.appending.RUnlock()
	owns := m.owner != nil && m.owner.node == n
	if owns {
		f()
	}
	return owns
}

// Open implements replay.Shards.
func (n *Node) Open(ctx context.Context, shard int) (replay.Store, <-chan struct{}, error) {
	s := n.of
	for {
		s.mu.Lock()
		m := &s.shards[shard]
		if m.assigned == n && (m.owner == nil || m.seize && m.owner.node != n) {
			m.appending.Lock()
			before := m.owner
			o := &owned{Store: m.logs, of: s, shard: m, node: n, lost: make(chan struct{})}
			m.owner = o
			m.appending.Unlock()
			if before != nil {
				before.lose()
			}
			s.mu.Unlock()
			return o, o.lost, nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// owned is the store of a shard for one of its owners.
type owned struct {
	replay.Store
	of     *Shards
	shard  *memoryShard
	node   *Node
	lost   chan struct{}
	isLost bool // lose has closed lost
}

// lose ends the ownership for the owner. of.mu is held.
func (o *owned) lose() {
	if !o.isLost {
		o.isLost = true
		close(o.lost)
	}
}

// Append implements replay.Store.
func (o *owned) Append(ctx context.Context, a replay.Append) error {
	o.shard.appending.RLock()
	defer o.shard.appending.RUnlock()
	if err := o.held(); err != nil {
		return err
	}
	return o.Store.Append(ctx, a)
}

// Held is described at replay.HeldBy. An owner knows at once when another Node has taken the shard over.
func (o *owned) Held() error {
	o.shard.appending.RLock()
	defer o.shard.appending.RUnlock()
	return o.held()
}

// held is Held. appending is read-locked.
func (o *owned) held() error {
	if o.shard.owner != o {
		return replay.ErrFenced
	}
	return nil
}

// Close implements replay.Store. The logs stay.
func (o *owned) Close() error {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.lose()
	o.shard.appending.Lock()
	defer o.shard.appending.Unlock()
	if o.shard.owner == o {
		o.shard.owner = nil
		o.of.change()
	}
	return nil
}
