// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/tidwall/gjson"
)

// TestGroupInbox has a Leader that cannot reach the gateway invite it by its inbox, as the ACS names it: while the
// gateway runs, while it is killed, and to a group that is not there. The gateway then executes a task in the group.
func TestGroupInbox(t *testing.T) {
	t.Parallel()
	b, p := site.SharedBroker(t), site.Certificates(t)
	_, agent := site.SampleAgent(t)
	m := site.MakeMember(t)
	aic, err := identity.MakeV2(identity.FieldsV2{}, devpki.Salt)
	site.NoError(t, err)
	m.AIC = string(aic)
	own := m.Identify()
	const vhost = "inboxes"
	site.NoError(t, b.AddVhost(vhost))
	leader := string(p.Leader.AIC)
	for user, password := range map[string]string{leader: "secret", m.AIC: ""} {
		site.NoError(t, b.AddUser(user, password), b.Permit(user, vhost, ".*", ".*", ".*"))
	}
	m.Config = m.Fronting("a2a/legacy http://"+agent, "localhost", fmt.Sprintf("inbox amqps://localhost:%d/%s", b.TLSPort,
		vhost), fmt.Sprintf("tls {\n\t\t\t\tca %s\n\t\t\t\tclient_cert %s %s\n\t\t\t}", p.CA.Cert, own.Cert, own.Key))
	m.Config.Store = "store pebble " + m.InDir("store")
	m.Start(m.Config)
	m.WaitFor(t, "the inbox of groups is read")
	_, card := m.CalledBy(p.Leader).Exchange(http.MethodGet, "/.well-known/acs.json", nil)
	endpoint := gjson.GetBytes(card, "endPoints.1")
	want := fmt.Sprintf("amqps://localhost:%d/%s?inbox=inbox_%s", b.TLSPort, vhost, m.AIC)
	if endpoint.Get("url").Str != want || endpoint.Get("transport").Str != "AMQP" {
		t.Fatalf("the ACS names the inbox %s, want %s", endpoint, want)
	}

	conn, err := amqp.DialConfig("amqp://"+b.Address(), amqp.Config{Vhost: vhost, SASL: []amqp.Authentication{
		&amqp.PlainAuth{Username: leader, Password: "secret"}}})
	site.NoError(t, err)
	defer conn.Close()
	channel, err := conn.Channel()
	site.NoError(t, err)
	listen := func(queue, key, exchange string) <-chan amqp.Delivery {
		t.Helper()
		_, err := channel.QueueDeclare(queue, true, false, false, false, nil)
		site.NoError(t, err, channel.QueueBind(queue, key, exchange, false, nil))
		heard, err := channel.Consume(queue, "", true, false, false, false, nil)
		site.NoError(t, err)
		return heard
	}
	publish := func(exchange, key string, message site.Object) {
		t.Helper()
		body, err := json.Marshal(message)
		site.NoError(t, err, channel.PublishWithContext(t.Context(), exchange, key, false, false, amqp.Publishing{
			ContentType: "application/json", DeliveryMode: amqp.Persistent, UserId: leader, Body: body}))
	}
	message := func(kind, group string, more site.Object) site.Object {
		o := site.Object{"type": kind, "id": kind + group, "sentAt": time.Now().Format(time.RFC3339), "senderRole": "leader",
			"senderId": leader, "groupId": group}
		for key, value := range more {
			o[key] = value
		}
		return o
	}
	exchange := func(group string) string { return "group_" + leader + "_" + group }
	const token = "the-token-of-"
	invite := func(group string) {
		t.Helper()
		publish("inbox.topic", "inbox_"+m.AIC, message("group-invitation", group, site.Object{
			"protocol": "rabbitmq:4.2", "invitationToken": token + group,
			"expiresAt": time.Now().Add(5 * time.Minute).UTC().Format(time.RFC3339),
			"group": site.Object{"groupId": group, "leader": site.Object{"aic": leader},
				"partners": []site.Object{{"aic": m.AIC}}},
			"amqp": site.Object{"exchange": exchange(group), "exchangeType": "fanout", "routingKey": ""}}))
	}
	// until waits for a message of the member. It calls again from time to time: a broker may be slow for an invitation.
	until := func(heard <-chan amqp.Delivery, what string, again func(), is func(gjson.Result) bool) {
		t.Helper()
		timer, pause := time.After(site.Patience), time.NewTicker(10*time.Second)
		defer pause.Stop()
		for {
			select {
			case <-pause.C:
				again()
			case d := <-heard:
				if d.UserId == m.AIC && is(gjson.ParseBytes(d.Body)) {
					return
				}
			case <-timer:
				t.Fatalf("nothing says that %s", what)
			}
		}
	}
	joined := func(m gjson.Result) bool { return m.Get("status.connected").Bool() }
	group := func(name string) <-chan amqp.Delivery {
		t.Helper()
		site.NoError(t, channel.ExchangeDeclare(exchange(name), "fanout", true, false, false, false, nil))
		return listen(exchange(name)+"_"+leader, "", exchange(name))
	}

	one, two := group("one"), group("two")
	invite("one")
	until(one, "the Partner has joined", func() { invite("one") }, joined)
	publish(exchange("one"), "", message("task-command", "one", site.Object{"command": "start", "taskId": "t",
		"sessionId": "s", "dataItems": []site.Object{{"type": "text", "text": "hello"}}}))
	until(one, "the task is carried out", func() {}, func(m gjson.Result) bool {
		return m.Get("taskId").Str == "t" && m.Get("status.state").Str == "awaiting-completion"
	})

	m.Kill()
	invite("two")
	m.Run(filepath.Join(m.Dir, "Caddyfile"))
	until(two, "the Partner has joined after its restart", func() { invite("two") }, joined)

	refused := listen("inbox_"+leader, "inbox_"+leader, "inbox.topic")
	invite("three")
	until(refused, "the invitation is refused", func() {}, func(m gjson.Result) bool {
		return m.Get("type").Str == "group-invitation-error" && m.Get("invitationToken").Str == token+"three" &&
			m.Get("error.data.errorType").Str == "CONNECTION_FAILED"
	})
	nothingOf(t, m, token)
}
