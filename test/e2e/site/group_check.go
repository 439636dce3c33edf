// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// TokenKey seals the tokens of invitations in the stores of tests.
var TokenKey = strings.Repeat("0123456789abcdef", 4)

// Endures leads many tasks through their life while the test does harm, and compares all that was published with the
// answers to get. harm is called twice, each time when a third of the commands of that part are sent.
func (g *GroupLeader) Endures(m *Member, tasks int, harm func(part string)) {
	g.t.Helper()
	id := func(i int) string { return fmt.Sprintf("task-%d", i) }
	part := func(command, text, state string) {
		g.t.Helper()
		var sent sync.WaitGroup
		third := make(chan struct{})
		sent.Go(func() {
			for i := range tasks {
				if i == tasks/3 {
					close(third)
				}
				g.Say(command, id(i), text)
			}
		})
		<-third
		harm(command)
		sent.Wait()
		for i := range tasks {
			g.WaitForState(m.AIC, id(i), state)
		}
	}
	part("start", "hello", "awaiting-completion")
	part("complete", "", "completed")
	caller := m.CalledBy(g.Certificate)
	for i := range tasks {
		got := caller.Get(id(i))
		CheckHistory(g.t, got)
		if n := len(got.MessageHistory); n != 2 {
			g.t.Errorf("%s has the commands %v", got.ID, Commands(got.MessageHistory))
		}
		g.compare(m.AIC, got)
	}
	Eventually(g.t, "everything is confirmed", func() bool {
		groups := m.Groups()
		return len(groups) == 1 && groups[0].Get("unconfirmed").Int() == 0 && groups[0].Get("lag").Int() == 0
	})
	g.t.Logf("%d messages for %d tasks, %d of them came again", len(g.All(m.AIC)), tasks, len(g.Repeated(m.AIC)))
}

// JoinThrough invites a member to come to the broker by another address.
func JoinThrough(g *GroupLeader, m *Member, address string) {
	g.t.Helper()
	host, port, _ := strings.Cut(address, ":")
	g.Host = host
	_, err := fmt.Sscan(port, &g.Port)
	NoError(g.t, err)
	g.Join(m)
}

// Groups returns the groups that the admin API of a member lists.
func (m *Member) Groups() []gjson.Result {
	m.T.Helper()
	status, body := m.Asked(http.MethodGet, "/aip/groups", "")
	if status != http.StatusOK {
		m.T.Fatalf("the admin API answers %d %s", status, body)
	}
	return gjson.GetBytes(body, "groups").Array()
}

// WaitForRemoval waits until a member knows no group any more, and the broker no queue of it.
func (g *GroupLeader) WaitForRemoval(m *Member) {
	g.t.Helper()
	Eventually(g.t, m.AIC+" has left the group", func() bool { return len(m.Groups()) == 0 })
	g.NoQueue(m)
}

// NoQueue demands that the broker has no queue of a member.
func (g *GroupLeader) NoQueue(m *Member) {
	g.t.Helper()
	queues, err := g.broker.Queues(g.VHost)
	NoError(g.t, err)
	if slices.ContainsFunc(queues, func(q string) bool { return strings.Contains(q, m.AIC) }) {
		g.t.Errorf("there are the queues %q", queues)
	}
}

// DeleteQueue deletes a member's queue, as a Leader does who removes it by force.
func (g *GroupLeader) DeleteQueue(name string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.channel.QueueDelete(name, false, false, false)
	NoError(g.t, err)
}

// Check compares what was published of a task with the answer to a get: every status once, in order, and legal.
func (g *GroupLeader) Check(m *Member, id string, want ...task.State) {
	g.t.Helper()
	got := m.CalledBy(g.Certificate).Get(id)
	CheckHistory(g.t, got)
	if want != nil {
		if diff := cmp.Diff(want, States(got.StatusHistory)); diff != "" {
			g.t.Errorf("the history of %s (-want +got):\n%s", id, diff)
		}
	}
	g.compare(m.AIC, got)
}

// compare compares what was published of a task with the task: every status once by message id, in order.
func (g *GroupLeader) compare(sender string, got *task.Task) {
	g.t.Helper()
	bodies := make(map[string]string)
	var published []string
	for _, m := range g.Of(sender, got.ID) {
		if m.MessageID == "" || !m.persistent || m.ContentType != "application/json" || m.GroupID != g.ID ||
			m.SessionID != got.SessionID {
			g.t.Errorf("a message of %s is %+v", got.ID, m)
		}
		if body, again := bodies[m.MessageID]; again { // of an outage, if it is the same
			if body != m.Raw {
				g.t.Errorf("the message %s was %s, and then %s", m.MessageID, body, m.Raw)
			}
			continue
		}
		bodies[m.MessageID] = m.Raw
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

// Repeated returns the ids of the messages of a sender that came more than once.
func (g *GroupLeader) Repeated(sender string) (ids []string) {
	seen := make(map[string]bool)
	for _, m := range g.All(sender) {
		if seen[m.MessageID] && !slices.Contains(ids, m.MessageID) {
			ids = append(ids, m.MessageID)
		}
		seen[m.MessageID] = true
	}
	return ids
}

// instant returns a time in UTC.
func instant(t testing.TB, text string) string {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	NoError(t, err)
	return at.UTC().String()
}
