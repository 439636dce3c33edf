// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
)

// join writes the first record of this incarnation, unless a process with its name lives.
func (c *Cluster) join(ctx context.Context) error {
	err := c.tryJoin(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.joined, c.problem = true, nil
		c.log.Info("this node has joined the cluster", "incarnation", c.incarnation)
	} else if c.ctx.Err() == nil {
		c.problem = err
	}
	c.change()
	return err
}

func (c *Cluster) tryJoin(ctx context.Context) error {
	all, err := c.config.Registry.All(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.self.revision = 0
	c.mu.Unlock()
	for _, r := range all {
		if r.Name != c.config.Name {
			c.see(r)
			continue
		}
		if err := c.takeName(ctx, r); err != nil {
			return err
		}
	}
	if err := c.agree(unwritten); err != nil {
		return err
	}
	return c.enter(ctx)
}

// enter announces this node to others, looks for nodes joined meanwhile, and only then takes part: so of two nodes that
// do not work together, and look at once, the one with the later record withdraws.
func (c *Cluster) enter(ctx context.Context) error {
	announced := c.config.Clock()
	if err := c.write(ctx, joining); err != nil {
		return err
	}
	if err := c.lookAgain(ctx); err != nil {
		if _, refused := errors.AsType[*ProtocolError](err); refused {
			return errors.Join(err, c.write(ctx, left))
		}
		return err
	}
	if err := c.write(ctx, acting); err != nil {
		return err
	}
	if c.config.Clock() >= announced+c.config.Lease { // others may have taken it for gone
		return c.lookAgain(ctx)
	}
	return nil
}

// back looks for nodes joined while others may have taken this one for gone, and gives up all shards if it does not
// work together with one of them.
func (c *Cluster) back(ctx context.Context) error {
	c.mu.Lock()
	lapsed := c.self.lapsed
	c.mu.Unlock()
	if !lapsed {
		return nil
	}
	err := c.lookAgain(ctx)
	if _, refused := errors.AsType[*ProtocolError](err); refused {
		return c.expelled(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self.lapsed = err != nil
	return err
}

// lookAgain returns a ProtocolError if this node does not work together with another one. This node's record is
// written.
func (c *Cluster) lookAgain(ctx context.Context) error {
	all, err := c.config.Registry.All(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		c.see(r)
	}
	c.mu.Lock()
	revision := c.self.revision
	c.mu.Unlock()
	return c.agree(revision)
}

// takeName finds out whether the writer of the record under the name of this node still lives. A process no longer
// listening is dead, or cut off. A process that neither answers nor is dead has the time of a lease to be heard of.
func (c *Cluster) takeName(ctx context.Context, r Record) error {
	var former record
	err := json.Unmarshal(r.Data, &former)
	if err == nil && former.Incarnation != c.incarnation && !former.Left {
		alive, heard := c.probe(ctx, former.Incarnation)
		if alive {
			return &NameTakenError{c.config.Name, former.Incarnation}
		}
		if !heard {
			if err := c.silent(r); err != nil {
				return err
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self.revision = r.Revision
	if former.Incarnation != c.incarnation && c.members[c.config.Name] == nil {
		c.replaced(&member{record: former, revision: r.Revision, seen: c.config.Clock()})
	}
	return nil
}

// errSilent is the error for a possibly living process with the name of this node.
var errSilent = errors.New("a process that had the name of this node does not answer; waiting until its lease is over")

// silent returns nil if the record under the name of this node has been the same for a lease and a margin. Until then
// the error is errSilent.
func (c *Cluster) silent(r Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.config.Clock()
	m := c.members[c.config.Name]
	if m == nil || m.revision != r.Revision {
		m = &member{revision: r.Revision, seen: now}
		if err := json.Unmarshal(r.Data, &m.record); err != nil {
			return err
		}
		c.members[c.config.Name] = m
	}
	if now < c.lastOf(m)+c.config.Lease+c.margin() {
		return errSilent
	}
	c.replaced(m)
	return nil
}
