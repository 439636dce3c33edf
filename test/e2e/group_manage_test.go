// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// groups returns the groups that the admin API of a member lists.
func (m *member) groups() []gjson.Result {
	m.t.Helper()
	res, err := http.Get(m.adminURL() + "/aip/groups")
	noError(m.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	noError(m.t, err)
	if res.StatusCode != http.StatusOK {
		m.t.Fatalf("the admin API answers %d %s", res.StatusCode, body)
	}
	return gjson.GetBytes(body, "groups").Array()
}

// waitForRemoval waits until a member knows no group any more, and the broker no queue of it.
func (g *groupLeader) waitForRemoval(m *member) {
	g.t.Helper()
	eventually(g.t, m.aic+" has left the group", func() bool { return len(m.groups()) == 0 })
	g.noQueue(m)
}

func (g *groupLeader) noQueue(m *member) {
	g.t.Helper()
	queues, err := g.broker.Queues(g.vhost)
	noError(g.t, err)
	if slices.ContainsFunc(queues, func(q string) bool { return strings.Contains(q, m.aic) }) {
		g.t.Errorf("there are the queues %q", queues)
	}
}

// deleteQueue deletes a member's queue, as a Leader does who removes it by force.
func (g *groupLeader) deleteQueue(name string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.channel.QueueDelete(name, false, false, false)
	noError(g.t, err)
}

// TestGroupManagement mutes a member, asks it for its status, and lets it go.
func TestGroupManagement(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	p := certificates(t)
	for name, leader := range map[string]devpki.File{"v01": p.LeaderV1, "v02": p.Leader} {
		for _, leave := range []string{"leave-group", "disband"} {
			t.Run(name+" "+leave, func(t *testing.T) {
				t.Parallel()
				_, agent := sampleAgent(t)
				m := newMember(t, "a2a/legacy http://"+agent, "localhost")
				other, err := identity.MakeV1(identity.FieldsV1{})
				noError(t, err)
				g := newGroup(t, b, "managed", leader)
				joined := g.join(m)
				said := 0 // statuses of itself
				status := func(what, want string) {
					t.Helper()
					said++
					if got := g.waitForMember(m.aic, said); got != want {
						t.Errorf("%s says %s", what, got)
					}
				}
				if g.v2 {
					status("a member that has joined", "connected true, muted false")
				}

				g.manage("mute", []string{string(other)})
				g.manage("get-status", "all")
				status("a member that is not muted", "connected true, muted false")
				g.manage("mute", []string{m.aic})
				status("a muted member", "connected true, muted true")
				g.say("start", "unheard", "hello")
				g.say("start", "long", "slow 300")
				caller := m.calledBy(leader)
				eventually(t, "the task is carried out", func() bool {
					got, err := caller.try(commandCall(task.Get, "unheard"))
					return err == nil && got.Status.State == task.AwaitingCompletion
				})
				g.manage("get-status", []string{m.aic, string(other)})
				status("a muted member", "connected true, muted true")
				if got := g.of(m.aic, "unheard"); len(got) != 0 {
					t.Errorf("a muted member has published %s", got[0].raw)
				}
				g.manage("unmute", "all")
				status("a member that is not muted any more", "connected true, muted false")
				g.waitForState(m.aic, "unheard", "awaiting-completion")
				g.check(m, "unheard")
				g.waitForState(m.aic, "long", "working")
				before := len(g.all(m.aic))

				g.manage(leave, "all")
				status("a member that leaves", "connected false, muted false")
				var last []string
				for _, m := range g.all(m.aic)[before:] {
					if status, ok := m.member(); ok {
						last = append(last, status)
					} else {
						last = append(last, m.task()+" "+m.Status.State)
					}
				}
				slices.Sort(last[:max(0, len(last)-1)])
				if diff := cmp.Diff([]string{"long canceled", "unheard canceled", "connected false, muted false"},
					last); diff != "" {
					t.Errorf("the last messages (-want +got):\n%s", diff)
				}
				g.waitForRemoval(m)
				g.check(m, "long", task.Accepted, task.Working, task.Canceled)
				m.leftNothing(t, b)
				if got := g.join(m); got.QueueName != joined.QueueName {
					t.Errorf("a member that is invited again answers %+v, and before %+v", got, joined)
				}
				g.say("start", "again", "hello")
				g.waitForState(m.aic, "again", "awaiting-completion")
			})
		}
	}
}

// TestForcedRemoval deletes the queue of a member, which is its removal, whether the member sees it or is away.
// A closed connection alone is none.
func TestForcedRemoval(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	_, agent := sampleAgent(t)
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprint("away ", away), func(t *testing.T) {
			t.Parallel()
			m := newMember(t, "a2a/legacy http://"+agent, "localhost", "token_key "+tokenKey)
			g := newGroup(t, b, "removed", certificates(t).LeaderV1)
			joined := g.join(m)
			g.say("start", "one", "hello")
			g.waitForState(m.aic, "one", "awaiting-completion")

			if n, err := b.CloseConnections(joined.ConnectionName); n != 1 || err != nil {
				t.Errorf("%d connections were closed: %v", n, err)
			}
			g.say("start", "two", "hello")
			g.waitForState(m.aic, "two", "awaiting-completion")

			if away {
				m.stop(t)
				g.deleteQueue(joined.QueueName)
				m.start(m.config)
			} else {
				g.deleteQueue(joined.QueueName)
			}
			g.waitForRemoval(m)
			eventually(t, "its tasks have ended", func() bool {
				return m.calledBy(g.certificate).get("two").Status.State == task.Canceled
			})
			m.leftNothing(t, b)
		})
	}
}

