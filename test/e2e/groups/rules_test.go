// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestGroupRules publishes what a member must not carry out, and proves that it does not.
//
// Promise: receiver of webhooks, broker of a group
func TestGroupRules(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	p := site.Certificates(t)
	_, agent := site.SampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := site.NewGroup(t, b, "ruled", p.LeaderV1)
	g.Join(m)
	counted := func(name string) int64 { return m.Groups()[0].Get(name).Int() }

	const secret = "a secret of the payload"
	var bad int64
	for _, body := range []string{
		"", "{", secret, `[]`, `"text"`, `{"type":"` + secret + `"}`, `{"type":"message","command":7}`, "\xff\xfe",
		`{"type":"message","command":"dance","taskId":"x","senderId":"` + g.AIC() + `"}`,
		strings.Repeat("[", 100_000),
	} {
		g.Publish([]byte(body), amqp.Publishing{})
		bad++
	}
	site.Eventually(t, "the poison is counted", func() bool { return counted("poison") == bad })
	nothingOf(t, m, secret)

	change := func(key string, value any) site.Object {
		c := g.Command("start", "not ours", secret)
		c[key] = value
		return c
	}
	g.Send(change("groupId", "another"))
	g.Send(change("senderId", string(p.Leader.AIC)))
	g.Send(change("senderId", m.AIC))
	g.Send(change("mentions", []string{string(p.Leader.AIC)}))
	g.Say("continue", "no such task", secret)
	// The broker vouches for user ids, so a user whose name is an AIC may only speak for itself.
	site.NoError(t, b.AddUser(string(p.Leader.AIC), "secret"), b.Permit(string(p.Leader.AIC), g.VHost, ".*", ".*", ".*"))
	conn, err := amqp.DialConfig("amqp://"+b.Address(), amqp.Config{Vhost: g.VHost, SASL: []amqp.Authentication{
		&amqp.PlainAuth{Username: string(p.Leader.AIC), Password: "secret"}}})
	site.NoError(t, err)
	defer conn.Close()
	channel, err := conn.Channel()
	site.NoError(t, err)
	forged, err := json.Marshal(g.Command("start", "not ours", secret))
	site.NoError(t, err)
	site.NoError(t, channel.PublishWithContext(t.Context(), g.Exchange, "", false, false,
		amqp.Publishing{Body: forged, UserId: string(p.Leader.AIC)}))

	for i, mentions := range []any{nil, "all", []string{}, []string{"all"}, []string{m.AIC, "another"},
		[]string{strings.ToLower(m.AIC)}} {
		c := g.Command("start", fmt.Sprint("ours-", i), "hello")
		c["mentions"] = mentions
		g.Send(c)
		g.WaitForState(m.AIC, fmt.Sprint("ours-", i), "awaiting-completion")
	}
	again := g.Command("start", "ours-0", "hello")
	g.Send(again)
	g.Send(again)
	g.Manage("get-status", "all")
	g.WaitForMember(m.AIC, 1)
	for _, id := range []string{"not ours", "no such task"} {
		if got := g.Of(m.AIC, id); len(got) > 0 {
			t.Errorf("on the exchange is %s", got[0].Raw)
		}
	}
	g.Check(m, "ours-0", task.Accepted, task.Working, task.AwaitingCompletion)
	if ids := g.Repeated(m.AIC); ids != nil {
		t.Errorf("the messages %q came again", ids)
	}
	if refused := m.CalledBy(p.LeaderV1).Refused(site.CommandCall(task.Get, "not ours")); refused.Code != -32001 {
		t.Errorf("a get of a task that was never started is answered %+v", refused)
	}
	nothingOf(t, m, secret)

	// The trace of a command is that of what is published about it.
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	traced, err := json.Marshal(g.Command("start", "traced", "hello"))
	site.NoError(t, err)
	g.Publish(traced, amqp.Publishing{Headers: amqp.Table{"traceparent": "00-" + trace + "-00f067aa0ba902b7-01"}})
	if got := g.WaitForState(m.AIC, "traced", "awaiting-completion"); !strings.Contains(got.Traceparent, trace) {
		t.Errorf("the traceparent of what is published is %q", got.Traceparent)
	}
}

// TestGroupLimit starts more tasks in a group than the Leader may have: the others are rejected.
func TestGroupLimit(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	m := site.MakeMember(t)
	m.Config = m.Fronting("a2a/legacy http://"+agent, "localhost")
	m.Config.Handle = strings.Replace(m.Config.Handle, "group {",
		"limits {\n\t\t\ttasks_per_leader 1\n\t\t}\n\t\tgroup {", 1)
	m.Start(m.Config)
	g := site.NewGroup(t, site.SharedBroker(t), "limited", site.Certificates(t).LeaderV1)
	g.Join(m)
	g.Say("start", "one", "hello")
	g.WaitForState(m.AIC, "one", "awaiting-completion")
	g.Say("start", "two", "hello")
	if got := g.WaitForState(m.AIC, "two", "rejected"); len(got.Status.DataItems) == 0 {
		t.Errorf("a start above the limit is answered %s", got.Raw)
	}
}

