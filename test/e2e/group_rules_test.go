// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestGroupRules publishes what a member must not carry out, and proves that it does not.
//
// Promise: receiver of webhooks, broker of a group
func TestGroupRules(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	p := certificates(t)
	_, agent := sampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := newGroup(t, b, "ruled", p.LeaderV1)
	g.join(m)
	counted := func(name string) int64 { return m.groups()[0].Get(name).Int() }

	const secret = "a secret of the payload"
	var bad int64
	for _, body := range []string{
		"", "{", secret, `[]`, `"text"`, `{"type":"` + secret + `"}`, `{"type":"message","command":7}`, "\xff\xfe",
		`{"type":"message","command":"dance","taskId":"x","senderId":"` + g.aic() + `"}`,
		strings.Repeat("[", 100_000),
	} {
		g.publish([]byte(body), amqp.Publishing{})
		bad++
	}
	eventually(t, "the poison is counted", func() bool { return counted("poison") == bad })
	m.nothingOf(t, secret)

	change := func(key string, value any) object {
		c := g.command("start", "not ours", secret)
		c[key] = value
		return c
	}
	g.send(change("groupId", "another"))
	g.send(change("senderId", string(p.Leader.AIC)))
	g.send(change("senderId", m.aic))
	g.send(change("mentions", []string{string(p.Leader.AIC)}))
	g.say("continue", "no such task", secret)
	// The broker vouches for user ids, so a user whose name is an AIC may only speak for itself.
	noError(t, b.AddUser(string(p.Leader.AIC), "secret"), b.Permit(string(p.Leader.AIC), g.vhost, ".*", ".*", ".*"))
	conn, err := amqp.DialConfig("amqp://"+b.Address(), amqp.Config{Vhost: g.vhost, SASL: []amqp.Authentication{
		&amqp.PlainAuth{Username: string(p.Leader.AIC), Password: "secret"}}})
	noError(t, err)
	defer conn.Close()
	channel, err := conn.Channel()
	noError(t, err)
	forged, err := json.Marshal(g.command("start", "not ours", secret))
	noError(t, err)
	noError(t, channel.PublishWithContext(t.Context(), g.exchange, "", false, false,
		amqp.Publishing{Body: forged, UserId: string(p.Leader.AIC)}))

	for i, mentions := range []any{nil, "all", []string{}, []string{"all"}, []string{m.aic, "another"},
		[]string{strings.ToLower(m.aic)}} {
		c := g.command("start", fmt.Sprint("ours-", i), "hello")
		c["mentions"] = mentions
		g.send(c)
		g.waitForState(m.aic, fmt.Sprint("ours-", i), "awaiting-completion")
	}
	again := g.command("start", "ours-0", "hello")
	g.send(again)
	g.send(again)
	g.manage("get-status", "all")
	g.waitForMember(m.aic, 1)
	for _, id := range []string{"not ours", "no such task"} {
		if got := g.of(m.aic, id); len(got) > 0 {
			t.Errorf("on the exchange is %s", got[0].raw)
		}
	}
	g.check(m, "ours-0", task.Accepted, task.Working, task.AwaitingCompletion)
	if ids := g.repeated(m.aic); ids != nil {
		t.Errorf("the messages %q came again", ids)
	}
	if refused := m.calledBy(p.LeaderV1).refused(commandCall(task.Get, "not ours")); refused.Code != -32001 {
		t.Errorf("a get of a task that was never started is answered %+v", refused)
	}
	m.nothingOf(t, secret)

	// The trace of a command is that of what is published about it.
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	traced, err := json.Marshal(g.command("start", "traced", "hello"))
	noError(t, err)
	g.publish(traced, amqp.Publishing{Headers: amqp.Table{"traceparent": "00-" + trace + "-00f067aa0ba902b7-01"}})
	if got := g.waitForState(m.aic, "traced", "awaiting-completion"); !strings.Contains(got.traceparent, trace) {
		t.Errorf("the traceparent of what is published is %q", got.traceparent)
	}
}

// TestGroupLimit starts more tasks in a group than the Leader may have: the others are rejected.
func TestGroupLimit(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	m := makeMember(t)
	m.config = m.fronting("a2a/legacy http://"+agent, "localhost")
	m.config.handle = strings.Replace(m.config.handle, "group {",
		"limits {\n\t\t\ttasks_per_leader 1\n\t\t}\n\t\tgroup {", 1)
	m.start(m.config)
	g := newGroup(t, sharedBroker(t), "limited", certificates(t).LeaderV1)
	g.join(m)
	g.say("start", "one", "hello")
	g.waitForState(m.aic, "one", "awaiting-completion")
	g.say("start", "two", "hello")
	if got := g.waitForState(m.aic, "two", "rejected"); len(got.Status.DataItems) == 0 {
		t.Errorf("a start above the limit is answered %s", got.raw)
	}
}

