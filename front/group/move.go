// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"reflect"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
)

// drainLimit is the time for which the answer to an invitation waits until the queue at the former broker is empty.
// drainLater is the time for which this queue is read afterwards. Deliveries of the new broker meanwhile wait, so
// messages keep their order.
const (
	drainLimit = time.Second
	drainLater = 30 * time.Second
	// discardLimit is a broker's time to delete the queue of an unused link.
	discardLimit = 2 * time.Second
)

// rebind checks that the exchange is there, and binds the queue to it again: the Leader may have deleted it and
// declared another one, without the link learning of it. A second link does it, and consumes nothing. A broker may not
// answer on a blocked connection, so nothing is asked of it then.
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

// update stores the changes of an invitation with the same link, if there are any.
func (m *membership) update(next *record) error {
	next.Sealed = m.record.Sealed
	if reflect.DeepEqual(*next, m.record) {
		return nil
	}
	return m.store(next)
}

// finishLeave is for an invitation to a group the agent is leaving: the leave ends first, and with it the queue, as it
// may still have the command to leave. The error is errOver if it has ended.
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

// move connects the membership by next, and only then gives up its old link. Messages waiting in the queue at another
// broker are taken before those at the new one.
func (m *membership) move(ctx context.Context, p *Partner, next *record, token string) error {
	// If an expected queue is missing, the Leader has removed the agent from the group before: then this invitation is for
	// a new membership.
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

// receiveAfter returns the receiver of the deliveries of a link, once the queue at the former broker is drained; nil
// for at once. If the link ends before, its broker delivers them again.
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

// discard gives up an unused link, and its queue if it was made for the link.
func (m *membership) discard(l link) {
	ctx, cancel := context.WithTimeout(m.home.base, discardLimit)
	defer cancel()
	l.Undo(ctx)
}

// retire empties the queue of a link at a membership's former broker, closes draining unless it is nil, and then
// deletes the queue.
func (h *home) retire(l link, draining chan struct{}) {
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	h.work.Go(func() { // the calling supervisor holds work
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

// idlePoll is the interval of asking a link whether its queue is empty.
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
