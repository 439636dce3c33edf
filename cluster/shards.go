// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// store is the store of a shard claimed by this node.
type store struct {
	Store
	of    *Cluster
	shard int

	once   sync.Once
	lost   chan struct{}
	fenced sync.Once // for taken
	closed chan struct{}
	sure   atomic.Uint64 // this node is known to own the shard up to this one of the doubts
	asked  atomic.Int64  // time of the last request for the owner's record that named this node, on the clock
}

// unsure is the value of sure for the store of a shard another node seems to own.
const unsure = ^uint64(0)

// lose has the engines close the store.
func (s *store) lose() { s.once.Do(func() { close(s.lost) }) }

// taken gives the shard up, because another node has claimed it. It counts once, even if found out several times, and
// not if this node had given the shard up before.
func (s *store) taken(by string) {
	if s.of.owned(s.shard) != s {
		return
	}
	s.fenced.Do(func() {
		s.of.stats.fenced.Add(1)
		s.of.log.Warn("another node has taken a shard over", "shard", s.shard, "other", by)
	})
	s.lose()
}

// Held implements the optional method of a store, see replay.Held.
func (s *store) Held() error {
	if s.sure.Load() != s.of.doubts.Load() || s.age() >= s.of.config.Lease {
		return ErrNoLease
	}
	return s.of.held()
}

// age returns the time since the last request for the owner's record that named this node.
func (s *store) age() time.Duration { return s.of.config.Clock() - time.Duration(s.asked.Load()) }

// Close implements replay.Store. It releases the shard.
func (s *store) Close() error {
	s.lose()
	s.of.mu.Lock()
	s.of.shards[s.shard].store = nil
	s.of.change()
	s.of.mu.Unlock()
	close(s.closed)
	s.release()
	err := s.Store.Close()
	s.of.announce(s.shard)
	return err
}

// release has the owner's record name no node. If the stream cannot be written now, the shard is stray: no other node
// claims the shard of a living one.
func (s *store) release() {
	ctx, cancel := context.WithTimeout(context.Background(), s.of.config.Lease)
	defer cancel()
	err := s.Release(ctx)
	if err == nil || errors.Is(err, replay.ErrClosed) {
		return
	}
	s.of.log.Warn("a shard was not released; trying again", "shard", s.shard, "error", err)
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.shards[s.shard].stray = true
}

// gather releases a stray shard.
func (c *Cluster) gather(shard int) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.config.Lease)
	defer cancel()
	owner, err := c.config.Streams.Owner(ctx, shard)
	if err != nil || owner.Incarnation != c.incarnation {
		return err
	}
	return c.config.Streams.Release(ctx, shard, owner)
}

// Open implements replay.Shards.
func (c *Cluster) Open(ctx context.Context, shard int) (replay.Store, <-chan struct{}, error) {
	for {
		c.mu.Lock()
		changed := c.changed
		ours := c.joined && c.ownerOf(shard) == c.config.Name
		c.mu.Unlock()
		wait := c.config.Lease / 3
		if ours && c.held() == nil {
			s, soon := c.claim(ctx, shard)
			if s != nil {
				return s, s.lost, nil
			}
			wait = soon
		} else {
			c.waits(shard)
		}
		select {
		case <-changed:
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-c.ctx.Done():
			return nil, nil, replay.ErrClosed
		}
	}
}

// ownerOf returns the node to own a shard; empty for none. c.mu is held.
func (c *Cluster) ownerOf(shard int) string {
	nodes := c.living()
	if len(nodes) == 0 {
		return ""
	}
	return assign(len(c.shards), nodes)[shard]
}

