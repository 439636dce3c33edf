// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	amqp "github.com/rabbitmq/amqp091-go"
)

// GroupLeader is the Leader of one group: a client of the broker that shares no code with the gateway.
type GroupLeader struct {
	t               testing.TB
	broker          *rabbittest.Broker
	VHost, Exchange string      // on the broker, with the group's exchange
	ID              string      // of the group
	Certificate     devpki.File // of the Leader
	Token           string      // that partners get, in the form user:password
	V2              bool        // it speaks AIP v02
	Host            string      // of the broker, in invitations
	Port            int         // of the broker, in invitations
	messages        atomic.Int64

	ctx  context.Context
	done sync.WaitGroup

	mu      sync.Mutex
	channel *amqp.Channel // to publish on; confirms are on
	heard   []HeardMessage
	seen    map[string]bool // the Leader's own queue may be delivered again after an outage
}

// HeardMessage is a message that another than the Leader has published on the exchange.
type HeardMessage struct {
	MessageID, UserID, ContentType string `json:"-"` // the broker checks or passes on these
	persistent                     bool
	Traceparent                    string `json:"-"` // of the message's headers
	Raw                            string `json:"-"` // the message as published

	Type      string
	ID        string
	TaskID    string
	SenderID  string
	GroupID   string
	SessionID string
	Status    struct {
		State, StateChangedAt string
		DataItems             []struct{ Text string }
		Connected, Muted      bool // of AIP v02's group-mgmt-result
	}
	Products []struct {
		ID        string
		DataItems []struct{ Text string }
	}
	GroupMemberStatus *struct{ Connected, Muted bool }
}

// Task returns the id of the task that the message is about, or nothing.
func (m *HeardMessage) Task() string {
	switch m.Type {
	case "task":
		return m.ID
	case "task-result":
		return m.TaskID
	}
	return ""
}

// Member returns what a message of a member about itself says.
func (m *HeardMessage) Member() (status string, ok bool) {
	switch {
	case m.Type == "group-mgmt-message" && m.GroupMemberStatus != nil:
		return fmt.Sprintf("connected %t, muted %t", m.GroupMemberStatus.Connected, m.GroupMemberStatus.Muted), true
	case m.Type == "group-mgmt-result":
		return fmt.Sprintf("connected %t, muted %t", m.Status.Connected, m.Status.Muted), true
	}
	return "", false
}

