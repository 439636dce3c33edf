// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// takeExchange has the broker not let the agent use the exchange any more.
func (m *memberships) takeExchange(kind broker.Kind) *fakeBroker {
	at := m.byName["a.example"]
	m.change(func() { at.lacks = brokerError(kind, "a.example", "the exchange is gone") })
	return at
}

// hasQueue reports whether the broker has the agent's queue.
func (m *memberships) hasQueue() (has bool) {
	m.change(func() { _, has = m.byName["a.example"].queues[testQueue] })
	return has
}

// TestDissolvedWhileAway has a Leader dissolve its group while the gateway is away. The command for it is in the queue,
// behind more commands than the broker sends at once.
func TestDissolvedWhileAway(t *testing.T) {
	for _, command := range []task.GroupCommand{task.Disband, task.LeaveGroup} {
		for _, kind := range []broker.Kind{broker.NoExchange, broker.PermissionDenied} {
			t.Run(fmt.Sprint(command, " ", kind), func(t *testing.T) {
				inBubble(t, func(m *memberships) {
					m.config.Key = make([]byte, KeySize)
					m.register()
					m.mustInvite()
					m.stop()
					at := m.takeExchange(kind)
					m.change(func() {
						q := at.queues[testQueue]
						for i := range 2 * DefaultPrefetch {
							q.messages = append(q.messages, membersCommand(fmt.Sprint("c", i), task.GetStatus))
						}
						q.messages = append(q.messages, membersCommand("last", command))
					})
					m.start()
					m.checkState("")
					if tasks := m.of("g1"); !tasks.canceled || !tasks.dropped {
						t.Error("its tasks are not canceled")
					}
					if m.hasQueue() {
						t.Error("its queue stays")
					}
					m.checkStatuses("a.example")
					m.restart()
					m.checkState("")
				})
			})
		}
	}
}

// TestExchangeIsGone keeps a membership without an exchange for a while, and continues it when the exchange is there
// again before.
func TestExchangeIsGone(t *testing.T) {
	for _, kind := range []broker.Kind{broker.NoExchange, broker.PermissionDenied, broker.VHostRefused} {
		t.Run(kind.String(), func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.config.ExchangeWait = 10 * time.Minute
				m.register()
				m.mustInvite()
				at := m.takeExchange(kind)
				at.cut(broker.Closed)
				m.pass(9 * time.Minute)
				m.checkState(Reconnecting)
				at.publish("first")
				m.change(func() { at.lacks = nil })
				m.pass(time.Minute)
				m.checkState(Joined)
				at.publish("second")
				at.publish(membersCommand("c1", task.GetStatus))
				m.checkStatuses("a.example", task.MemberStatus{Connected: true})
				if got := strings.Join(m.of("g1").bodies(), " "); !strings.HasPrefix(got, "first second") {
					t.Errorf("it receives %s", got)
				}
				if m.of("g1").muted {
					t.Error("it publishes nothing")
				}

				m.takeExchange(kind)
				at.cut(broker.Closed)
				m.pass(9 * time.Minute)
				m.checkState(Reconnecting)
				m.pass(2 * time.Minute)
				m.checkState("")
				if !m.of("g1").canceled {
					t.Error("its tasks are not canceled")
				}
				if m.hasQueue() {
					t.Error("its queue stays")
				}
			})
		})
	}
}

// TestExchangeIsGoneAtTheEnd has the exchange deleted while the agent leaves.
func TestExchangeIsGoneAtTheEnd(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		at := m.byName["a.example"]
		m.change(func() { at.holds = true })
		at.publish(membersCommand("c1", task.Disband))
		m.checkState(Leaving)
		m.takeExchange(broker.NoExchange)
		at.cut(broker.NoExchange)
		m.pass(30 * time.Second)
		m.checkState("")
		if m.hasQueue() {
			t.Error("its queue stays")
		}
	})
}

// TestExchangeIsGoneAndTheQueueDenied ends a membership without even the right to read its queue.
func TestExchangeIsGoneAndTheQueueDenied(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		at := m.takeExchange(broker.PermissionDenied)
		m.change(func() { at.noRead = true })
		at.cut(broker.Closed)
		m.pass(DefaultExchangeWait - time.Minute)
		m.checkState(Reconnecting)
		m.pass(2 * time.Minute)
		m.checkState("")
		if !strings.Contains(m.log.String(), "its queue may still be there") {
			t.Error("the operator is not told of the queue")
		}
	})
}
