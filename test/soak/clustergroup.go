// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/soak/history"
)

const (
	clusterGroups = 8 // of one Leader each, so that their shards are owned by different gateways
	groupShare    = 8 // one of so many tasks is one of a group
	// groupTokenKey has the tokens of invitations stored, so that another gateway goes on with a membership.
	groupTokenKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// clusterGroup is a group of a Leader, to which the Partner of the cluster is invited, and what it has published there.
type clusterGroup struct {
	*cluster
	id, aic  string // of the group, and of its Leader
	at       []*leader.Client
	exchange string
	conn     *amqp.Connection
	channel  *amqp.Channel
	hearing  sync.WaitGroup

	mu       sync.Mutex
	bodies   map[string][sha256.Size]byte // by the message id
	heard    map[string][]string          // by the task: the states, each once
	repeated int                          // messages that came again
}

// makeGroups starts a broker, and has Leaders invite the Partner.
func (c *cluster) makeGroups(ctx context.Context) (err error) {
	if c.broker, err = newBroker(); err != nil {
		return err
	}
	for i := range min(clusterGroups, len(c.clients)) {
		g := &clusterGroup{cluster: c, id: fmt.Sprint("group-", i), aic: c.clients[i][0].Sender, at: c.clients[i],
			bodies: make(map[string][sha256.Size]byte), heard: make(map[string][]string)}
		g.exchange = "group_" + g.aic + "_" + g.id
		c.groups = append(c.groups, g)
		if err := g.begin(ctx); err != nil {
			return fmt.Errorf("the group %s: %w", g.id, err)
		}
	}
	return nil
}

// begin makes the exchange and the Leader's own queue, and invites the Partner.
func (g *clusterGroup) begin(ctx context.Context) (err error) {
	if g.conn, err = g.broker.dial(); err != nil {
		return err
	}
	if g.channel, err = g.conn.Channel(); err != nil {
		return err
	}
	queue, exclusive := "leader of "+g.id, true
	err = errors.Join(g.channel.Confirm(false),
		g.channel.ExchangeDeclare(g.exchange, "fanout", true, false, false, false, nil))
	if err == nil {
		_, err = g.channel.QueueDeclare(queue, false, false, exclusive, false, nil)
	}
	if err == nil {
		err = g.channel.QueueBind(queue, "", g.exchange, false, nil)
	}
	if err != nil {
		return err
	}
	deliveries, err := g.channel.Consume(queue, "", true, exclusive, false, false, nil)
	if err != nil {
		return err
	}
	g.hearing.Go(func() {
		for d := range deliveries {
			g.hear(&d)
		}
	})
	_, _, err = g.at[0].Request(ctx, "group", map[string]any{
		"protocol": "rabbitmq:4.0",
		"group": map[string]any{"groupId": g.id, "leader": map[string]any{"aic": g.aic, "skills": []string{"x"}},
			"partners": []any{map[string]any{"aic": g.AIC, "skills": []string{"x"}}}},
		"server": map[string]any{"host": "localhost", "port": g.broker.Port, "vhost": groupVhost,
			"accessToken": memberLogin + ":" + memberLogin},
		"amqp": map[string]any{"exchange": g.exchange, "exchangeType": "fanout", "routingKey": ""},
	})
	return err
}

func (g *clusterGroup) close() {
	if g.conn != nil {
		_ = g.conn.Close() // which ends hearing
		g.hearing.Wait()
	}
}

// hear takes what the Partner has published about a task. A message that comes again has the same bytes.
func (g *clusterGroup) hear(d *amqp.Delivery) {
	var m struct {
		ID, TaskID, SenderID string
		Status               struct{ State, StateChangedAt string }
	}
	if err := json.Unmarshal(d.Body, &m); err != nil {
		g.complain("%s: a message of the group is no JSON: %.200s", g.id, d.Body)
		return
	}
	if m.SenderID == g.aic || m.Status.State == "" {
		return
	}
	id, sum := m.ID, sha256.Sum256(d.Body)
	if m.TaskID != "" {
		id = m.TaskID
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if before, again := g.bodies[d.MessageId]; again {
		if g.repeated++; before != sum {
			g.complain("%s: the message %s of the group was published with two bodies", id, d.MessageId)
		}
		return
	}
	g.bodies[d.MessageId] = sum
	state, all := m.Status.State+" "+instant(m.Status.StateChangedAt), g.heard[id]
	if len(all) == 0 || all[len(all)-1] != state { // else it has another product
		g.heard[id] = append(all, state)
	}
}

// count returns how many messages the Partner has published, and how many of them again.
func (g *clusterGroup) count() (heard, repeated int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.bodies), g.repeated
}

// instant returns a time in a form of its own.
func instant(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return at.UTC().String()
}

// missing compares what was published of a task with its states. It returns how many are missing still, or what is
// wrong: each state is published, in order.
func (g *clusterGroup) missing(id string, states []task.Status) (int, error) {
	var want []string
	for _, s := range states {
		want = append(want, string(s.State)+" "+s.ChangedAt.UTC().String())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	heard := g.heard[id]
	if len(heard) > len(want) || !slices.Equal(heard, want[:len(heard)]) {
		return 0, fmt.Errorf("in the group was published %s, and the states are %s", strings.Join(heard, "; "),
			strings.Join(want, "; "))
	}
	return len(want) - len(heard), nil
}

// publish publishes a command twice, and returns its text.
func (e *errand) publish(ctx context.Context, command task.Command, name, text string) (string, error) {
	g, id := e.group, e.id+"-"+name
	items := []any{}
	if text != "" {
		text = mark(text, id)
		items = append(items, map[string]any{"type": "text", "text": text})
		e.mu.Lock()
		e.forAgent = append(e.forAgent, id)
		e.mu.Unlock()
	}
	body, err := json.Marshal(map[string]any{"type": "message", "id": id, "sentAt": e.began.UTC().Format(time.RFC3339Nano),
		"senderRole": "leader", "senderId": g.aic, "groupId": g.id, "sessionId": "session-of-" + g.id,
		"command": command, "taskId": e.id, "dataItems": items})
	if err != nil {
		return text, err
	}
	op := history.Op{Client: int(e.clients.Add(1)), Gateway: -1, Command: command, Message: id,
		Called: time.Now().UnixNano()}
	for range 2 {
		if err == nil {
			err = g.send(ctx, body)
		}
	}
	op.Returned = time.Now().UnixNano()
	e.history.Add(op)
	return text, err
}

// send publishes a message, and waits until the broker has it.
func (g *clusterGroup) send(ctx context.Context, body []byte) error {
	confirmed, err := g.channel.PublishWithDeferredConfirmWithContext(ctx, g.exchange, "", false, false,
		amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: body})
	if err != nil {
		return err
	}
	if ok, err := confirmed.WaitContext(ctx); err != nil || !ok {
		return errors.Join(err, fmt.Errorf("the broker has not taken a message: %v", ok))
	}
	return nil
}

// inGroup leads the task through its life in the group.
func (e *errand) inGroup(ctx context.Context) (product string, err error) {
	if product, err = e.publish(ctx, task.Start, "s", "hello"); err == nil {
		err = e.become(ctx, task.AwaitingCompletion, task.None)
	}
	e.exists.Store(true)
	if e.think(ctx, 2*time.Second); err == nil {
		_, err = e.publish(ctx, task.Complete, "c", "")
	}
	if err == nil {
		err = e.become(ctx, task.Completed, task.AwaitingCompletion)
	}
	return "echo: " + product, err
}

// awaitGroup waits until all states of the task are published in the group.
func (e *errand) awaitGroup(ctx context.Context, states []task.Status) error {
	for {
		n, err := e.group.missing(e.id, states)
		if n == 0 || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d states of it are not published in the group: %w", n, ctx.Err())
		}
		wait(ctx, 200*time.Millisecond)
	}
}
