// SPDX-License-Identifier: Apache-2.0

package e2e

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

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
)

// rabbit is the broker that tests share if they do not stop it.
var rabbit struct {
	once   sync.Once
	broker *rabbittest.Broker
	err    error
}

func sharedBroker(t testing.TB) *rabbittest.Broker {
	t.Helper()
	rabbit.once.Do(func() { rabbit.broker, rabbit.err = newBroker(t) })
	if rabbit.err != nil {
		t.Fatal(rabbit.err)
	}
	return rabbit.broker
}

// ownBroker starts a broker that the test may stop.
func ownBroker(t testing.TB) *rabbittest.Broker {
	t.Helper()
	b, err := newBroker(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func newBroker(t testing.TB) (*rabbittest.Broker, error) {
	p := certificates(t)
	return rabbittest.Start(rabbittest.Config{
		CA: p.CA.Cert, Cert: p.Server.Cert, Key: p.Server.Key,
	})
}

// noError fails the test if one of the errors is one.
func noError(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// groupLeader is the Leader of one group: a client of the broker that shares no code with the gateway.
type groupLeader struct {
	t               testing.TB
	broker          *rabbittest.Broker
	vhost, exchange string
	id              string // of the group
	certificate     devpki.File
	token           string // that partners get, in the form user:password
	v2              bool   // it speaks AIP v02
	host            string // of the broker, in invitations
	port            int
	messages        atomic.Int64

	ctx  context.Context
	done sync.WaitGroup

	mu      sync.Mutex
	channel *amqp.Channel // to publish on; confirms are on
	heard   []heardMessage
	seen    map[string]bool // the Leader's own queue may be delivered again after an outage
}

// heardMessage is a message that another than the Leader has published on the exchange.
type heardMessage struct {
	messageID, userID, contentType string
	persistent                     bool
	traceparent                    string
	raw                            string

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

// task returns the id of the task that the message is about, or nothing.
func (m *heardMessage) task() string {
	switch m.Type {
	case "task":
		return m.ID
	case "task-result":
		return m.TaskID
	}
	return ""
}

// member returns what a message of a member about itself says.
func (m *heardMessage) member() (status string, ok bool) {
	switch {
	case m.Type == "group-mgmt-message" && m.GroupMemberStatus != nil:
		return fmt.Sprintf("connected %t, muted %t", m.GroupMemberStatus.Connected, m.GroupMemberStatus.Muted), true
	case m.Type == "group-mgmt-result":
		return fmt.Sprintf("connected %t, muted %t", m.Status.Connected, m.Status.Muted), true
	}
	return "", false
}

// says returns the texts of the products.
func (m *heardMessage) says() string {
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

// newGroup makes a virtual host with a fanout exchange, and its Leader, who hears everything.
func newGroup(t testing.TB, b *rabbittest.Broker, id string, leader devpki.File) *groupLeader {
	t.Helper()
	of := fmt.Sprint(t.Name(), " ", id, " ", groups.Add(1))
	g := &groupLeader{
		t: t, broker: b, vhost: "/vhost of " + of, exchange: "group-exchange-of-" + id, id: id,
		certificate: leader, token: "partners of " + of + ":pass:word", host: "localhost", port: b.Port,
		v2: leader.AIC.Form() == identity.FormV2, seen: make(map[string]bool),
	}
	user, _, _ := strings.Cut(g.token, ":")
	noError(t, b.AddVhost(g.vhost), b.AddUser(g.vhost, "of the Leader"), b.Permit(g.vhost, g.vhost, ".*", ".*", ".*"),
		b.AddUser(user, "pass:word"), g.permit(user))
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
				t.Logf("on the exchange was %s", m.raw)
			}
		}
	})
	return g
}

// permit lets a user do what a member must do, and no more.
func (g *groupLeader) permit(user string) error {
	return g.broker.Permit(user, g.vhost, "^group_.*", "^(group_.*|"+g.exchange+")$", "^(group_.*|"+g.exchange+")$")
}

func (g *groupLeader) aic() string { return string(g.certificate.AIC) }

// connect connects the Leader to the broker, now, and again whenever it loses the connection.
func (g *groupLeader) connect() {
	g.t.Helper()
	deliveries, err := g.open()
	noError(g.t, err)
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

func (g *groupLeader) open() (deliveries <-chan amqp.Delivery, err error) {
	conn, err := amqp.DialConfig("amqp://"+g.broker.Address(), amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: g.vhost, Password: "of the Leader"}}, Vhost: g.vhost,
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
		err = channel.ExchangeDeclare(g.exchange, "fanout", true, false, false, false, nil)
	}
	if err == nil {
		_, err = channel.QueueDeclare("queue of the Leader", true, false, false, false, nil)
	}
	if err == nil {
		err = channel.QueueBind("queue of the Leader", "", g.exchange, false, nil)
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
func (g *groupLeader) hear(d amqp.Delivery) {
	m := heardMessage{
		messageID: d.MessageId, userID: d.UserId, contentType: d.ContentType, raw: string(d.Body),
		persistent: d.DeliveryMode == amqp.Persistent,
	}
	m.traceparent, _ = d.Headers["traceparent"].(string)
	if d.AppId == "the Leader" {
		return
	}
	if err := json.Unmarshal(d.Body, &m); err != nil {
		g.t.Errorf("%s is on the exchange: %v", d.Body, err)
	}
	if m.SenderID == g.aic() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = append(g.heard, m)
}

// all returns what was published so far, by one sender, or all for "".
func (g *groupLeader) all(sender string) []heardMessage {
	g.mu.Lock()
	defer g.mu.Unlock()
	heard := slices.Clone(g.heard)
	return slices.DeleteFunc(heard, func(m heardMessage) bool { return sender != "" && m.SenderID != sender })
}

// of returns what a sender has published about a task.
func (g *groupLeader) of(sender, task string) []heardMessage {
	return slices.DeleteFunc(g.all(sender), func(m heardMessage) bool { return m.task() != task })
}

// waitFor waits until a sender has published something, and returns it.
func (g *groupLeader) waitFor(sender, what string, ok func(heardMessage) bool) (found heardMessage) {
	g.t.Helper()
	eventually(g.t, sender+" publishes "+what, func() bool {
		all := g.all(sender)
		i := slices.IndexFunc(all, ok)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// waitForState waits until a sender has published that a task is in a state.
func (g *groupLeader) waitForState(sender, task, state string) heardMessage {
	g.t.Helper()
	return g.waitFor(sender, task+" in "+state, func(m heardMessage) bool {
		return m.task() == task && m.Status.State == state
	})
}

// waitForMember waits until a sender has published as many statuses of itself, and returns the last of them.
func (g *groupLeader) waitForMember(sender string, n int) (status string) {
	g.t.Helper()
	eventually(g.t, fmt.Sprintf("%s publishes %d statuses of itself", sender, n), func() bool {
		count := 0
		for _, m := range g.all(sender) {
			if said, ok := m.member(); ok {
				status = said
				count++
			}
		}
		return count >= n
	})
	return status
}

// publish publishes a message, and waits until the broker has it. It tries until then, also while the broker starts
// again.
func (g *groupLeader) publish(body []byte, properties amqp.Publishing) {
	g.t.Helper()
	properties.Body, properties.ContentType, properties.DeliveryMode = body, "application/json", amqp.Persistent
	properties.AppId = "the Leader"
	eventuallyWithin(g.t, rabbittest.StartLimit+patience, "the broker takes a message", func() bool {
		g.mu.Lock()
		channel := g.channel
		g.mu.Unlock()
		ctx, cancel := context.WithTimeout(g.ctx, patience)
		defer cancel()
		confirmation, err := channel.PublishWithDeferredConfirmWithContext(ctx, g.exchange, "", false, false, properties)
		if err != nil {
			return false
		}
		ok, err := confirmation.WaitContext(ctx)
		return ok && err == nil
	})
}

// object is a JSON object.
type object map[string]any

// message returns the members that all messages of the Leader have.
func (g *groupLeader) message(more object) object {
	m := object{
		"id": fmt.Sprintf("msg-%s-%d", g.id, g.messages.Add(1)), "sentAt": time.Now().UTC().Format(time.RFC3339Nano),
		"senderRole": "leader", "senderId": g.aic(),
	}
	maps.Copy(m, more)
	return m
}

// command returns a command for a task, to be sent by send.
func (g *groupLeader) command(command, task, text string, mentions ...string) object {
	m := g.message(object{"type": "message", "command": command, "taskId": task, "groupId": g.id,
		"sessionId": "session-of-" + g.id, "dataItems": []object{}})
	if g.v2 {
		m["type"] = "task-command"
	}
	if text != "" {
		m["dataItems"] = []object{{"type": "text", "text": text}}
	}
	if mentions != nil {
		m["mentions"] = mentions
	}
	return m
}

// send publishes a message as JSON.
func (g *groupLeader) send(m object) {
	g.t.Helper()
	body, err := json.Marshal(m)
	noError(g.t, err)
	g.publish(body, amqp.Publishing{})
}

// say gives a command to the members that are mentioned, or to all.
func (g *groupLeader) say(command, task, text string, mentions ...string) {
	g.t.Helper()
	g.send(g.command(command, task, text, mentions...))
}

// manage gives a command about membership.
func (g *groupLeader) manage(command string, mentions any) {
	g.t.Helper()
	if g.v2 {
		g.send(g.message(object{"type": "group-mgmt-command", "command": command, "groupId": g.id,
			"mentions": mentions, "sessionId": "session-of-" + g.id}))
		return
	}
	g.send(g.message(object{"type": "group-mgmt-message", "groupMgmtCommand": command, "mentions": mentions}))
}
