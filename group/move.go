// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"reflect"
	"time"

	"github.com/aip-gateway/aip-gateway/group/broker"
)

// drainLimit is how long the answer to an invitation waits until the queue at the broker before is empty.
// drainLater is how long that queue is read afterwards. What the new broker delivers meanwhile waits, so that messages
// keep their order.
const (
	drainLimit = time.Second
	drainLater = 30 * time.Second
	// discardLimit is how long a broker has to delete the queue of a link that is not used.
	discardLimit = 2 * time.Second
)

// rebind checks that the exchange is there, and binds the queue to it again: the Leader may have deleted it and
// declared another one, of which the link does not learn. A second link does that, which consumes nothing. A broker
// that blocks the connection may not answer on it, so nothing is asked of it then.
func (m *membership) rebind(ctx context.Context, p *Partner, next *record, token string) error {
	if m.link.Blocked() {
		return nil
	}
	second, err := m.dial(ctx, p, next, token, false)
	switch {
	case isKind(err, broker.QueueGone):
		m.removed()
		return errOver
	case err != nil:
		return err
	}
	second.Close()
	return nil
}

// update stores what an invitation changes though the link stays, if it changes anything.
func (m *membership) update(next *record) error {
	next.Sealed = m.record.Sealed
	if reflect.DeepEqual(*next, m.record) {
		return nil
	}
	return m.store(next)
}

// finishLeave is for an invitation to a group that the agent is leaving: the leave ends first, and with it the queue,
// which may still have the command to leave. The error is errOver if it has ended.
func (m *membership) finishLeave(ctx context.Context, p *Partner, next *record, token string) error {
	if m.link == nil {
		l, err := m.dial(ctx, p, next, token, false)
		switch {
		case isKind(err, broker.QueueGone):
			m.abandon()
			return errOver
		case err != nil:
			return m.refusal(err, next)
		}
		m.connected(l)
	}
	m.leave()
	if m.isOver() {
		return errOver
	}
	return connectionFailed(next.Host, next.Port, "the agent is still leaving the group")
}

// move connects the membership as next says, and only then gives up the link that it had. Messages that wait in the
// queue at another broker are taken before those at the new one.
func (m *membership) move(ctx context.Context, p *Partner, next *record, token string) error {
	// A queue that should be there and is not means that the Leader has removed the agent from the group before: then
	// this invitation is for a new membership.
	old, declare := m.link, !m.isStored || !m.record.sameBroker(next)
	fresh, err := m.dial(ctx, p, next, token, declare)
	switch {
	case isKind(err, broker.QueueGone) && !declare:
		m.removed()
		return errOver
	case err != nil:
		return err
	}
	m.closeRest()
	next.Node, next.Announce = fresh.Info().ClusterName, m.announcement(next.Dialect)
	if err := m.engine.claim(m, next); err != nil { // in this moment, or by another name of the broker
		m.discard(fresh)
		return err
	}
	// Two addresses may be of one cluster, and so of one queue.
	sameQueue := m.isStored && (!declare || next.Node == m.record.Node && next.Queue == m.record.Queue &&
		old != nil && fresh.Info().VHost == old.Info().VHost)
	drained := m.drained // of a move before this one
	var draining chan struct{}
	if old != nil && sameQueue {
		m.disconnect()
	} else if old != nil && !m.drain(ctx, old) {
		draining = make(chan struct{})
		drained = draining
	}
	if !m.isStored {
		err = m.store(next)
	}
	if err == nil {
		err = fresh.Receive(ctx, m.receiveAfter(fresh, drained))
	}
	if err == nil && m.isStored {
		err = m.store(next)
	}
	if err != nil {
		m.engine.unclaim(m)
		m.discard(fresh)
		return err
	}
	m.set(func() { m.isStored, m.token, m.knowsToken = true, token, true })
	m.drained = drained
	m.connected(fresh)
	if old != nil && !sameQueue {
		m.home.retire(old, draining)
	}
	return nil
}

// drain waits a moment for the queue of a link to become empty, and reports whether it is.
func (m *membership) drain(ctx context.Context, l link) bool {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	return waitIdle(ctx, l) == nil
}

// receiveAfter returns what receives the deliveries of a link, once the queue at the broker before is drained; nil for
// at once. A link that ends before has its broker deliver them again.
func (m *membership) receiveAfter(l link, drained <-chan struct{}) func(*broker.Delivery) {
	if drained == nil {
		return m.tasks.receive
	}
	return func(d *broker.Delivery) {
		select {
		case <-drained:
			m.tasks.receive(d)
		case <-l.Done():
		}
	}
}

// discard gives up a link that is not used, and its queue if that was made for it.
func (m *membership) discard(l link) {
	ctx, cancel := context.WithTimeout(m.home.base, discardLimit)
	defer cancel()
	l.Undo(ctx)
}

// retire empties the queue of a link at a broker that a membership has left for another one, closes draining unless it
// is nil, and then deletes the queue.
func (h *home) retire(l link, draining chan struct{}) {
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	h.work.Go(func() { // the supervisor that calls holds work
		ctx, cancel := context.WithTimeout(h.base, drainLater)
		defer cancel()
		err := waitIdle(ctx, l)
		if draining != nil {
			close(draining)
		}
		if err == nil {
			_ = l.Leave(ctx)
		}
		l.Close()
	})
}

// idlePoll is how often a link is asked whether its queue is empty.
const idlePoll = 50 * time.Millisecond

// waitIdle waits until the queue of a link is empty and everything is acknowledged. It returns an error if the link or
// ctx ends before.
func waitIdle(ctx context.Context, l link) error {
	for times := 0; ; {
		idle, err := l.Idle(ctx)
		if err != nil {
			return err
		}
		if times++; !idle {
			times = 0
		} else if times == 2 {
			return nil
		}
		select {
		case <-time.After(idlePoll):
		case <-l.Done():
			return l.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
