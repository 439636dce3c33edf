// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// record is the record of a node in the registry.
type record struct {
	Incarnation string    `json:"incarnation"`
	Version     string    `json:"version,omitempty"`
	Protocol    int       `json:"protocol"`
	Started     time.Time `json:"started"`
	Draining    bool      `json:"draining,omitempty"`
	Joining     bool      `json:"joining,omitempty"` // it looks whether it may join, and acts not yet
	Left        bool      `json:"left,omitempty"`    // the process has ended, and acts no more
	Wants       []want    `json:"wants,omitempty"`
	Refuses     []int     `json:"refuses,omitempty"` // shards it could not claim
	Owns        int       `json:"owns"`              // number of shards

	Lease time.Duration `json:"lease"` // ns
}

// member is this node's knowledge of a node, itself included.
type member struct {
	record
	revision uint64
	seen     time.Duration // time the revision was first seen
	gone     bool          // it was silent for too long
}

func (m *member) living() bool { return !m.gone && !m.Left }

// stage is the part of a node in the cluster, by its record.
type stage int

const (
	joining stage = iota
	acting
	left
)

// calmAfter is the number of leases after the loss of a node until the shards of others are moved, so that all have
// their share.
const calmAfter = 2

// forgetAfter is the time a dead node is still shown, and stores write what it can read.
const forgetAfter = time.Hour

// margin is added to a lease before others are declared gone: clocks may run at different speeds.
func (c *Cluster) margin() time.Duration { return c.config.Lease / 30 }

// live writes the record of this node every third of a lease, and acts on the records of others, until Close.
func (c *Cluster) live() {
	for c.ctx.Err() == nil {
		now := c.config.Clock()
		if wait := c.next(now) - now; wait > 0 {
			select {
			case <-c.urgent:
			case <-time.After(wait):
			case <-c.ctx.Done():
			}
			continue
		}
		err := c.beat()
		if err == nil {
			err = c.judge()
		}
		if err != nil && c.ctx.Err() == nil {
			c.log.Warn("the record of this node was not written; trying again", "error", err)
			c.mu.Lock()
			c.hurry() // the next try does not wait for a third of a lease
			c.mu.Unlock()
			select {
			case <-time.After(c.tryAfter()):
			case <-c.ctx.Done():
			}
		}
	}
}

// next returns when the next record is to be sent: after a third of a lease, and right when a node may be gone.
func (c *Cluster) next(now time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.self.urgent || !c.joined {
		return now
	}
	at := c.self.sent + c.config.Lease/3
	for name, m := range c.members {
		if limit := c.limit(c.lastOf(m)); name != c.config.Name && m.living() && limit > c.self.sent {
			at = min(at, limit)
		}
	}
	return at
}

// lastOf returns the time the record of a node was last seen to change, or later if its lease is longer than this
// node's, as during the roll-out of a configuration.
func (c *Cluster) lastOf(m *member) time.Duration { return m.seen + max(0, m.Lease-c.config.Lease) }

// limit returns the time a node is gone if its record was last seen to change at seen. While this node could not renew
// its lease, others could not either as a rule: they get the time of a failing try, and of the next one. c.mu is held.
func (c *Cluster) limit(seen time.Duration) time.Duration {
	return max(seen+c.config.Lease, c.since+c.tryFor()+c.tryAfter()) + c.margin()
}

// tryFor is the longest time of a try to renew the lease, and tryAfter the time from a failed one to the next.
func (c *Cluster) tryFor() time.Duration   { return c.config.Lease * 2 / 3 }
func (c *Cluster) tryAfter() time.Duration { return c.config.Lease / 15 }

// beat writes the record of this node, and renews its lease. The first one joins the cluster.
func (c *Cluster) beat() error {
	ctx, cancel := context.WithTimeout(c.ctx, c.tryFor())
	defer cancel()
	c.mu.Lock()
	joined := c.joined
	c.mu.Unlock()
	if !joined {
		return c.join(ctx)
	}
	if err := c.write(ctx, acting); err != nil {
		return err
	}
	return c.back(ctx)
}

