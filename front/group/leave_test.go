// SPDX-License-Identifier: Apache-2.0

package group

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestLeave leaves a group: the tasks end, the group sees it, the last status follows, and the queue goes last.
func TestLeave(t *testing.T) {
	for _, c := range []task.GroupCommand{task.LeaveGroup, task.Disband} {
		t.Run(string(c), func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.mustInvite()
				m.took()
				tasks := m.of("g1")
				sent := m.send(c)
				m.checkEvents(t, "cancel", "flush", "publish status", "ack "+sent[0], "delete "+testQueue+" at a.example",
					"close a.example")
				m.checkStatuses("a.example", gone)
				m.checkState("")
				if !tasks.dropped || !tasks.closed || m.self.Has(testLeader, "g1") {
					t.Errorf("the tasks are %+v", tasks)
				}
				m.restart()
				m.checkState("")
				m.mustInvite()
				m.checkState(Joined)
			})
		})
	}
}

// TestLeaveLosesLink loses the link while it leaves.
func TestLeaveLosesLink(t *testing.T) {
	for name, restart := range map[string]bool{"": false, " and restarts": true} {
		t.Run("loses its link"+name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.mustInvite(token("")) // EXTERNAL, so it survives a restart
				m.took()
				at := m.byName["a.example"]
				m.change(func() { at.holds = true })
				m.send(task.LeaveGroup)
				m.checkState(Leaving)
				if m.self.Has(testLeader, "g1") {
					t.Error("it is a member though it leaves")
				}
				m.checkEvents(t, "cancel", "flush", "publish status")
				id := at.sent[0].ID
				if restart {
					m.stop()
					m.change(func() { at.holds = false })
					m.start()
				} else {
					at.cut(broker.Closed)
					m.change(func() { at.holds = false })
				}
				m.pass(2 * firstRetry)
				m.checkState("")
				if again := at.sent[len(at.sent)-1].ID; again != id {
					t.Errorf("the last status has the id %q, and had %q", again, id)
				}
				if events := m.took(); !slices.Contains(events, "delete "+testQueue+" at a.example") {
					t.Errorf("there was %v", events)
				}
			})
		})
	}
	t.Run("when the queue is deleted, after a long time", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			m.pass(keepLost + time.Hour)
			m.change(func() { m.byName["a.example"].keeps = 1 })
			m.send(task.LeaveGroup)
			m.checkState(Leaving)
			m.pass(2 * firstRetry)
			m.checkState("")
			if events := m.took(); !slices.Contains(events, "delete "+testQueue+" at a.example") {
				t.Errorf("there was %v", events)
			}
		})
	})
	t.Run("for good", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			tasks, at := m.of("g1"), m.byName["a.example"]
			m.change(func() { at.holds = true })
			m.send(task.LeaveGroup)
			m.change(func() { at.fails = brokerError(broker.Unreachable, "a.example", "refused") })
			at.cut(broker.Closed)
			m.checkState(Leaving)
			m.pass(leaveLimit)
			m.checkState("")
			if !tasks.dropped {
				t.Error("its tasks stay")
			}
		})
	})
	t.Run("and is invited again", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			at := m.byName["a.example"]
			m.change(func() { at.holds = true })
			m.send(task.LeaveGroup)
			m.change(func() { at.fails = brokerError(broker.Unreachable, "a.example", "refused") })
			at.cut(broker.Closed)
			m.change(func() { at.fails, at.holds = nil, false })
			m.state()
			m.mustInvite()
			m.checkState(Joined)
		})
	})
}

// TestLeaveByOperator has an operator make the agent leave.
func TestLeaveByOperator(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		if err := m.engine.Leave(m.Context(), testPartner, testLeader, "g1"); err != nil {
			t.Error(err)
		}
		m.checkEvents(t, "cancel", "flush", "publish status", "delete "+testQueue+" at a.example", "close a.example")
		m.checkStatuses("a.example", gone)
		m.checkState("")

		// Without a link, the queue stays.
		m.mustInvite()
		at, tasks := m.byName["a.example"], m.of("g1")
		m.change(func() { at.fails = brokerError(broker.Unreachable, "a.example", "refused") })
		at.cut(broker.Closed)
		if err := m.engine.Leave(m.Context(), testPartner, testLeader, "g1"); err != nil {
			t.Error(err)
		}
		m.checkState("")
		if !tasks.canceled || !tasks.dropped || at.queues[testQueue] == nil {
			t.Errorf("its tasks are %+v, and the queues %v", tasks, at.queues)
		}
		if err := m.engine.Leave(m.Context(), testPartner, testLeader, "g1"); task.KindOf(err) != task.InvalidParams {
			t.Errorf("the error is %v", err)
		}
		m.checkStatuses("a.example")
		m.change(func() { at.fails = nil })
		m.mustInvite()
		m.store.setDown(true)
		if err := m.engine.Leave(m.Context(), testPartner, testLeader, "g1"); task.KindOf(err) != task.StoreUnavailable {
			t.Errorf("the error is %v", err)
		}
		m.store.setDown(false)
		m.checkState(Joined)
	})
}

