// SPDX-License-Identifier: Apache-2.0

package group

import (
	"slices"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestNewToken invites again with a new token: the old link is closed before the new one consumes, so messages keep
// their order. With a refused token, the old link stays.
func TestNewToken(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		at := m.byName["a.example"]
		m.change(func() { at.refuses = func(l broker.Login) bool { return l == broker.Password("user", "wrong") } })
		if _, err := m.invite(token("user:wrong")); task.KindOf(err) != task.AccessTokenInvalid {
			t.Errorf("the error is %v", err)
		}
		m.checkEvents(t)
		m.checkState(Joined)

		m.mustInvite(token("user:new"))
		m.checkEvents(t, "join a.example", "close a.example", "consume a.example")
		m.checkState(Joined)

		// One without the right to read is found out only when the old link is closed: then the old link is made again.
		m.change(func() { at.noRead = true })
		if _, err := m.invite(token("user:blind")); task.KindOf(err) != task.ConnectionFailed {
			t.Errorf("the error is %v", err)
		}
		m.change(func() { at.noRead = false })
		at.publish("while away")
		m.checkEvents(t, "join a.example", "close a.example", "close a.example", "join a.example", "close a.example",
			"join a.example", "close a.example") // the last one to read the queue at least
		m.pass(time.Minute)
		m.checkState(Joined)
		m.checkEvents(t, "join a.example", "consume a.example", "ack while away")
		asked := m.asked()
		if login := asked[len(asked)-1].Login; login != broker.Password("user", "new") {
			t.Errorf("the login is %v", login)
		}
	})
}

// TestOtherBroker moves a membership to another broker. Messages at the old one are received first.
func TestOtherBroker(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		a, b := m.byName["a.example"], m.byName["b.example"]
		m.change(func() { b.fails = brokerError(broker.NoExchange, "b.example", "no exchange") })
		if _, err := m.invite(host("b.example")); task.KindOf(err) != task.ConnectionFailed {
			t.Errorf("the error is %v", err)
		}
		m.checkEvents(t)
		m.checkState(Joined)

		m.change(func() {
			b.fails = nil
			b.queues[testQueue] = &fakeQueue{messages: []string{"third"}}
			a.links[0].paused = true
		})
		a.publish("first")
		a.publish("second")
		time.AfterFunc(drainLimit/2, func() {
			m.change(func() { a.links[0].paused = false })
			a.deliver()
		})
		m.mustInvite(host("b.example"))
		m.pass(drainLater)
		m.checkEvents(t, "join b.example", "ack first", "ack second", "consume b.example", "ack third",
			"delete "+testQueue+" at a.example", "close a.example")
		if got := m.of("g1").received; !slices.Equal(got, []string{"first", "second", "third"}) {
			t.Errorf("received were %v", got)
		}
		m.restart()
		m.checkState(Waiting) // it has no key
		if s := m.engine.List()[0]; s.Broker != "b.example:5672" {
			t.Errorf("it belongs to %s", s.Broker)
		}
	})
}

// TestOldBrokerIsSlow moves a membership to another broker while the old one delivers nothing. The invitation is
// answered soon, but deliveries of the new broker wait until the old queue is empty, or for drainLater.
func TestOldBrokerIsSlow(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pause  time.Duration // of the old broker
		during func(a, b *fakeBroker)
		want   []string
	}{
		{"it continues", 5 * time.Second, nil, []string{"first", "second", "third"}},
		{"it is cut", time.Hour, func(a, _ *fakeBroker) { a.cut(broker.Closed) }, []string{"third"}},
		{"it stays so", time.Hour, nil, []string{"third"}},
		{"the new one is cut", 5 * time.Second, func(_, b *fakeBroker) { b.cut(broker.Closed) },
			[]string{"first", "second", "third"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.mustInvite()
				a, b := m.byName["a.example"], m.byName["b.example"]
				m.change(func() { a.links[0].paused = true })
				a.publish("first")
				a.publish("second")
				began := time.Now()
				old := a.links[0]
				time.AfterFunc(tc.pause, func() {
					m.change(func() { old.paused = false })
					a.deliver()
				})
				m.mustInvite(host("b.example"))
				if took := time.Since(began); took > 2*drainLimit {
					t.Errorf("the invitation was answered after %v", took)
				}
				go b.publish("third")
				m.pass(time.Second)
				if got := m.of("g1").bodies(); len(got) != 0 {
					t.Errorf("received were %v before the old queue was empty", got)
				}
				if tc.during != nil {
					tc.during(a, b)
				}
				m.pass(drainLater)
				if got := m.of("g1").bodies(); !slices.Equal(got, tc.want) {
					t.Errorf("received were %v, want %v", got, tc.want)
				}
				m.checkState(Joined)
			})
		})
	}
}

// TestOneCluster moves a membership to another node of its cluster: the queue is the same, and is not deleted.
func TestOneCluster(t *testing.T) {
	inBubble(t, func(m *memberships) {
		b := m.byName["b.example"]
		b.cluster, b.queues = m.byName["a.example"].cluster, m.byName["a.example"].queues
		m.mustInvite()
		m.took()
		m.mustInvite(host("b.example"))
		m.pass(drainLater)
		m.checkEvents(t, "join b.example", "close a.example", "consume b.example")
	})
}
