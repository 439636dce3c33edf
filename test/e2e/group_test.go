// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestGroup invites an agent that never heard of AMQP, and leads it through a task, in both generations of AIP.
func TestGroup(t *testing.T) {
	t.Parallel()
	p := certificates(t)
	b := sharedBroker(t)
	node, err := b.Eval("binary_to_list(rabbit_nodes:cluster_name())")
	noError(t, err)
	for name, leader := range map[string]devpki.File{"v01": p.LeaderV1, "v02": p.Leader} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, agent := sampleAgent(t)
			m := newMember(t, "a2a/legacy http://"+agent, fmt.Sprint("localhost:", b.Port))
			g := newGroup(t, b, "group123", leader)
			joined := g.join(m)
			want := membership{ConnectionName: "agent-" + m.aic, VHost: g.vhost, NodeName: node[1 : len(node)-1],
				QueueName: "group_" + g.aic() + "_" + g.id + "_" + m.aic, ProcessID: joined.ProcessID, AIC: m.aic,
				Status: joined.Status, GroupID: g.id}
			if diff := cmp.Diff(want, *joined); diff != "" || joined.ProcessID == "" || joined.Status == "" {
				t.Errorf("the answer to the invitation (-want +got):\n%s", diff)
			}

			g.say("start", "one", "hello")
			if got := g.waitForState(m.aic, "one", "awaiting-completion"); got.says() != "echo: hello" {
				t.Errorf("the product is %s", got.raw)
			}
			g.say("continue", "one", "more", m.aic)
			g.waitFor(m.aic, "the second product", func(m heardMessage) bool { return m.says() == "echo: more" })
			g.say("complete", "one", "", "all")
			g.waitForState(m.aic, "one", "completed")
			g.check(m, "one", task.Accepted, task.Working, task.AwaitingCompletion, task.Working, task.AwaitingCompletion,
				task.Completed)
		})
	}
}

// check compares what was published of a task with the answer to a get: every status once, in order, and legal.
func (g *groupLeader) check(m *member, id string, want ...task.State) {
	g.t.Helper()
	got := m.calledBy(g.certificate).get(id)
	checkHistory(g.t, got)
	if want != nil {
		if diff := cmp.Diff(want, states(got.StatusHistory)); diff != "" {
			g.t.Errorf("the history of %s (-want +got):\n%s", id, diff)
		}
	}
	g.compare(m.aic, got)
}

// compare compares what was published of a task with the task: every status once by message id, in order.
func (g *groupLeader) compare(sender string, got *task.Task) {
	g.t.Helper()
	bodies := make(map[string]string)
	var published []string
	for _, m := range g.of(sender, got.ID) {
		if m.messageID == "" || !m.persistent || m.contentType != "application/json" || m.GroupID != g.id ||
			m.SessionID != got.SessionID {
			g.t.Errorf("a message of %s is %+v", got.ID, m)
		}
		if body, again := bodies[m.messageID]; again { // of an outage, if it is the same
			if body != m.raw {
				g.t.Errorf("the message %s was %s, and then %s", m.messageID, body, m.raw)
			}
			continue
		}
		bodies[m.messageID] = m.raw
		status := m.Status.State + " since " + instant(g.t, m.Status.StateChangedAt)
		if n := len(published); n == 0 || published[n-1] != status { // else it has another product
			published = append(published, status)
		}
	}
	var want []string
	for _, s := range got.StatusHistory {
		want = append(want, string(s.State)+" since "+s.ChangedAt.UTC().String())
	}
	if diff := cmp.Diff(want, published); diff != "" {
		g.t.Errorf("%s: the statuses on the exchange (-log +exchange):\n%s", got.ID, diff)
	}
}

// repeated returns the ids of the messages of a sender that came more than once.
func (g *groupLeader) repeated(sender string) (ids []string) {
	seen := make(map[string]bool)
	for _, m := range g.all(sender) {
		if seen[m.messageID] && !slices.Contains(ids, m.messageID) {
			ids = append(ids, m.messageID)
		}
		seen[m.messageID] = true
	}
	return ids
}

// instant returns a time in UTC.
func instant(t testing.TB, text string) string {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	noError(t, err)
	return at.UTC().String()
}