// TestHybridMode works with one member by rpc and by a group.
func TestHybridMode(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	p := certificates(t)
	_, agent := sampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := newGroup(t, b, "hybrid", p.LeaderV1)
	g.join(m)
	leader, stranger := m.calledBy(p.LeaderV1), m.calledBy(p.Leader)
	byGroup := func(id string) *task.Call {
		call := startCall(id, "hello")
		call.Message.GroupID = g.id
		return call
	}

	leader.start("direct", "hello")
	if got := leader.do(byGroup("by rpc")); got.Status.State != task.AwaitingCompletion || got.GroupID != g.id {
		t.Errorf("a start by rpc in a group is answered %+v", got)
	}
	g.waitForState(m.aic, "by rpc", "awaiting-completion")
	g.say("continue", "by rpc", "more")
	g.waitFor(m.aic, "the second product", func(m heardMessage) bool { return m.says() == "echo: more" })
	leader.complete("by rpc")
	g.waitForState(m.aic, "by rpc", "completed")

	g.say("start", "by group", "ask")
	g.waitForState(m.aic, "by group", "awaiting-input")
	if got := leader.goOn("by group", "blue"); product(got)[0] != "you said: blue" {
		t.Errorf("a continue by rpc is answered %+v", of(got))
	}
	g.waitForState(m.aic, "by group", "awaiting-completion")
	for _, id := range []string{"by rpc", "by group"} {
		if got := stranger.refused(commandCall(task.Get, id)); got.Code != -32001 {
			t.Errorf("another Leader's get is answered %+v", got)
		}
	}
	foreign := byGroup("of no group")
	foreign.Message.GroupID = "another"
	if got := leader.refused(foreign); got.Code != -32602 {
		t.Errorf("a start in a group that is none is answered %+v", got)
	}

	// A get by the group is answered by one message more; of a task that is not there, by none.
	before := len(g.of(m.aic, "by group"))
	g.say("get", "no such task", "")
	g.say("get", "by group", "")
	eventually(t, "the get is answered", func() bool { return len(g.of(m.aic, "by group")) == before+1 })
	// A direct task is no business of the group.
	g.say("complete", "direct", "")
	g.manage("get-status", "all")
	g.waitForMember(m.aic, 1)
	if got := leader.get("direct"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("the direct task is %s", got.Status.State)
	}
	for _, id := range []string{"direct", "no such task", "of no group"} {
		if got := g.of(m.aic, id); len(got) > 0 {
			t.Errorf("on the exchange is %s", got[0].raw)
		}
	}
	g.check(m, "by rpc")
}