// Says returns the texts of the products.
func (m *HeardMessage) Says() string {
	var texts []string
	for _, p := range m.Products {
		for _, item := range p.DataItems {
			texts = append(texts, item.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// groups counts the groups, so that a test which is repeated finds nothing of the time before.
var groups atomic.Int64

// NewGroup makes a virtual host with a fanout exchange, and its Leader, who hears everything.
func NewGroup(t testing.TB, b *rabbittest.Broker, id string, leader devpki.File) *GroupLeader {
	t.Helper()
	of := fmt.Sprint(t.Name(), " ", id, " ", groups.Add(1))
	g := &GroupLeader{
		t: t, broker: b, VHost: "/vhost of " + of, Exchange: "group-exchange-of-" + id, ID: id,
		Certificate: leader, Token: "partners of " + of + ":pass:word", Host: "localhost", Port: b.Port,
		V2: leader.AIC.Form() == identity.FormV2, seen: make(map[string]bool),
	}
	user, _, _ := strings.Cut(g.Token, ":")
	NoError(t, b.AddVhost(g.VHost), b.AddUser(g.VHost, "of the Leader"), b.Permit(g.VHost, g.VHost, ".*", ".*", ".*"),
		b.AddUser(user, "pass:word"), g.Permit(user))
	ctx, stop := context.WithCancel(context.Background())
	g.ctx = ctx
	g.connect()
	t.Cleanup(func() {
		stop()
		g.mu.Lock()
		if g.channel != nil {
			g.channel.Close()
		}
		g.mu.Unlock()
		g.done.Wait()
		if t.Failed() {
			for _, m := range g.heard[max(0, len(g.heard)-20):] {
				t.Logf("on the exchange was %s", m.Raw)
			}
		}
	})
	return g
}

// Permit lets a user do what a member must do, and no more.
func (g *GroupLeader) Permit(user string) error {
	return g.broker.Permit(user, g.VHost, "^group_.*", "^(group_.*|"+g.Exchange+")$", "^(group_.*|"+g.Exchange+")$")
}

// AIC returns the Leader's AIC.
func (g *GroupLeader) AIC() string { return string(g.Certificate.AIC) }

// connect connects the Leader to the broker, now, and again whenever it loses the connection.
func (g *GroupLeader) connect() {
	g.t.Helper()
	deliveries, err := g.open()
	NoError(g.t, err)
	g.done.Go(func() {
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for {
			for d := range deliveries {
				g.hear(d)
				d.Ack(false)
			}
			for deliveries = nil; deliveries == nil; {
				select {
				case <-g.ctx.Done():
					return
				case <-again.C:
					deliveries, _ = g.open()
				}
			}
		}
	})
}

func (g *GroupLeader) open() (deliveries <-chan amqp.Delivery, err error) {
	conn, err := amqp.DialConfig("amqp://"+g.broker.Address(), amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: g.VHost, Password: "of the Leader"}}, Vhost: g.VHost,
		Properties: amqp.Table{"connection_name": "the Leader"},
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(g.ctx, func() { conn.Close() })
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err == nil {
		err = channel.ExchangeDeclare(g.Exchange, "fanout", true, false, false, false, nil)
	}
	if err == nil {
		_, err = channel.QueueDeclare("queue of the Leader", true, false, false, false, nil)
	}
	if err == nil {
		err = channel.QueueBind("queue of the Leader", "", g.Exchange, false, nil)
	}
	if err == nil {
		deliveries, err = channel.Consume("queue of the Leader", "", false, false, false, false, nil)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	g.mu.Lock()
	g.channel = channel
	g.mu.Unlock()
	return deliveries, nil
}

// hear keeps what others than the Leader have published.
func (g *GroupLeader) hear(d amqp.Delivery) {
	m := HeardMessage{
		MessageID: d.MessageId, UserID: d.UserId, ContentType: d.ContentType, Raw: string(d.Body),
		persistent: d.DeliveryMode == amqp.Persistent,
	}
	m.Traceparent, _ = d.Headers["traceparent"].(string)
	if d.AppId == "the Leader" {
		return
	}
	if err := json.Unmarshal(d.Body, &m); err != nil {
		g.t.Errorf("%s is on the exchange: %v", d.Body, err)
	}
	if m.SenderID == g.AIC() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = append(g.heard, m)
}

// All returns what was published so far, by one sender, or all for "".
func (g *GroupLeader) All(sender string) []HeardMessage {
	g.mu.Lock()
	defer g.mu.Unlock()
	heard := slices.Clone(g.heard)
	return slices.DeleteFunc(heard, func(m HeardMessage) bool { return sender != "" && m.SenderID != sender })
}

// Of returns what a sender has published about a task.
func (g *GroupLeader) Of(sender, task string) []HeardMessage {
	return slices.DeleteFunc(g.All(sender), func(m HeardMessage) bool { return m.Task() != task })
}

// WaitFor waits until a sender has published something, and returns it.
func (g *GroupLeader) WaitFor(sender, what string, ok func(HeardMessage) bool) (found HeardMessage) {
	g.t.Helper()
	Eventually(g.t, sender+" publishes "+what, func() bool {
		all := g.All(sender)
		i := slices.IndexFunc(all, ok)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// WaitForState waits until a sender has published that a task is in a state.
func (g *GroupLeader) WaitForState(sender, task, state string) HeardMessage {
	g.t.Helper()
	return g.WaitFor(sender, task+" in "+state, func(m HeardMessage) bool {
		return m.Task() == task && m.Status.State == state
	})
}

// WaitForMember waits until a sender has published as many statuses of itself, and returns the last of them.
func (g *GroupLeader) WaitForMember(sender string, n int) (status string) {
	g.t.Helper()
	Eventually(g.t, fmt.Sprintf("%s publishes %d statuses of itself", sender, n), func() bool {
		count := 0
		for _, m := range g.All(sender) {
			if said, ok := m.Member(); ok {
				status = said
				count++
			}
		}
		return count >= n
	})
	return status
}

// Publish publishes a message, and waits until the broker has it. It tries until then, also while the broker starts
// again.
func (g *GroupLeader) Publish(body []byte, properties amqp.Publishing) {
	g.t.Helper()
	properties.Body, properties.ContentType, properties.DeliveryMode = body, "application/json", amqp.Persistent
	properties.AppId = "the Leader"
	eventuallyWithin(g.t, rabbittest.StartLimit+Patience, "the broker takes a message", func() bool {
		g.mu.Lock()
		channel := g.channel
		g.mu.Unlock()
		ctx, cancel := context.WithTimeout(g.ctx, Patience)
		defer cancel()
		confirmation, err := channel.PublishWithDeferredConfirmWithContext(ctx, g.Exchange, "", false, false, properties)
		if err != nil {
			return false
		}
		ok, err := confirmation.WaitContext(ctx)
		return ok && err == nil
	})
}

// Object is a JSON object.
type Object map[string]any

// message returns the members that all messages of the Leader have.
func (g *GroupLeader) message(more Object) Object {
	m := Object{
		"id": fmt.Sprintf("msg-%s-%d", g.ID, g.messages.Add(1)), "sentAt": time.Now().UTC().Format(time.RFC3339Nano),
		"senderRole": "leader", "senderId": g.AIC(),
	}
	maps.Copy(m, more)
	return m
}

// Command returns a command for a task, to be sent by Send.
func (g *GroupLeader) Command(command, task, text string, mentions ...string) Object {
	m := g.message(Object{"type": "message", "command": command, "taskId": task, "groupId": g.ID,
		"sessionId": "session-of-" + g.ID, "dataItems": []Object{}})
	if g.V2 {
		m["type"] = "task-command"
	}
	if text != "" {
		m["dataItems"] = []Object{{"type": "text", "text": text}}
	}
	if mentions != nil {
		m["mentions"] = mentions
	}
	return m
}

// Send publishes a message as JSON.
func (g *GroupLeader) Send(m Object) {
	g.t.Helper()
	body, err := json.Marshal(m)
	NoError(g.t, err)
	g.Publish(body, amqp.Publishing{})
}

// Say gives a command to the members that are mentioned, or to all.
func (g *GroupLeader) Say(command, task, text string, mentions ...string) {
	g.t.Helper()
	g.Send(g.Command(command, task, text, mentions...))
}

// Manage gives a command about membership.
func (g *GroupLeader) Manage(command string, mentions any) {
	g.t.Helper()
	if g.V2 {
		g.Send(g.message(Object{"type": "group-mgmt-command", "command": command, "groupId": g.ID,
			"mentions": mentions, "sessionId": "session-of-" + g.ID}))
		return
	}
	g.Send(g.message(Object{"type": "group-mgmt-message", "groupMgmtCommand": command, "mentions": mentions}))
}