// write writes the record of this node.
func (c *Cluster) write(ctx context.Context, as stage) error {
	c.mu.Lock()
	r := record{Incarnation: c.incarnation, Version: c.config.Version, Protocol: c.config.protocol,
		Started: c.self.started, Draining: c.self.draining, Joining: as == joining, Left: as == left,
		Wants: c.self.wants, Refuses: c.refuses(), Lease: c.config.Lease}
	for i := range c.shards {
		if c.shards[i].store != nil {
			r.Owns++
		}
	}
	expect := c.self.revision
	c.self.urgent = false
	sent := c.config.Clock()
	c.self.sent = sent
	c.mu.Unlock()
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	revision, err := c.config.Registry.Write(ctx, c.config.Name, data, expect)
	if errors.Is(err, ErrConflict) {
		return c.conflict(ctx, as)
	}
	if err != nil {
		return err
	}
	c.renew(sent, revision, r)
	return nil
}

// renew counts the lease from the sending of a record now in the registry. The record of a joining node begins no
// lease.
func (c *Cluster) renew(sent time.Duration, revision uint64, r record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.config.Clock()
	c.self.revision = revision
	if r.Joining {
		return
	}
	if m := c.members[c.config.Name]; m != nil && !slices.Equal(m.Refuses, r.Refuses) {
		c.change()
		c.kick()
	}
	c.members[c.config.Name] = &member{record: r, revision: revision, seen: now}
	if until := c.lease.Load(); c.since == 0 || int64(now) >= until {
		c.since = now
		if until != 0 { // it had lapsed: others may have declared this node gone
			c.doubts.Add(1)
			c.self.lapsed = true
			c.stats.lapses.Add(1)
			// What to do: if often, look at the NATS servers and the clock.
			c.log.Warn("the lease of this node had lapsed, and holds again")
		}
		c.change()
	}
	if c.ctx.Err() == nil {
		c.lease.Store(int64(sent + c.config.Lease))
	}
}

// conflict acts on an unexpected record under the name of this node in the registry. If the record is another
// process's, the name is taken. If it is this one's, it comes from an earlier write with a lost answer; then, and if
// the record was deleted, this node writes again.
func (c *Cluster) conflict(ctx context.Context, as stage) error {
	all, err := c.config.Registry.All(ctx)
	if err != nil {
		return err
	}
	var revision uint64
	for _, r := range all {
		if r.Name != c.config.Name {
			continue
		}
		var found record
		if err := json.Unmarshal(r.Data, &found); err != nil {
			return err
		}
		if found.Incarnation != c.incarnation {
			return c.expelled(&NameTakenError{c.config.Name, found.Incarnation})
		}
		revision = r.Revision
	}
	c.mu.Lock()
	c.self.revision = revision
	c.mu.Unlock()
	return c.write(ctx, as)
}