// claim makes this node the owner of a shard, if it can be claimed now. Otherwise it returns the time until the next
// look.
func (c *Cluster) claim(ctx context.Context, shard int) (*store, time.Duration) {
	doubts, began := c.doubts.Load(), c.config.Clock()
	look, cancel := context.WithTimeout(ctx, c.config.Lease)
	owner, err := c.config.Streams.Owner(look, shard)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			c.failed(shard, began, err)
		}
		return nil, c.config.Lease / 10
	}
	silent := c.silentSince(owner)
	if wait := c.claimable(owner); wait > 0 {
		c.waits(shard)
		return nil, wait
	}
	if c.held() != nil { // time has passed since the former owner was known to be gone
		return nil, c.config.Lease / 30
	}
	asked := c.config.Clock()
	opened, err := c.config.Streams.Claim(ctx, shard, owner, c.config.Name, c.incarnation)
	if err != nil {
		if !errors.Is(err, ErrClaimed) { // the record may name this node all the same
			c.mu.Lock()
			c.shards[shard].stray = true
			c.mu.Unlock()
			if ctx.Err() == nil {
				c.log.Warn("a shard was not claimed; trying again", "shard", shard, "error", err)
				c.failed(shard, began, err)
			}
		}
		return nil, c.config.Lease / 30
	}
	s := &store{Store: opened, of: c, shard: shard, lost: make(chan struct{}), closed: make(chan struct{})}
	s.sure.Store(doubts)
	s.asked.Store(int64(asked))
	c.mu.Lock()
	c.shards[shard].store, c.shards[shard].since, c.shards[shard].stray = s, time.Now(), false
	c.owns(shard)
	if c.moving == shard { // it comes back
		c.moving = -1
	}
	if !c.joined {
		s.lose()
	}
	c.change()
	c.mu.Unlock()
	c.stats.claims.Add(c.config.Clock() - began)
	if silent > 0 {
		c.stats.takeOvers.Add(c.config.Clock() - silent)
	}
	c.announce(shard)
	c.work.Go(func() {
		select {
		case <-opened.Fenced():
			s.taken("") // the stream does not name the other
		case <-s.closed:
		case <-c.ctx.Done():
		}
	})
	c.kick() // ownership may be in doubt already
	return s, 0
}

// claimable returns 0 if the shard of this record can be claimed, and otherwise the time until the next look.
func (c *Cluster) claimable(o Owner) time.Duration {
	if o.Node == "" || o.Incarnation == c.incarnation {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[o.Node]; m != nil && m.Incarnation == o.Incarnation && o.Node != c.config.Name {
		if m.living() {
			return c.config.Lease / 3
		}
		return 0
	}
	if c.since == 0 {
		return c.config.Lease / 3
	}
	return max(0, c.limit(c.lapsed[o.Incarnation])-c.config.Clock())
}

// silentSince returns the time the owner of a shard was last heard of; 0 if unknown, or without an owner.
func (c *Cluster) silentSince(o Owner) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[o.Node]; m != nil && m.Incarnation == o.Incarnation && m.gone {
		return m.seen
	}
	return c.lapsed[o.Incarnation]
}

// keep releases misplaced shards, and checks possibly lost ones, until Close.
func (c *Cluster) keep() {
	for c.ctx.Err() == nil {
		doubt := c.verify()
		c.standBy()
		c.balance()
		wait := c.config.Lease / 3
		if doubt || c.isMoving() {
			wait = c.config.Lease / 60
		}
		select {
		case <-c.look:
		case <-time.After(wait):
		case <-c.ctx.Done():
		}
	}
}

// standBy has the shards kept ready that this node may have to own soon.
func (c *Cluster) standBy() {
	c.mu.Lock()
	var shards []int
	if nodes := c.living(); c.joined {
		shards = standbys(len(c.shards), nodes, c.config.Name, func(i int) bool { return c.shards[i].store != nil })
	}
	c.mu.Unlock()
	c.config.Streams.StandBy(shards)
}

// balance releases a misplaced shard, if none is moving.
func (c *Cluster) balance() {
	c.mu.Lock()
	moving := c.moving
	c.mu.Unlock()
	if moving >= 0 {
		c.settle(moving)
	}
	for i := range c.shards {
		c.mu.Lock()
		stray := c.shards[i].stray && c.shards[i].store == nil && c.ownerOf(i) != c.config.Name
		c.mu.Unlock()
		if stray && c.gather(i) == nil {
			c.mu.Lock()
			c.shards[i].stray = false
			c.mu.Unlock()
			c.announce(i)
		}
	}
	for i, to := range c.leaving() {
		if to != "" && c.busy(i) == "" && c.giveUp(i) {
			return
		}
	}
}

