// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
)

// A Leader that dissolves its group deletes the exchange, or takes the rights to it from the members, perhaps while the
// gateway is away. The command to dissolve it is then in the agent's queue. So if the exchange is out of reach, the
// queue is read by itself: commands are executed, but nothing can be published, as if the member was muted. A command
// to leave ends the membership. Without one, time does: the exchange may have been deleted to be declared again.

// DefaultExchangeWait is the default of Config.ExchangeWait.
const DefaultExchangeWait = time.Hour

// lacksExchange reports whether a broker knows the user, but does not let it use the exchange of the group.
func lacksExchange(err error) bool {
	return isKind(err, broker.NoExchange, broker.PermissionDenied, broker.VHostRefused)
}

// withoutExchange is for an attempt to connect, failed with err because of the exchange.
func (m *membership) withoutExchange(ctx context.Context, err error) {
	if m.lacking.IsZero() {
		m.lacking = time.Now()
	}
	if m.rest == nil {
		l, failed := m.dialQueue(ctx)
		if isKind(failed, broker.QueueGone) {
			m.removed()
			return
		}
		if m.rest = l; l != nil {
			m.tasks.mute(true)
		}
	}
	m.failures++
	m.retry(Reconnecting, backoff(m.failures), err)
}

// dialQueue makes a link only reading the queue; nil after an error.
func (m *membership) dialQueue(ctx context.Context) (link, error) {
	r := m.record
	r.Exchange = ""
	l, err := m.dial(ctx, m.config, &r, m.token, false)
	if err != nil {
		return nil, err
	}
	if m.record.Leaving == nil {
		if err = l.Receive(ctx, m.receiveAfter(l, m.drained)); err != nil {
			l.Close()
			return nil, err
		}
	}
	return l, nil
}

// attendRest does all due work while only the queue can be read.
func (m *membership) attendRest() {
	m.executeCommands()
	m.mu.Lock()
	unheard := m.answers
	m.answers = nil
	m.mu.Unlock()
	for _, a := range unheard { // otherwise a command to leave may be behind more of them than the prefetch
		a.acknowledge()
	}
	if m.record.Leaving != nil && !m.isOver() {
		m.dissolved()
	}
}

// isForsaken reports whether the exchange was out of reach for too long: then the membership ends.
func (m *membership) isForsaken(now time.Time) bool {
	return !m.lacking.IsZero() && m.config != nil && now.Sub(m.lacking) >= m.config.ExchangeWait
}

// dissolved ends a membership of a group without an exchange any more. Its tasks are canceled, and its queue is
// deleted.
func (m *membership) dissolved() {
	m.cancelTasks()
	base := m.home.base
	if base.Err() != nil {
		return
	}
	if m.departure != nil {
		m.departure.Ack()
	}
	l, err := m.rest, m.lastError
	m.rest = nil
	if l != nil {
		err = m.deleteQueue(l)
	}
	if base.Err() != nil {
		return
	}
	if err != nil {
		// What to do: delete the queue at the broker.
		m.logger().Warn("a membership of a group has ended, but its queue may still be there", m.about("error", err)...)
	} else {
		m.logger().Info("a group has ended, its exchange is gone", m.about()...)
	}
	m.end()
}

// closeRest ends the link only reading the queue, if there is one.
func (m *membership) closeRest() {
	if l := m.rest; l != nil {
		m.rest = nil
		m.set(func() { m.commands, m.answers = nil, nil })
		l.Close()
		m.tasks.mute(m.record.Muted)
	}
}
