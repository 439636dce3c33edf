// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// TestGroupManagement mutes a member, asks it for its status, and lets it go.
func TestGroupManagement(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	p := site.Certificates(t)
	for name, leader := range map[string]devpki.File{"v01": p.LeaderV1, "v02": p.Leader} {
		for _, leave := range []string{"leave-group", "disband"} {
			t.Run(name+" "+leave, func(t *testing.T) {
				t.Parallel()
				_, agent := site.SampleAgent(t)
				m := newMember(t, "a2a/legacy http://"+agent, "localhost")
				other, err := identity.MakeV1(identity.FieldsV1{})
				site.NoError(t, err)
				g := site.NewGroup(t, b, "managed", leader)
				joined := g.Join(m)
				said := 0 // statuses of itself
				status := func(what, want string) {
					t.Helper()
					said++
					if got := g.WaitForMember(m.AIC, said); got != want {
						t.Errorf("%s says %s", what, got)
					}
				}
				if g.V2 {
					status("a member that has joined", "connected true, muted false")
				}

				g.Manage("mute", []string{string(other)})
				g.Manage("get-status", "all")
				status("a member that is not muted", "connected true, muted false")
				g.Manage("mute", []string{m.AIC})
				status("a muted member", "connected true, muted true")
				g.Say("start", "unheard", "hello")
				g.Say("start", "long", "slow 300")
				caller := m.CalledBy(leader)
				site.Eventually(t, "the task is carried out", func() bool {
					got, err := caller.Try(site.CommandCall(task.Get, "unheard"))
					return err == nil && got.Status.State == task.AwaitingCompletion
				})
				g.Manage("get-status", []string{m.AIC, string(other)})
				status("a muted member", "connected true, muted true")
				if got := g.Of(m.AIC, "unheard"); len(got) != 0 {
					t.Errorf("a muted member has published %s", got[0].Raw)
				}
				g.Manage("unmute", "all")
				status("a member that is not muted any more", "connected true, muted false")
				g.WaitForState(m.AIC, "unheard", "awaiting-completion")
				g.Check(m, "unheard")
				g.WaitForState(m.AIC, "long", "working")
				before := len(g.All(m.AIC))

				g.Manage(leave, "all")
				status("a member that leaves", "connected false, muted false")
				var last []string
				for _, m := range g.All(m.AIC)[before:] {
					if status, ok := m.Member(); ok {
						last = append(last, status)
					} else {
						last = append(last, m.Task()+" "+m.Status.State)
					}
				}
				slices.Sort(last[:max(0, len(last)-1)])
				if diff := cmp.Diff([]string{"long canceled", "unheard canceled", "connected false, muted false"},
					last); diff != "" {
					t.Errorf("the last messages (-want +got):\n%s", diff)
				}
				g.WaitForRemoval(m)
				g.Check(m, "long", task.Accepted, task.Working, task.Canceled)
				leftNothing(t, m, b)
				if got := g.Join(m); got.QueueName != joined.QueueName {
					t.Errorf("a member that is invited again answers %+v, and before %+v", got, joined)
				}
				g.Say("start", "again", "hello")
				g.WaitForState(m.AIC, "again", "awaiting-completion")
			})
		}
	}
}

// TestForcedRemoval deletes the queue of a member, which is its removal, whether the member sees it or is away.
// A closed connection alone is none.
func TestForcedRemoval(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	_, agent := site.SampleAgent(t)
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprint("away ", away), func(t *testing.T) {
			t.Parallel()
			m := newMember(t, "a2a/legacy http://"+agent, "localhost", "token_key "+site.TokenKey)
			g := site.NewGroup(t, b, "removed", site.Certificates(t).LeaderV1)
			joined := g.Join(m)
			g.Say("start", "one", "hello")
			g.WaitForState(m.AIC, "one", "awaiting-completion")

			if n, err := b.CloseConnections(joined.ConnectionName); n != 1 || err != nil {
				t.Errorf("%d connections were closed: %v", n, err)
			}
			g.Say("start", "two", "hello")
			g.WaitForState(m.AIC, "two", "awaiting-completion")

			if away {
				m.Stop(t)
				g.DeleteQueue(joined.QueueName)
				m.Start(m.Config)
			} else {
				g.DeleteQueue(joined.QueueName)
			}
			g.WaitForRemoval(m)
			site.Eventually(t, "its tasks have ended", func() bool {
				return m.CalledBy(g.Certificate).Get("two").Status.State == task.Canceled
			})
			leftNothing(t, m, b)
		})
	}
}

// TestHybridMode works with one member by rpc and by a group.
func TestHybridMode(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	p := site.Certificates(t)
	_, agent := site.SampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := site.NewGroup(t, b, "hybrid", p.LeaderV1)
	g.Join(m)
	leader, stranger := m.CalledBy(p.LeaderV1), m.CalledBy(p.Leader)
	byGroup := func(id string) *task.Call {
		call := site.StartCall(id, "hello")
		call.Message.GroupID = g.ID
		return call
	}

	leader.Start("direct", "hello")
	if got := leader.Send(byGroup("by rpc")); got.Status.State != task.AwaitingCompletion || got.GroupID != g.ID {
		t.Errorf("a start by rpc in a group is answered %+v", got)
	}
	g.WaitForState(m.AIC, "by rpc", "awaiting-completion")
	g.Say("continue", "by rpc", "more")
	g.WaitFor(m.AIC, "the second product", func(m site.HeardMessage) bool { return m.Says() == "echo: more" })
	leader.Complete("by rpc")
	g.WaitForState(m.AIC, "by rpc", "completed")

	g.Say("start", "by group", "ask")
	g.WaitForState(m.AIC, "by group", "awaiting-input")
	if got := leader.GoOn("by group", "blue"); site.Product(got)[0] != "you said: blue" {
		t.Errorf("a continue by rpc is answered %+v", site.AnswerOf(got))
	}
	g.WaitForState(m.AIC, "by group", "awaiting-completion")
	for _, id := range []string{"by rpc", "by group"} {
		if got := stranger.Refused(site.CommandCall(task.Get, id)); got.Code != -32001 {
			t.Errorf("another Leader's get is answered %+v", got)
		}
	}
	foreign := byGroup("of no group")
	foreign.Message.GroupID = "another"
	if got := leader.Refused(foreign); got.Code != -32602 {
		t.Errorf("a start in a group that is none is answered %+v", got)
	}

	// A get by the group is answered by one message more; of a task that is not there, by none.
	before := len(g.Of(m.AIC, "by group"))
	g.Say("get", "no such task", "")
	g.Say("get", "by group", "")
	site.Eventually(t, "the get is answered", func() bool { return len(g.Of(m.AIC, "by group")) == before+1 })
	// A direct task is no business of the group.
	g.Say("complete", "direct", "")
	g.Manage("get-status", "all")
	g.WaitForMember(m.AIC, 1)
	if got := leader.Get("direct"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("the direct task is %s", got.Status.State)
	}
	for _, id := range []string{"direct", "no such task", "of no group"} {
		if got := g.Of(m.AIC, id); len(got) > 0 {
			t.Errorf("on the exchange is %s", got[0].Raw)
		}
	}
	g.Check(m, "by rpc")
}
