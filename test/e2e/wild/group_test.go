// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestWildGroups has Leaders of AIP by rule invite Partners by their inbox, and lead a task in the group.
func TestWildGroups(t *testing.T) {
	t.Parallel()
	runWild(t, wildGroups)
}

var (
	joinedGroup = wildEnd{Settled: []string{"awaiting-completion", "completed"}, Products: []string{"done: hello"},
		Noted: []string{"joined"}, Told: []string{"hello"}}
	refusedGroup = wildEnd{Noted: []string{"refused"}}
)

var wildGroups = []wildRow{
	{
		name: "invites by inbox, with the AMQP property `user_id`, as the reference from 2.2 on",
		want: joinedGroup,
		ways: inboxWays(true, true, ""),
	},
	{
		name: "invites by inbox without `user_id`, as the reference before 2.2",
		set:  "inbox <url> {\nwithout_user_id\n}",
		want: joinedGroup,
		ways: inboxWays(false, false, "{\nwithout_user_id\n}"),
	},
	{
		name: "invites so where `without_user_id` is not set, and is told that it is refused",
		want: refusedGroup,
		ways: inboxWays(false, true, ""),
	},
}

// inboxWays are the ways of a Leader that invites by inbox: to a Partner by rule, which may want to know who publishes,
// and to the gateway. block is behind the URL of its inbox.
func inboxWays(userID, wantsUserID bool, block string) []wildWay {
	call := func(t *testing.T, at string) (end wildEnd) {
		vhost, partner, _ := strings.Cut(at, " ")
		if err := inviteByInbox(t, vhost, partner, userID, &end); err != nil {
			end.Broken = err.Error()
		}
		return end
	}
	return []wildWay{
		{name: "a Partner", call: call, serve: func(t *testing.T) *wildServed { return inboxPartner(t, wantsUserID) }},
		{name: "the gateway", call: call, serve: func(t *testing.T) *wildServed { return inboxGateway(t, block) }},
	}
}

// inboxWorld makes a virtual host for one Leader and one Partner, and returns its name and the AIC of the Partner.
func inboxWorld(t *testing.T) (vhost, partner string) {
	t.Helper()
	b, vhost := site.SharedBroker(t), "wild-"+rand.Text()
	aic, err := identity.MakeV2(identity.FieldsV2{}, devpki.Salt)
	site.NoError(t, err, b.AddVhost(vhost))
	for _, user := range []string{string(site.Certificates(t).Leader.AIC), string(aic)} {
		site.NoError(t, b.AddUser(user, "secret"), b.Permit(user, vhost, ".*", ".*", ".*"))
	}
	return vhost, string(aic)
}

// inboxChannel logs in at the broker.
func inboxChannel(t *testing.T, vhost, user string) (*amqp.Channel, error) {
	login := []amqp.Authentication{&amqp.PlainAuth{Username: user, Password: "secret"}}
	conn, err := amqp.DialConfig("amqp://"+site.SharedBroker(t).Address(), amqp.Config{Vhost: vhost, SASL: login})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return conn.Channel()
}

// inboxGateway fronts an agent of A2A v0.1 with a gateway that has an inbox.
func inboxGateway(t *testing.T, block string) *wildServed {
	served, b, m := legacyWorker(false)(t), site.SharedBroker(t), site.MakeMember(t)
	var vhost string
	vhost, m.AIC = inboxWorld(t)
	own := m.Identify()
	m.Config = m.Fronting(served.as, "localhost", fmt.Sprintf("inbox amqps://localhost:%d/%s %s", b.TLSPort, vhost, block),
		fmt.Sprintf("tls {\nca %s\nclient_cert %s %s\n}", site.Certificates(t).CA.Cert, own.Cert, own.Key))
	m.Start(m.Config)
	m.WaitFor(t, "the inbox of groups is read")
	served.at = vhost + " " + m.AIC
	return served
}

// inboxListen binds a queue and reads it.
func inboxListen(c *amqp.Channel, queue, key, exchange string) (<-chan amqp.Delivery, error) {
	if _, err := c.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		return nil, err
	}
	if err := c.QueueBind(queue, key, exchange, false, nil); err != nil {
		return nil, err
	}
	return c.Consume(queue, "", true, false, false, false, nil)
}