// expelled gives up all shards for a reason, and returns it: another process has the name of this node, or this node
// does not work together with a living one.
func (c *Cluster) expelled(reason error) error {
	c.lease.Store(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined, c.since, c.problem = false, 0, reason
	for i := range c.shards {
		if s := c.shards[i].store; s != nil {
			s.lose()
		}
	}
	c.change()
	return reason
}

// see takes note of a record in the registry.
func (c *Cluster) see(r Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inRegistry(r.Registry)
	if r.Name == c.config.Name {
		return // this node knows its own writes; those of another process are a conflict
	}
	m := c.members[r.Name]
	if m != nil && r.Revision <= m.revision {
		return
	}
	var found record
	if err := json.Unmarshal(r.Data, &found); err != nil {
		return // of another version of the program, or damaged: it is not seen
	}
	now := c.config.Clock()
	if m != nil && m.Incarnation != found.Incarnation {
		c.replaced(m)
	}
	c.members[r.Name] = &member{record: found, revision: r.Revision, seen: now}
	if m == nil || m.living() != !found.Left || m.Incarnation != found.Incarnation || m.Draining != found.Draining ||
		m.Joining != found.Joining || !slices.Equal(m.Wants, found.Wants) || !slices.Equal(m.Refuses, found.Refuses) {
		c.log.Info("a node of the cluster has changed", "other", r.Name, "incarnation", found.Incarnation,
			"left", found.Left, "draining", found.Draining)
		c.change()
		c.kick()
	}
	if found.Left {
		c.calls.gone(found.Incarnation)
	}
}

// inRegistry takes note of the registry of a record; empty if unknown. In a registry made again, every record is a new
// one, however low its revision. c.mu is held.
func (c *Cluster) inRegistry(name string) {
	if name == "" || name == c.registry {
		return
	}
	if c.registry != "" {
		c.log.Warn("the registry of nodes was lost and made again; this node goes on with the new one")
		for _, m := range c.members {
			m.revision = 0
		}
	}
	c.registry = name
}

// replaced notes when the former incarnation of a name was last seen. c.mu is held.
func (c *Cluster) replaced(m *member) {
	now := c.config.Clock()
	for incarnation, seen := range c.lapsed {
		if now > seen+10*c.config.Lease { // as one never seen
			delete(c.lapsed, incarnation)
		}
	}
	if m.living() {
		c.lapsed[m.Incarnation] = c.lastOf(m)
	} else {
		c.lapsed[m.Incarnation] = now - 2*c.config.Lease
	}
	c.calls.gone(m.Incarnation)
}

// judge declares nodes gone. It is called right after a record of this node was written.
func (c *Cluster) judge() error {
	suspects, quiet := c.suspects()
	if !quiet {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.config.Lease/3)
	defer cancel()
	all, err := c.config.Registry.All(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		c.see(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held() != nil {
		return nil
	}
	for name, revision := range suspects {
		if m := c.members[name]; m != nil && m.revision == revision && m.living() {
			m.gone = true
			c.calm = c.config.Clock() + calmAfter*c.config.Lease
			c.stats.gone.Add(1)
			// What to do: look at that gateway and its network.
			c.log.Warn("a node of the cluster is gone: it was silent for longer than its lease", "other", name,
				"incarnation", m.Incarnation)
			c.calls.gone(m.Incarnation)
			c.change()
			c.kick()
		}
	}
	return nil
}

// suspects returns the nodes silent for a lease and a margin before the last record was sent, with the revisions of
// their records. quiet reports whether one was silent for longer than a third of a lease, and some time for the way:
// the notice of its record may be lost, and if the loss is not found out before the node is a suspect, its silence
// counts from then on.
func (c *Cluster) suspects() (found map[string]uint64, quiet bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found = make(map[string]uint64)
	if !c.joined {
		return found, false
	}
	for name, m := range c.members {
		switch {
		case name == c.config.Name:
		case !m.living() && c.self.sent > m.seen+forgetAfter:
			delete(c.members, name)
			c.change()
		case m.living():
			quiet = quiet || c.self.sent >= c.lastOf(m)+c.config.Lease*2/5
			if c.self.sent >= c.limit(c.lastOf(m)) {
				found[name] = m.revision
			}
		}
	}
	return found, quiet
}

// leave announces to others the end of this node's acts.
func (c *Cluster) leave(ctx context.Context) {
	c.mu.Lock()
	joined := c.joined
	c.joined = false
	c.mu.Unlock()
	if !joined {
		return
	}
	if err := c.write(ctx, left); err != nil {
		c.log.Warn("this node could not say that it leaves; others wait until its lease is over", "error", err)
	}
}

// living returns the living nodes, as far as this node knows: the possible owners of shards. c.mu is held.
func (c *Cluster) living() (all []candidate) {
	draining := true
	for _, m := range c.members {
		draining = draining && (m.Draining || !m.living())
	}
	for name, m := range c.members {
		if m.living() && !m.Joining && (draining || !m.Draining) {
			all = append(all, candidate{name, m.Wants, m.Refuses})
		}
	}
	return all
}