// leaving returns, by shard, the node a shard of this node should move to; none while one is moving already, or none
// may move.
func (c *Cluster) leaving() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.misplaced()
}

// misplaced is leaving while c.mu is held.
func (c *Cluster) misplaced() []string {
	nodes := c.living()
	calm := c.self.draining || c.config.Clock() >= c.calm
	if c.moving >= 0 || !c.joined || len(nodes) == 0 || c.held() != nil || !calm {
		return nil
	}
	owners := assign(len(c.shards), nodes)
	for i := range owners {
		if c.shards[i].store == nil || owners[i] == c.config.Name {
			owners[i] = ""
		}
	}
	return owners
}

// giveUp has a shard move to its proper node, and reports whether it does: the need may have changed while the shard
// was found to be free.
func (c *Cluster) giveUp(shard int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.misplaced()
	if to == nil || to[shard] == "" {
		return false
	}
	c.log.Info("a shard moves to another node", "shard", shard, "other", to[shard])
	c.moving, c.moved = shard, c.config.Clock()
	c.shards[shard].store.lose()
	return true
}

// busy returns the reason a shard should not move now; empty if it may. c.mu is not held, because another room is
// asked.
func (c *Cluster) busy(shard int) string {
	c.mu.Lock()
	force := c.self.force
	c.mu.Unlock()
	if force {
		return ""
	}
	return c.config.Busy(shard)
}

func (c *Cluster) isMoving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moving >= 0
}

// settle ends the move of a shard when it has an owner again, or after two leases.
func (c *Cluster) settle(shard int) {
	c.mu.Lock()
	closed, late := c.shards[shard].store == nil, c.config.Clock() > c.moved+2*c.config.Lease
	c.mu.Unlock()
	if !closed {
		return // its engines end their work
	}
	if !late {
		ctx, cancel := context.WithTimeout(c.ctx, c.config.Lease/10)
		defer cancel()
		owner, err := c.config.Streams.Owner(ctx, shard)
		if err != nil || owner.Node == "" || owner.Incarnation == c.incarnation {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moving = -1
}

// check has the owner's records read again before the last reading is a lease old, until Close.
func (c *Cluster) check() {
	for c.ctx.Err() == nil {
		select {
		case <-time.After(c.config.Lease / 6):
			c.verify()
		case <-c.ctx.Done():
		}
	}
}

// verify checks the ownership of all shards in doubt, or not checked for a third of a lease, and gives up those owned
// by another node. It reports whether some are in doubt still.
func (c *Cluster) verify() bool {
	doubts := c.doubts.Load()
	var work sync.WaitGroup
	var doubt atomic.Bool
	for i := range c.shards {
		s := c.owned(i)
		if s == nil || s.sure.Load() == doubts && s.age() < c.config.Lease/3 {
			continue
		}
		work.Go(func() {
			asked, sure := c.config.Clock(), s.sure.Load()
			ctx, cancel := context.WithTimeout(c.ctx, c.config.Lease/3)
			defer cancel()
			owner, err := c.confirm(ctx, s, sure != doubts)
			switch {
			case errors.Is(err, replay.ErrFenced):
				s.taken(owner.Node)
			case err != nil:
				doubt.Store(true)
			default:
				s.asked.Store(int64(asked))
				s.sure.CompareAndSwap(sure, doubts) // it may have become unsure meanwhile
			}
		})
	}
	work.Wait()
	return doubt.Load()
}

// confirm asks whether this node owns a shard, by a write if that is in doubt: after a lapse of the lease another node
// may own it, and a deposed leader of its stream may not know. Otherwise a read finds a loss early, though nothing
// depends on it. The error is replay.ErrFenced if another node owns the shard. That node's record is returned if it is
// known.
func (c *Cluster) confirm(ctx context.Context, s *store, doubt bool) (Owner, error) {
	if doubt {
		return Owner{}, s.Confirm(ctx)
	}
	owner, err := c.config.Streams.Owner(ctx, s.shard)
	if err == nil && owner.Incarnation != c.incarnation {
		err = replay.ErrFenced
	}
	return owner, err
}

// owned returns the store of a shard; nil if this node does not own it.
func (c *Cluster) owned(shard int) *store {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shards[shard].store
}