// TestLeaveNotTaken has the engine close before a supervisor takes the request to leave.
func TestLeaveNotTaken(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		member := m.engine.membership(key{testPartner, testLeader, "g1"})
		closes := make(chan struct{})
		if err := member.ask(maxRequests, func() {
			<-closes
			member.refuseRequests()
		}); err != nil {
			t.Error(err)
		}
		left := make(chan error, 1)
		go func() { left <- m.engine.Leave(m.Context(), testPartner, testLeader, "g1") }()
		synctest.Wait()
		member.home.stop()
		close(closes)
		if err := <-left; !errors.Is(err, errStops) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestRequestsAreBounded: while a supervisor waits, a Leader repeating its invitation is refused after some, and the
// operator can still have the group left.
func TestRequestsAreBounded(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		member := m.engine.membership(key{testPartner, testLeader, "g1"})
		release := make(chan struct{})
		if err := member.ask(maxRequests, func() { <-release }); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		const more = 5
		answered := make(chan error, maxRepeated+more)
		for range maxRepeated + more {
			go func() {
				_, err := m.self.Join(m.Context(), testLeader, invitation())
				answered <- err
			}()
		}
		synctest.Wait()
		if n := len(answered); n != more {
			t.Errorf("%d invitations are answered, want %d", n, more)
		}
		for range len(answered) {
			if err := <-answered; task.KindOf(err) != task.LimitExceeded {
				t.Errorf("an invitation beyond the bound is answered %v", err)
			}
		}
		left := make(chan error, 1)
		go func() { left <- m.engine.Leave(m.Context(), testPartner, testLeader, "g1") }()
		for range 10 * maxRequests {
			m.engine.LeaveAll(testLeader) // as each look at the right to lead
		}
		synctest.Wait()
		if n := len(member.requests); n != maxRepeated+1 {
			t.Errorf("%d requests wait, want %d", n, maxRepeated+1)
		}
		close(release)
		if err := <-left; err != nil {
			t.Errorf("the leave: %v", err)
		}
		for range maxRepeated {
			<-answered
		}
	})
}

// TestLeaveAll leaves the groups of one Leader. Their tasks go on.
func TestLeaveAll(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		m.engine.LeaveAll("another")
		m.checkState(Joined)
		m.engine.LeaveAll(testLeader)
		m.engine.LeaveAll(testLeader)
		m.checkState("")
		m.checkEvents(t, "stop", "publish status", "delete "+testQueue+" at a.example", "close a.example")
		m.checkStatuses("a.example", gone)

		// Without a link, the queue stays.
		m.mustInvite()
		at, tasks := m.byName["a.example"], m.of("g1")
		m.change(func() { at.fails = brokerError(broker.Unreachable, "a.example", "refused") })
		at.cut(broker.Closed)
		m.engine.LeaveAll(testLeader)
		m.checkState("")
		if tasks.canceled || !tasks.dropped || at.queues[testQueue] == nil {
			t.Errorf("its tasks are %+v, and the queues %v", tasks, at.queues)
		}

		// A store failing once.
		m.change(func() { at.fails = nil })
		m.mustInvite()
		m.store.setDown(true)
		m.engine.LeaveAll(testLeader)
		m.checkState(Joined)
		m.store.setDown(false)
		m.engine.LeaveAll(testLeader)
		m.checkState("")

		// The groups of one Partner.
		m.mustInvite()
		m.engine.LeaveAllOf("another")
		m.checkState(Joined)
		m.engine.LeaveAllOf(testPartner)
		m.checkState("")
	})
}

// TestTasksThatDoNotEnd leaves though a task cannot be canceled.
func TestTasksThatDoNotEnd(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.of("g1").failing = errors.New("an agent does not answer")
		m.send(task.LeaveGroup)
		m.checkStatuses("a.example", gone)
		m.checkState("")
	})
}
