// SPDX-License-Identifier: Apache-2.0

package group

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task"
)

var (
	present = task.MemberStatus{Connected: true}
	muted   = task.MemberStatus{Connected: true, Muted: true}
	gone    = task.MemberStatus{}
)

// send has the Leader publish commands for members at a.example; their ids are their places.
func (m *memberships) send(commands ...task.GroupCommand) (bodies []string) {
	m.Helper()
	for i, c := range commands {
		body := membersCommand(string(rune('1'+i)), c)
		m.byName["a.example"].publish(body)
		bodies = append(bodies, body)
	}
	synctest.Wait()
	return bodies
}

// TestManagement answers commands in their order.
func TestManagement(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		sent := m.send(task.GetStatus, task.Mute, task.Mute, task.GetStatus, task.Unmute)
		m.checkStatuses("a.example", present, muted, muted, muted, present)
		if m.of("g1").muted {
			t.Error("it is muted in the end")
		}
		acked := slices.DeleteFunc(m.took(), func(e string) bool { return !strings.HasPrefix(e, "ack") })
		if len(acked) != len(sent) {
			t.Errorf("acknowledged were %v", acked)
		}
		m.send(task.Mute)
		m.restart()
		if !m.of("g1").muted || !m.engine.List()[0].Muted {
			t.Error("it is not muted any more after a restart")
		}
	})
}

// TestAnswersAfterMove: answers not confirmed by the former broker do not hold up those at the new one.
func TestAnswersAfterMove(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		a, b := m.byName["a.example"], m.byName["b.example"]
		m.change(func() { a.holds = true })
		m.send(slices.Repeat([]task.GroupCommand{task.GetStatus}, reservedForStatus-1)...)
		m.mustInvite(host("b.example"))
		m.pass(drainLater)
		b.publish(membersCommand("last", task.GetStatus))
		synctest.Wait()
		m.checkStatuses("b.example", present)
	})
}

// TestRecordConflicts has another writer of the memberships be faster than each write, once. Nothing is lost.
func TestRecordConflicts(t *testing.T) {
	inBubble(t, func(m *memberships) {
		rival := &replaytest.Rival{Store: m.store.Store, Classes: string(logname.Membership)}
		m.store.Store = rival
		m.mustInvite()
		m.send(task.Mute, task.Unmute, task.Mute)
		if !m.engine.List()[0].Muted {
			t.Error("it is not muted")
		}
		m.send(task.LeaveGroup)
		m.checkState("")
		m.restart()
		m.checkState("")
		if rival.Wins() < 3 {
			t.Errorf("the other writer was faster %d times only", rival.Wins())
		}
	})
}

// TestCommandsWithoutID answers commands without an id by messages with different ones.
func TestCommandsWithoutID(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		at := m.byName["a.example"]
		for range 2 {
			at.publish(membersCommand("", task.GetStatus))
		}
		synctest.Wait()
		if len(at.sent) != 2 || at.sent[0].ID == at.sent[1].ID {
			t.Errorf("the answers are %+v", at.sent)
		}
	})
}

// TestAnnouncement publishes the status of a joined member in v02 of AIP: also when it has moved, and not for an
// invitation without a change.
func TestAnnouncement(t *testing.T) {
	inBubble(t, func(m *memberships) {
		v02 := func(inv *task.Invitation) { inv.Dialect = "aip/2" }
		m.mustInvite(v02)
		m.checkStatuses("a.example", present)
		m.mustInvite(v02)
		m.checkStatuses("a.example")
		m.send(task.Mute)
		m.mustInvite(v02, token("user:new"))
		m.checkStatuses("a.example", muted, muted)
		m.mustInvite(v02, token("user:new"), host("b.example"))
		m.checkStatuses("b.example", muted)
		m.byName["b.example"].cut(broker.Closed)
		m.pass(firstRetry)
		m.checkStatuses("b.example") // the others have not seen it leave
	})
}

// TestAnnouncementIsLost: the status of a joined member is published until a broker has confirmed it, with one id, also
// by the next process, and then not any more.
func TestAnnouncementIsLost(t *testing.T) {
	inBubble(t, func(m *memberships) {
		v02 := func(inv *task.Invitation) { inv.Dialect, inv.Server.AccessToken = "aip/2", "" }
		at := m.byName["a.example"]
		var ids []string
		count := func() int {
			synctest.Wait()
			m.change(func() {
				for _, sent := range at.sent {
					ids = append(ids, sent.ID)
				}
				at.sent = nil
			})
			return len(ids)
		}
		m.change(func() { at.holds = true })
		m.mustInvite(v02)
		m.mustInvite(v02)
		if n := count(); n != 1 {
			t.Errorf("the status was published %d times", n)
		}
		at.cut(broker.Closed)
		m.pass(firstRetry)
		if n := count(); n != 2 {
			t.Errorf("on the next link, the status was published %d times", n-1)
		}
		m.restart()
		m.change(func() { at.holds = false })
		at.cut(broker.Closed)
		m.pass(firstRetry)
		n := count()
		if ids = slices.Compact(ids); n != 4 || len(ids) != 1 {
			t.Errorf("by the next process, the status was published %d times; the ids are %q", n-2, ids)
		}
		for range 2 {
			m.restart()
			at.cut(broker.Closed)
			m.pass(firstRetry)
		}
		if n := count(); n != 1 {
			t.Errorf("the status was published %d times after it was confirmed", n-1)
		}
	})
}

