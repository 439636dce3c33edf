// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"
)

// refusal is how a node that should own a shard, and fails to claim it, has the others do so: its record says for a
// while that it refuses the shard.
type refusal struct {
	failing time.Duration // since when all tries to claim the shard have failed; 0 if the last one has not
	until   time.Duration // until when this node refuses it
	times   int           // how often it has refused it, since it owned it last
}

// A node that could not claim a shard for refuseAfter leases, in which a stream elects a leader even where a server has
// died, refuses it for refuseFor leases, and for twice as long each time, up to longestRefusal.
const (
	refuseAfter    = 4
	refuseFor      = 20
	longestRefusal = time.Hour
)

// failed takes note of a try to claim a shard that has failed, and when it began. The node refuses the shard if that
// has lasted for too long.
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
	c.log.Warn("a shard could not be claimed; it is left to the other nodes for a while", "shard", shard,
		"duration", r.until-now, "error", err)
	c.hurry()
}

// owns ends the refusal of a shard that this node has claimed. c.mu is held.
func (c *Cluster) owns(shard int) {
	if c.shards[shard].refusal.until != 0 {
		c.hurry()
	}
	c.shards[shard].refusal = refusal{}
}

// waits takes note that this node does not try to claim a shard now, so that it does not fail to.
func (c *Cluster) waits(shard int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards[shard].refusal.failing = 0
}

// refuses returns the shards that this node refuses now. c.mu is held.
func (c *Cluster) refuses() (all []int) {
	for i := range c.shards {
		if c.config.Clock() < c.shards[i].refusal.until {
			all = append(all, i)
		}
	}
	return all
}

// willing returns the nodes that do not refuse a shard: all of them if all do.
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
