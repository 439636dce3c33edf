// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// messagesASecond is how many messages the hostile member publishes.
const messagesASecond = 200

// The names of the hostile member's group.
const (
	groupID     = "hostile"
	groupVhost  = "/soak"
	memberLogin = "member"
)

// hostileMember is a member of a group to which the hostile Leader has invited the Partner.
func hostileMember(a *attack) []*kind {
	return []*kind{{name: "member: floods of its group", act: a.as("", a.floodGroup), least: 5000}}
}

// floodGroup invites the Partner to a group, and publishes what no member should.
func (a *attack) floodGroup(ctx context.Context, c *culprit, t *tally) {
	exchange := "group_" + c.Sender + "_" + groupID
	conn, err := a.broker.dial()
	if err != nil {
		t.note(err)
		return
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err == nil {
		err = channel.ExchangeDeclare(exchange, "fanout", true, false, false, false, nil)
	}
	if err == nil {
		err = a.invite(ctx, c, exchange)
	}
	if err != nil {
		t.note(err)
		return
	}
	each(ctx, messagesASecond, func(n int) {
		err := channel.PublishWithContext(ctx, exchange, "", false, false, amqp.Publishing{
			ContentType: "application/json", Body: a.junk(c, n), Timestamp: time.Now(),
		})
		t.note(err)
	})
}

// invite has the Partner join the group.
func (a *attack) invite(ctx context.Context, c *culprit, exchange string) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "group", "id": "1", "params": map[string]any{
		"protocol": "rabbitmq:4.0",
		"group": map[string]any{
			"groupId": groupID, "leader": map[string]any{"aic": c.Sender, "skills": []string{"x"}},
			"partners": []any{map[string]any{"aic": a.fixture.AIC, "skills": []string{"x"}}},
		},
		"server": map[string]any{"host": "localhost", "port": a.broker.Port, "vhost": groupVhost,
			"accessToken": memberLogin + ":" + memberLogin},
		"amqp": map[string]any{"exchange": exchange, "exchangeType": "fanout", "routingKey": ""},
	}})
	if err != nil {
		return err
	}
	return a.post(ctx, c, "/group", string(body))
}

// junk returns a message that is too deep, too large, about no task, of an invented sender, or that starts a task.
func (a *attack) junk(c *culprit, n int) []byte {
	message := func(more map[string]any) []byte {
		all := map[string]any{"type": "message", "id": fmt.Sprint("junk-", n), "sentAt": time.Now().UTC(),
			"senderRole": "leader", "senderId": c.Sender, "groupId": groupID, "sessionId": "s",
			"mentions": []string{a.fixture.AIC}, "dataItems": []any{map[string]any{"type": "text", "text": "hello"}}}
		for name, value := range more {
			all[name] = value
		}
		body, err := json.Marshal(all)
		if err != nil {
			panic(err) // it is JSON by construction
		}
		return body
	}
	switch n % 6 {
	case 0:
		return []byte(strings.Repeat("[", 5000))
	case 1:
		return make([]byte, 200_000)
	case 2:
		return message(map[string]any{"command": "continue", "taskId": "no such"})
	case 3:
		return message(map[string]any{"command": "start", "taskId": fmt.Sprint("group-", n)})
	case 4:
		return message(map[string]any{"command": "start", "taskId": fmt.Sprint("forged-", n), "senderId": "another"})
	default:
		return message(map[string]any{"type": "group-mgmt-message", "groupMgmtCommand": "get-status", "mentions": "all"})
	}
}