// TestGroupFlowControl has the broker block its publishers.
func TestGroupFlowControl(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	b := ownBroker(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := newGroup(t, b, "blocked", certificates(t).LeaderV1)
	g.join(m)
	for i := range 20 {
		g.say("start", fmt.Sprint("task-", i), "slow 1")
	}
	const alarm = "{resource_limit, memory, node()}"
	_, err := b.Eval("rabbit_alarm:set_alarm({" + alarm + ", []})")
	noError(t, err)
	caller := m.calledBy(g.certificate)
	for i := range 20 {
		eventually(t, "the tasks are carried out", func() bool {
			got, err := caller.try(commandCall(task.Get, fmt.Sprint("task-", i)))
			return err == nil && got.Status.State == task.AwaitingCompletion
		})
	}
	_, err = b.Eval("rabbit_alarm:clear_alarm(" + alarm + ")")
	noError(t, err)
	for i := range 20 {
		g.waitForState(m.aic, fmt.Sprint("task-", i), "awaiting-completion")
		g.check(m, fmt.Sprint("task-", i))
	}
	if ids := g.repeated(m.aic); ids != nil {
		t.Errorf("the messages %q came again", ids)
	}
}

// TestManyGroups joins many groups of two Leaders over few connections. The connections of one Leader are not those of
// the other.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	const many = 150
	b := sharedBroker(t)
	p := certificates(t)
	_, agent := sampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	one, other := newGroup(t, b, "one", p.LeaderV1), newGroup(t, b, "other", p.Leader)
	first := one.join(m)
	other.join(m)
	for i := range many - 1 {
		invitation := one.invitation(m.aic)
		invitation["group"].(object)["groupId"] = fmt.Sprint("many-", i)
		if _, refused := one.invite(m.calledBy(p.LeaderV1), invitation); refused != nil {
			t.Fatalf("invitation %d is refused: %s", i, refused.Data)
		}
	}
	n := connectionsOf(t, b, first.ConnectionName)
	if n > 3 {
		t.Errorf("%d groups of two Leaders have %d connections", many+1, n)
	}
	list := m.groups()
	if len(list) != many+1 {
		t.Errorf("there are %d groups", len(list))
	}
	// The groups share the exchange here, and each drops what is for another.
	one.say("start", "task", "hello")
	one.waitForState(m.aic, "task", "awaiting-completion")
	one.check(m, "task")
	if closed, err := b.CloseConnections(first.ConnectionName); err != nil || closed != n {
		t.Errorf("%d connections were closed: %v", closed, err)
	}
	eventually(t, "all groups are joined again", func() bool {
		for _, it := range m.groups() {
			if it.Get("state").String() != "joined" {
				return false
			}
		}
		return true
	})
	if again := connectionsOf(t, b, first.ConnectionName); again > 3 {
		t.Errorf("after a loss of %d connections there are %d", n, again)
	}
	one.say("complete", "task", "")
	one.waitForState(m.aic, "task", "completed")
}

// TestExpiredToken lets the token of an invitation expire: the member keeps its queue and waits for an invitation.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	_, agent := sampleAgent(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := newGroup(t, b, "expired", certificates(t).LeaderV1)
	token := func(lifetime time.Duration) string {
		return rabbittest.Token(map[string]any{"sub": "a member", "exp": time.Now().Add(lifetime).Unix(),
			"scope": []string{"rabbitmq.configure:*/*", "rabbitmq.write:*/*", "rabbitmq.read:*/*"}})
	}
	g.token = token(20 * time.Second) // in which the member joins, and executes a task
	joined := g.join(m)
	g.say("start", "one", "hello")
	g.waitForState(m.aic, "one", "awaiting-completion")
	eventually(t, "the member waits for an invitation", func() bool {
		_, err := b.CloseConnections(joined.ConnectionName)
		noError(t, err)
		return m.groups()[0].Get("state").String() == "waiting"
	})
	g.say("complete", "one", "")
	g.token = token(time.Hour)
	g.join(m)
	g.waitForState(m.aic, "one", "completed")
	g.check(m, "one")
	m.nothingOf(t, g.token)
}