// inboxMember is one end of a group: a Leader or a Partner, each by rule.
type inboxMember struct {
	channel  *amqp.Channel
	aic      string
	role     string // in its messages
	user     string // in the property user_id; empty for none
	group    string
	exchange string
}

// publish publishes a message with the members that all have.
func (m *inboxMember) publish(exchange, key string, message site.Object) error {
	full := site.Object{"id": "msg-" + rand.Text(), "sentAt": time.Now().UTC().Format(time.RFC3339Nano),
		"senderRole": m.role,
		"senderId":   m.aic, "groupId": m.group}
	maps.Copy(full, message)
	body, err := json.Marshal(full)
	if err != nil {
		return err
	}
	return m.channel.Publish(exchange, key, false, false, amqp.Publishing{ContentType: "application/json",
		DeliveryMode: amqp.Persistent, UserId: m.user, Body: body})
}

// inboxMessage is what either of them reads.
type inboxMessage struct {
	wildResult
	InvitationToken, Command, SessionID, SentAt string
	DataItems                                   []wildItem
	AMQP                                        struct{ Exchange string }
	Group                                       struct {
		GroupID string
		Leader  struct{ AIC string }
	}
}

// inviteByInbox invites a Partner, has it do a task in the group, and completes the task.
func inviteByInbox(t *testing.T, vhost, partner string, userID bool, end *wildEnd) error {
	aic := string(site.Certificates(t).Leader.AIC)
	channel, err := inboxChannel(t, vhost, aic)
	if err != nil {
		return err
	}
	m := &inboxMember{channel: channel, aic: aic, role: "leader", group: rand.Text()}
	m.exchange = "group_" + aic + "_" + m.group
	if userID {
		m.user = aic
	}
	if err := channel.ExchangeDeclare(m.exchange, "fanout", true, false, false, false, nil); err != nil {
		return err
	}
	heard, err := inboxListen(channel, m.exchange+"_"+aic, "", m.exchange)
	if err != nil {
		return err
	}
	refused, err := inboxListen(channel, "inbox_"+aic, "inbox_"+aic, "inbox.topic")
	if err != nil {
		return err
	}
	invitation := site.Object{"type": "group-invitation", "protocol": "rabbitmq:4.2", "invitationToken": rand.Text(),
		"expiresAt": time.Now().Add(5 * time.Minute).UTC().Format(time.RFC3339),
		"group": site.Object{"groupId": m.group, "leader": site.Object{"aic": aic},
			"partners": []site.Object{{"aic": partner}}},
		"amqp": site.Object{"exchange": m.exchange, "exchangeType": "fanout", "routingKey": ""}}
	if err := m.publish("inbox.topic", "inbox_"+partner, invitation); err != nil {
		return err
	}
	command := func(command, text string) error {
		return m.publish(m.exchange, "", site.Object{"type": "task-command", "command": command,
			"taskId":    "task-of-" + m.group,
			"sessionId": "session", "mentions": []string{partner}, "dataItems": []site.Object{{"type": "text", "text": text}}})
	}
	l := &wildLeader{}
	for limit := time.After(site.Patience); ; {
		var d amqp.Delivery
		select {
		case d = <-heard:
		case d = <-refused:
		case <-limit:
			return fmt.Errorf("nothing more is heard")
		}
		var message inboxMessage
		if err := json.Unmarshal(d.Body, &message); err != nil {
			return err
		}
		switch {
		case message.SenderID != partner && message.Type != "group-invitation-error":
			continue // its own
		case message.Type == "group-invitation-error":
			end.Noted = append(end.Noted, "refused")
			return nil
		case message.Type == "group-mgmt-result" && len(end.Noted) == 0:
			end.Noted = append(end.Noted, "joined")
			err = command("start", "hello")
		case message.Type == "task-result" && settled(message.Status.State):
			l.saw(&message.wildResult)
			end.Settled, end.Products, end.Said = l.end.Settled, l.end.Products, l.end.Said
			if ended(message.Status.State) {
				return nil
			}
			err = command("complete", "")
		}
		if err != nil {
			return err
		}
	}
}
