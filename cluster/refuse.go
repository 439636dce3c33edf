// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"
)

// refusal leaves a shard to the others if the node to own it fails to claim it: the node's record refuses the shard for
// a while.
type refusal struct {
	failing time.Duration // all tries to claim the shard have failed since then; 0 if the last one has not
	until   time.Duration // end of this node's refusal
	times   int           // number of refusals since it last owned the shard
}

// After failing to claim a shard for refuseAfter leases, a node refuses it for refuseFor leases, and for twice as long
// each time, up to longestRefusal. Within refuseAfter leases a stream elects a leader even if a server has died.
const (
	refuseAfter    = 4
	refuseFor      = 20
	longestRefusal = time.Hour
)

// failed takes note of a failed try to claim a shard, and of its beginning. The node refuses the shard if failures have
// lasted for too long.
func (c *Cluster) failed(shard int, began time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, now := &c.shards[shard].refusal, c.config.Clock()
	if r.failing == 0 {
		r.failing = began
	}
	if now < r.failing+refuseAfter*c.config.Lease {
		return
	}
	r.failing = 0
	r.until = now + min(refuseFor*c.config.Lease<<min(r.times, 10), longestRefusal)
	r.times++
	// What to do: if often, see `error`.
	c.log.Warn("a shard could not be claimed; it is left to the other nodes for a while", "shard", shard,
		"duration", r.until-now, "error", err)
	c.hurry()
}

// owns ends the refusal of a shard just claimed by this node. c.mu is held.
func (c *Cluster) owns(shard int) {
	if c.shards[shard].refusal.until != 0 {
		c.hurry()
	}
	c.shards[shard].refusal = refusal{}
}

// waits takes note of a shard this node does not try to claim now, so it does not fail to.
func (c *Cluster) waits(shard int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards[shard].refusal.failing = 0
}

// refuses returns the shards refused by this node now. c.mu is held.
func (c *Cluster) refuses() (all []int) {
	for i := range c.shards {
		if c.config.Clock() < c.shards[i].refusal.until {
			all = append(all, i)
		}
	}
	return all
}

// willing returns the nodes not refusing a shard: all of them if all refuse it.
func willing(shard int, nodes []candidate) []candidate {
	refuses := func(n candidate) bool { return slices.Contains(n.refuses, shard) }
	if !slices.ContainsFunc(nodes, refuses) {
		return nodes
	}
	if left := slices.DeleteFunc(slices.Clone(nodes), refuses); len(left) > 0 {
		return left
	}
	return nodes
}