// TestGroupFlowControl has the broker block its publishers.
func TestGroupFlowControl(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	b := ownBroker(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := site.NewGroup(t, b, "blocked", site.Certificates(t).LeaderV1)
	g.Join(m)
	for i := range 20 {
		g.Say("start", fmt.Sprint("task-", i), "slow 1")
	}
	const alarm = "{resource_limit, memory, node()}"
	_, err := b.Eval("rabbit_alarm:set_alarm({" + alarm + ", []})")
	site.NoError(t, err)
	caller := m.CalledBy(g.Certificate)
	for i := range 20 {
		site.Eventually(t, "the tasks are carried out", func() bool {
			got, err := caller.Try(site.CommandCall(task.Get, fmt.Sprint("task-", i)))
			return err == nil && got.Status.State == task.AwaitingCompletion
		})
	}
	_, err = b.Eval("rabbit_alarm:clear_alarm(" + alarm + ")")
	site.NoError(t, err)
	for i := range 20 {
		g.WaitForState(m.AIC, fmt.Sprint("task-", i), "awaiting-completion")
		g.Check(m, fmt.Sprint("task-", i))
	}
	if ids := g.Repeated(m.AIC); ids != nil {
		t.Errorf("the messages %q came again", ids)
	}
}

// TestManyGroups joins many groups of two Leaders over few connections. The connections of one Leader are not those of
// the other.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	const many = 150
	b := site.SharedBroker(t)
	p := site.Certificates(t)
	_, agent := site.SampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	one, other := site.NewGroup(t, b, "one", p.LeaderV1), site.NewGroup(t, b, "other", p.Leader)
	first := one.Join(m)
	other.Join(m)
	for i := range many - 1 {
		invitation := one.Invitation(m.AIC)
		invitation["group"].(site.Object)["groupId"] = fmt.Sprint("many-", i)
		var refused *site.InviteError
		site.Eventually(t, "the broker answers an invitation in time", func() bool {
			_, refused = one.Invite(m.CalledBy(p.LeaderV1), invitation)
			return !refused.Late()
		})
		if refused != nil {
			t.Fatalf("invitation %d is refused: %s", i, refused.Data)
		}
	}
	n := site.ConnectionsOf(t, b, first.ConnectionName)
	if n > 3 {
		t.Errorf("%d groups of two Leaders have %d connections", many+1, n)
	}
	list := m.Groups()
	if len(list) != many+1 {
		t.Errorf("there are %d groups", len(list))
	}
	// The groups share the exchange here, and each drops what is for another.
	one.Say("start", "task", "hello")
	one.WaitForState(m.AIC, "task", "awaiting-completion")
	one.Check(m, "task")
	if closed, err := b.CloseConnections(first.ConnectionName); err != nil || closed != n {
		t.Errorf("%d connections were closed: %v", closed, err)
	}
	site.Eventually(t, "all groups are joined again", func() bool {
		for _, it := range m.Groups() {
			if it.Get("state").String() != "joined" {
				return false
			}
		}
		return true
	})
	site.Eventually(t, fmt.Sprintf("there are few connections again, after a loss of %d", n),
		func() bool { return site.ConnectionsOf(t, b, first.ConnectionName) <= 3 })
	one.Say("complete", "task", "")
	one.WaitForState(m.AIC, "task", "completed")
}

// TestExpiredToken lets the token of an invitation expire: the member keeps its queue and waits for an invitation.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	_, agent := site.SampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := site.NewGroup(t, b, "expired", site.Certificates(t).LeaderV1)
	token := func(lifetime time.Duration) string {
		return rabbittest.Token(map[string]any{"sub": "a member", "exp": time.Now().Add(lifetime).Unix(),
			"scope": []string{"rabbitmq.configure:*/*", "rabbitmq.write:*/*", "rabbitmq.read:*/*"}})
	}
	g.Token = token(20 * time.Second) // in which the member joins, and executes a task
	joined := g.Join(m)
	g.Say("start", "one", "hello")
	g.WaitForState(m.AIC, "one", "awaiting-completion")
	site.Eventually(t, "the member waits for an invitation", func() bool {
		_, err := b.CloseConnections(joined.ConnectionName)
		site.NoError(t, err)
		return m.Groups()[0].Get("state").String() == "waiting"
	})
	g.Say("complete", "one", "")
	g.Token = token(time.Hour)
	g.Join(m)
	g.WaitForState(m.AIC, "one", "completed")
	g.Check(m, "one")
	nothingOf(t, m, g.Token)
}
