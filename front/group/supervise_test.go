// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestReconnect loses the link.
func TestReconnect(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		at := m.byName["a.example"]
		m.change(func() { at.fails = brokerError(broker.Unreachable, "a.example", "refused") })
		at.cut(broker.Closed)
		at.publish("meanwhile")
		m.checkState(Reconnecting)
		if !m.self.Has(testLeader, "g1") {
			t.Error("it is no member while it is reconnected")
		}
		m.pass(time.Hour)
		if n := len(m.asked()); n < 100 || n > 300 {
			t.Errorf("there were %d attempts in an hour", n)
		}
		m.checkState(Reconnecting)
		if s := m.engine.List()[0]; !strings.Contains(s.LastError, "refused") {
			t.Errorf("the last error is %q", s.LastError)
		}
		m.change(func() { at.fails = nil })
		m.pass(2 * longestRetry)
		m.checkState(Joined)
		m.checkEvents(t, "close a.example", "join a.example", "consume a.example", "ack meanwhile")

		// An invitation does not wait for the next attempt, nor for a hanging one.
		m.change(func() { at.hangs = true })
		at.cut(broker.Closed)
		m.pass(firstRetry)
		waiting := 0
		m.change(func() { waiting = m.waiting })
		if waiting != 1 {
			t.Fatal("no attempt is made")
		}
		m.change(func() { at.hangs = false })
		began := time.Now()
		m.mustInvite()
		if time.Since(began) > 0 {
			t.Errorf("the invitation waited %v", time.Since(began))
		}
		m.checkState(Joined)
		for line, want := range map[string]int{
			"a group is connected to its broker": 3, "the connection of a group to its broker was lost": 2,
		} {
			if n := strings.Count(m.log.String(), line); n != want {
				t.Errorf("%q is logged %d times, want %d", line, n, want)
			}
		}
	})
}

// TestBrokerLostForDays gives up a broker after days without a connection.
func TestBrokerLostForDays(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		at := m.byName["a.example"]
		m.change(func() { at.fails = brokerError(broker.Unreachable, "a.example", "refused") })
		at.cut(broker.Closed)
		m.pass(keepLost - time.Minute)
		m.checkState(Reconnecting)
		tasks := m.of("g1")
		m.pass(2 * time.Minute)
		m.checkState("")
		if !tasks.canceled || !tasks.dropped || !tasks.closed {
			t.Errorf("its tasks are %+v", tasks)
		}
	})
}

// TestForcedRemoval deletes the queue, while there is a link and while there is none.
func TestForcedRemoval(t *testing.T) {
	removed := func(m *memberships, tasks *fakeTasks) {
		m.Helper()
		m.checkState("")
		if !tasks.canceled || !tasks.dropped || !tasks.closed {
			m.Errorf("its tasks are %+v", tasks)
		}
		m.checkEvents(m.T, "close a.example", "cancel")
		m.restart()
		m.checkState("")
		m.mustInvite() // the Leader may invite it again
		m.checkEvents(m.T, "declare "+testQueue, "join a.example", "consume a.example")
		m.checkState(Joined)
	}
	t.Run("while it has a link", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			m.took()
			tasks := m.of("g1")
			m.byName["a.example"].cut(broker.QueueGone)
			removed(m, tasks)
		})
	})
	t.Run("while it was away", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			m.took()
			tasks, at := m.of("g1"), m.byName["a.example"]
			m.change(func() { clear(at.queues) })
			at.cut(broker.Closed)
			m.pass(firstRetry)
			removed(m, tasks)
		})
	})
	t.Run("and is invited before it has noticed", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			m.took()
			tasks, at := m.of("g1"), m.byName["a.example"]
			m.change(func() {
				clear(at.queues)
				at.fails = brokerError(broker.Unreachable, "a.example", "refused")
			})
			at.cut(broker.Closed)
			m.change(func() { at.fails = nil })
			m.mustInvite()
			m.checkEvents(t, "close a.example", "cancel", "declare "+testQueue, "join a.example", "consume a.example")
			if !tasks.closed || tasks == m.of("g1") {
				t.Error("the new membership has the tasks of the old one")
			}
		})
	})
}

// TestLoginRefused waits for an invitation when a token has expired.
func TestLoginRefused(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		at := m.byName["a.example"]
		m.change(func() { at.refuses = func(l broker.Login) bool { return l == broker.Password("user", "secret") } })
		at.cut(broker.LoginRefused)
		m.pass(firstRetry)
		m.checkState(Waiting)
		joins := len(m.asked())
		m.pass(time.Hour)
		if n := len(m.asked()) - joins; n < 5 || n > 30 {
			t.Errorf("there were %d attempts in an hour", n)
		}
		m.checkEvents(t, "close a.example")
		at.publish("meanwhile")
		m.mustInvite(token("user:new"))
		m.checkEvents(t, "join a.example", "consume a.example", "ack meanwhile")
		m.checkState(Joined)
	})
}