// TestUnconfirmedAnswer loses the link before the answers are confirmed: they are published again, with the same ids.
func TestUnconfirmedAnswer(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		at := m.byName["a.example"]
		m.change(func() { at.holds = true })
		m.send(slices.Repeat([]task.GroupCommand{task.GetStatus}, 3*reservedForStatus)...)
		var first []string
		m.change(func() {
			for _, sent := range at.sent {
				first = append(first, sent.ID)
			}
			at.sent = nil
		})
		if len(first) != reservedForStatus-1 {
			t.Errorf("%d answers were published without a confirm", len(first))
		}
		for _, e := range m.took() {
			if strings.HasPrefix(e, "ack") {
				t.Errorf("%s before the answer is confirmed", e)
			}
		}
		at.cut(broker.Closed)
		m.change(func() { at.holds = false })
		m.pass(firstRetry)
		for i, sent := range at.sent {
			if i < len(first) && sent.ID != first[i] {
				t.Errorf("answer %d has the id %q, and had %q", i, sent.ID, first[i])
			}
		}
		if len(at.sent) != 3*reservedForStatus || len(at.queues[testQueue].messages) > 0 || len(at.links[0].unacked) > 0 {
			t.Errorf("%d answers were published", len(at.sent))
		}
	})
}

// TestCommandWithoutStore executes a command when the store can be written again, and acknowledges it only then.
func TestCommandWithoutStore(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.store.setDown(true)
		m.send(task.Mute, task.GetStatus)
		m.checkStatuses("a.example")
		if m.of("g1").muted || len(m.byName["a.example"].links[0].unacked) != 2 {
			t.Error("a command was executed that is not stored")
		}
		m.store.setDown(false)
		m.checkStatuses("a.example", muted, muted)
	})
}

// TestCrashAtEachWrite lets the process die at each of its writes, while it joins, is muted, moves and leaves. The next
// process finds a membership or none, and continues from there.
func TestCrashAtEachWrite(t *testing.T) {
	for death, died := 1, true; died; death++ {
		inBubble(t, func(m *memberships) {
			m.store.dieAt, m.store.died = death, make(chan struct{})
			m.config.Key = []byte(strings.Repeat("k", KeySize))
			m.register()
			_, _ = m.invite()
			m.send(task.Mute)
			_, _ = m.invite(token("user:new"))
			_, _ = m.invite(host("b.example"))
			m.byName["b.example"].publish(membersCommand("x", task.LeaveGroup))
			synctest.Wait()

			select {
			case <-m.store.died:
			default:
				died = false
			}
			m.store.mu.Lock()
			m.store.dieAt = 0
			m.store.mu.Unlock()
			m.restart()
			m.pass(firstRetry)
			open := 0
			for e, err := range m.store.List(m.Context(), "", "") {
				if err != nil {
					t.Fatal(err)
				}
				if e.Head.Ended.IsZero() {
					open++
				}
			}
			state := m.state()
			if (state == Joined) != (open == 1) || state != Joined && state != "" {
				t.Errorf("death %d: the membership is %q, and %d logs are open", death, state, open)
			}
			m.took()
			m.mustInvite(host("b.example"))
			m.checkState(Joined)
			m.byName["b.example"].publish(membersCommand("y", task.LeaveGroup))
			m.checkState("")
		})
	}
}

// TestDamagedMembership leaves an unreadable record alone.
func TestDamagedMembership(t *testing.T) {
	inBubble(t, func(m *memberships) {
		for i, metadata := range []string{`{`, `{"v":99}`} {
			log := newLog(key{testPartner, testLeader, string(rune('a' + i))})
			if err := m.store.Append(m.Context(), replay.Append{Log: log, Metadata: []byte(metadata)}); err != nil {
				t.Fatal(err)
			}
		}
		m.mustInvite(token(""))
		m.restart()
		m.checkState(Joined)
		if list := m.engine.List(); len(list) != 1 || !strings.Contains(m.log.String(), "unknown format 99") {
			t.Errorf("the memberships are %+v", list)
		}
	})
}
