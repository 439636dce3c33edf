// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"slices"
	"sync"

	"github.com/aip-gateway/aip-gateway/replay"
)

// home is one shard: the place of its memberships, and of their work.
type home struct {
	engine *Engine
	shard  int
	store  replay.Store
	mayAct func(context.Context) error // see replay.WhenHeld

	base context.Context // of every supervisor; ends when the home closes
	stop context.CancelFunc
	work sync.WaitGroup // supervisors, and readers of inboxes

	closed bool // under Engine.mu
}

// openHome takes up the memberships of a shard.
func (e *Engine) openHome(ctx context.Context, shard int, store replay.Store) (*home, error) {
	all, damaged, err := load(ctx, store)
	if err != nil {
		return nil, err
	}
	if damaged != nil {
		e.log.ErrorContext(ctx, "some memberships of groups are left alone", "error", damaged)
	}
	h := &home{engine: e, shard: shard, store: store, mayAct: replay.WhenHeld(store)}
	h.base, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.SortStableFunc(all, func(a, b stored) int { return a.record.Joined.Compare(b.record.Joined) })
	for _, s := range all {
		c := claimOf(&s.record)
		taken := e.isFreeLocked(s.key, c) != nil // by one there first; then this one waits
		if m := h.supervise(&s); !taken {
			m.claims = append(m.claims, c)
		}
	}
	e.open[shard] = h
	for name := range e.partners {
		e.readInbox(name)
	}
	return h, nil
}

// close closes every link of the shard, and waits for all work.
func (h *home) close() {
	h.engine.mu.Lock()
	h.closed = true
	delete(h.engine.open, h.shard)
	h.stop()
	h.engine.mu.Unlock()
	h.work.Wait()
}

// supervise starts the supervisor of a membership. The caller holds Engine.mu, and the home is not closed.
func (h *home) supervise(s *stored) *membership {
	m := newMembership(h, s)
	h.engine.memberships[s.key] = m
	h.work.Go(m.run)
	return m
}