// TestWithoutACertificate reloads with a configuration without the certificate of the agent's login.
func TestWithoutACertificate(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite(token(""))
		m.took()
		reload := func(c *tls.Config) {
			old := m.self
			m.config.TLS = c
			m.register()
			old.Unregister()
		}
		certified := m.config.TLS
		reload(nil)
		m.checkState(Joined) // its link needs no new login
		at := m.byName["a.example"]
		at.cut(broker.Closed)
		m.pass(firstRetry)
		m.checkState(Waiting)
		m.pass(time.Hour)
		if s := m.engine.List()[0]; !strings.Contains(s.LastError, "no client certificate") {
			t.Errorf("the last error is %q", s.LastError)
		}
		m.checkEvents(t, "close a.example")
		reload(certified)
		m.checkState(Joined)
		m.checkEvents(t, "join a.example", "consume a.example")
	})
}

// TestRestart restarts the gateway, with and without a key.
func TestRestart(t *testing.T) {
	key1, key2 := bytes.Repeat([]byte{1}, KeySize), bytes.Repeat([]byte{2}, KeySize)
	for name, tc := range map[string]struct {
		before, after []byte
		token         string
		want          State
	}{
		"the same key":  {key1, key1, "user:secret", Joined},
		"no key":        {nil, nil, "user:secret", Waiting},
		"another key":   {key1, key2, "user:secret", Waiting},
		"the first key": {nil, key1, "user:secret", Waiting},
		"EXTERNAL":      {nil, nil, "", Joined},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.config.Key = tc.before
				m.register()
				m.mustInvite(token(tc.token))
				m.byName["a.example"].publish(membersCommand("c1", task.Mute))
				m.state()
				m.took()
				for e := range m.store.List(m.Context(), "", "") {
					if bytes.Contains(e.Head.Metadata, []byte("secret")) {
						t.Errorf("the store has the access token: %s", e.Head.Metadata)
					}
				}
				m.config.Key = tc.after
				m.restart()
				m.checkState(tc.want)
				if !m.of("g1").muted {
					t.Error("the member is not muted any more")
				}
				if tc.want == Waiting {
					m.checkEvents(t, "close a.example")
					m.mustInvite(token(tc.token))
					m.checkState(Joined)
					m.took()
					if tc.after != nil { // from now on it is sealed by the present key
						m.restart()
						m.checkState(Joined)
					}
				} else {
					m.checkEvents(t, "close a.example", "join a.example", "consume a.example")
				}
			})
		})
	}
}

// TestReload changes the configuration while the gateway runs.
func TestReload(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		old := m.self
		m.config.Key = bytes.Repeat([]byte{1}, KeySize) // the token is sealed from now on
		m.register()
		old.Unregister()
		m.checkState(Joined)
		m.checkEvents(t)
		m.restart()
		m.checkState(Joined)
		m.took()

		m.self.Unregister()
		m.checkState(Unregistered)
		m.checkEvents(t, "close a.example")
		if err := m.engine.Leave(m.Context(), testPartner, testLeader, "g2"); task.KindOf(err) != task.InvalidParams {
			t.Errorf("the error is %v", err)
		}
		m.register()
		m.checkState(Joined)
		m.checkEvents(t, "join a.example", "consume a.example")

		// An invitation by way of a replaced configuration is answered, and the link is closed.
		last := m.self
		last.Unregister()
		if _, err := last.Join(m.Context(), testLeader, invitation()); err != nil {
			t.Error(err)
		}
		m.checkState(Unregistered)
		if links := len(m.byName["a.example"].links); links != 0 {
			t.Errorf("there are %d links", links)
		}
		m.register()
		m.checkState(Joined)
		m.took()

		// A broker not allowed any more is left.
		old, allowed := m.self, m.config.Brokers
		m.config.Brokers = []Broker{mustParse("b.example")}
		m.register()
		old.Unregister()
		m.checkState(Waiting)
		m.checkEvents(t, "close a.example")
		old = m.self
		m.config.Brokers = allowed
		m.register()
		old.Unregister()
		m.checkState(Joined)

		// So is one with another name for the agent.
		old = m.self
		m.config.AIC = "RENAMED"
		m.register()
		old.Unregister()
		m.checkState(Waiting)
	})
}
