// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/aip-gateway/aip-gateway/replay"
)

// catalog has the heads of the logs of a shard, as they were read from its stream.
type catalog struct {
	st    *stream
	index *replay.Index[entry]
	tail  uint64 // all heads up to this sequence were read
	// dropped has the empty heads that were read and may not be purged yet, by log.
	dropped map[string]uint64
}

func newCatalog(st *stream) *catalog {
	return &catalog{st: st, index: newIndex(st.config.Settings), dropped: make(map[string]uint64)}
}

// take takes the next head of the stream, or one that a lagging replica still has.
func (c *catalog) take(ctx context.Context, m message) error {
	name, _, err := logOf(c.st.prefix, m.subject)
	if err != nil {
		return err
	}
	was, found := c.index.Value(name)
	if m.seq < c.dropped[name] || found && m.seq <= was.seq {
		return nil
	}
	if len(m.data) == 0 {
		c.dropped[name] = m.seq
		c.index.Remove(name)
		return nil
	}
	data, err := c.st.whole(ctx, m)
	if errors.Is(err, errNoMessage) {
		if err = c.replaced(ctx, m); err == nil {
			c.index.Remove(name)
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("the log %.100q: %w", name, err)
	}
	h, err := parseHead(data)
	if err != nil {
		return fmt.Errorf("the log %.100q: %w", name, err)
	}
	if found && was.begun != h.begun { // the log before was dropped
		c.index.Remove(name)
	}
	h.seq = m.seq
	c.index.Set(name, h.entry(), h.Head, sizeOf(name, &h), h.expires)
	return nil
}

// replaced returns nil if a head with a missing part was replaced or purged: what came instead is read later. Otherwise
// a deposed leader, which does not have the part yet, has answered, and the error is an ErrUnavailable.
func (c *catalog) replaced(ctx context.Context, m message) error {
	last, err := c.st.last(ctx, m.subject)
	if errors.Is(err, errNoMessage) {
		last.seq, err = c.st.lastSequence(ctx)
	}
	if err == nil && last.seq <= m.seq {
		err = c.st.unavailable()
	}
	return err
}

// readOn reads the heads written since, as the leader has them. The leader must have a message, or a later one: so no
// deposed leader answers. What was read stays after an error.
func (c *catalog) readOn(ctx context.Context, least uint64) error {
	err := c.st.heads(ctx, c.tail, math.MaxUint64, func(m message) error { return c.next(ctx, m) })
	if err != nil {
		return err
	}
	for at := c.tail; at < least; {
		m, err := c.st.get(ctx, getRequest{Seq: at + 1, Next: c.st.prefix + ">"})
		if errors.Is(err, errNoMessage) {
			err = c.st.unavailable()
		}
		if err == nil && strings.HasSuffix(m.subject, ".h") {
			err = c.next(ctx, m)
		}
		if err != nil {
			return err
		}
		at = m.seq
	}
	return nil
}

// next takes the next head of the stream.
func (c *catalog) next(ctx context.Context, m message) error {
	err := c.take(ctx, m)
	if err == nil {
		c.tail = m.seq
	}
	return err
}

// compare takes logs missing at the leader out of the index: a replica may still have a head of a dropped and purged
// log. All heads were read on. The leader must have a message, or a later one, and those read.
func (c *catalog) compare(ctx context.Context, least uint64) error {
	least = max(least, c.tail)
	filter := c.st.prefix + "*.h"
	there := make(map[string]bool)
	for {
		subjects, all, err := c.st.subjects(ctx, filter, len(there), least)
		if err != nil {
			return err
		}
		for subject := range subjects {
			there[subject] = true
		}
		if len(subjects) == 0 || len(there) >= all {
			break
		}
	}
	for log := range c.index.Names() {
		subject := c.st.headSubject(log)
		if there[subject] {
			continue
		}
		// The subjects may have changed between two pages of them, so that one was in none.
		alone, _, err := c.st.subjects(ctx, subject, 0, least)
		if err != nil {
			return err
		}
		if len(alone) == 0 {
			c.index.Remove(log)
		}
	}
	return nil
}
