// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Protocol is the number of the form of all data shared by nodes: their messages, their records and the contents of the
// streams. Data left out of a record, or skipped, by a node of an earlier version needs no new number: members of
// records and of calls may be added. All else does: a kind of message, another meaning, the form of a log. A version
// with the next number understands the form before, and uses it as long as a node lives that has no other: so two
// successive versions work together. A node of any other number does not join.
//
// Since 2, the head of a log may have records, see replay/jetstream.
const Protocol = 2

// ProtocolError is the error of a node that has not joined because another one speaks a protocol unknown to it.
type ProtocolError struct {
	Node, Version string // the other one, and its version of the program
	Theirs, Ours  int
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the gateway %q has version %s, whose protocol %d does not work together with protocol %d of this "+
		"one; upgrade all gateways to a version between them first, or stop the others", e.Node, cmp.Or(e.Version, "unknown"),
		e.Theirs, e.Ours)
}

// spoken returns the lowest protocol of the nodes that may come to read what this one writes. A node that has left may
// come back as it was, as after a restart of its machine in the midst of an upgrade. c.mu is held.
func (c *Cluster) spoken() int {
	lowest := c.config.protocol
	for _, m := range c.members {
		lowest = min(lowest, m.Protocol)
	}
	return lowest
}

// strange logs an unreadable message of another process, once a minute: of another version, or damaged.
func (c *Cluster) strange(from string, err error) {
	now, last := int64(c.config.Clock()), c.odd.Load()
	if last != 0 && now < last+int64(time.Minute) || !c.odd.CompareAndSwap(last, now) {
		return
	}
	c.log.Warn("a message of another gateway is ignored; its version may not work together with this one",
		"from", from, "error", err)
}

// unwritten is the revision of a node without a record yet: each other one was before it.
const unwritten = math.MaxUint64

// agree returns a ProtocolError if a possibly living node has a protocol this one does not work together with. A
// joining node withdraws by itself if its record came after this node's, written at revision.
func (c *Cluster) agree(revision uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.config.Clock()
	for name, m := range c.members {
		over := now >= c.lastOf(m)+c.config.Lease+c.margin() // it cannot act any more
		withdraws := m.Joining && m.revision > revision
		if name == c.config.Name || m.Left || m.gone || over || withdraws {
			continue
		}
		if m.Protocol < c.config.protocol-1 || m.Protocol > c.config.protocol+1 {
			return &ProtocolError{name, m.Version, m.Protocol, c.config.protocol}
		}
	}
	return nil
}
