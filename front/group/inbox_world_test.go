// SPDX-License-Identifier: Apache-2.0

package group

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// mailWorld is a RabbitMQ with logins of agents by their certificates, with a Leader, and with a gateway. The gateway's
// Partner has its inbox there.
type mailWorld struct {
	*testing.T
	broker          *rabbittest.Broker
	leader, partner string // AICs
	tls             *tls.Config
	channel         *amqp.Channel // of the Leader

	store   replay.Store
	dial    dialer // of the next process; nil for the ordinary one
	change  func(*Config)
	engine  *Engine
	tasks   *gateway.Tasks
	gateway *gateway.Gateway
	self    *Partner
	logged  asynctest.Buffer
}

// keptStore outlives processes.
type keptStore struct{ replay.Store }

func (keptStore) Close() error { return nil }

func (w *mailWorld) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// startMailBroker starts the broker. Both agents may do all.
func startMailBroker(t *testing.T) *mailWorld {
	t.Helper()
	w := &mailWorld{T: t}
	pki, err := devpki.Make(devpki.Options{Dir: t.TempDir()})
	w.must(err)
	w.broker, err = rabbittest.Start(rabbittest.Config{CA: pki.CA.Cert, Cert: pki.Server.Cert, Key: pki.Server.Key})
	w.must(err)
	t.Cleanup(func() { _ = w.broker.Close() })
	w.partner, w.leader = string(pki.Leader.AIC), string(pki.Server.AIC)
	root, err := os.ReadFile(pki.CA.Cert)
	w.must(err)
	pair, err := tls.LoadX509KeyPair(pki.Leader.Cert, pki.Leader.Key)
	w.must(err)
	w.tls = &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	w.tls.RootCAs.AppendCertsFromPEM(root)
	w.must(w.broker.AddVhost("acps"))
	for user, password := range map[string]string{w.leader: "secret", w.partner: "", "nobody": "secret"} {
		w.must(w.broker.AddUser(user, password))
		w.must(w.broker.Permit(user, "acps", ".*", ".*", ".*"))
	}
	return w
}

// next is the world of another test at the same broker: its inboxes are empty.
func (w *mailWorld) next(t *testing.T) *mailWorld {
	n := &mailWorld{T: t, broker: w.broker, leader: w.leader, partner: w.partner, tls: w.tls}
	n.store = keptStore{replay.NewMemory(replay.Settings{})}
	n.channel = n.login(n.leader)
	n.must(n.channel.ExchangeDeclare("inbox.topic", "topic", true, false, false, false, nil))
	_, err := n.channel.QueueDeclare("inbox_"+n.leader, true, false, false, false, nil)
	n.must(err)
	n.must(n.channel.QueueBind("inbox_"+n.leader, "inbox_"+n.leader, "inbox.topic", false, nil))
	t.Cleanup(func() {
		for _, of := range []string{n.leader, n.partner} {
			_, err := n.channel.QueueDelete("inbox_"+of, false, false, false)
			n.must(err)
		}
	})
	return n
}

// login returns a channel of a user with a password.
func (w *mailWorld) login(user string) *amqp.Channel {
	w.Helper()
	conn, err := amqp.DialConfig("amqp://"+w.broker.Address(), amqp.Config{Vhost: "acps",
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: user, Password: "secret"}}})
	w.must(err)
	w.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	w.must(err)
	return channel
}

// start starts the process of the gateway.
func (w *mailWorld) start() {
	w.Helper()
	log := slog.New(slog.NewTextHandler(&w.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	set := shard.One(w.store)
	var err error
	w.tasks, err = gateway.OpenTasks(set, nil, log)
	w.must(err)
	dial := w.dial
	if dial == nil {
		dial = newPool()
	}
	w.engine, err = open(set, log, dial, func(m *membership) tasks {
		return newGroupTasks(m.home.store, m.key, m, nil)
	})
	w.must(err)
	w.gateway, err = gateway.New(gateway.Config{
		Process: new(gateway.Process), Callers: []translate.Server{aip.ServerV2(w.partner)}, Guard: new(identity.Guard),
		Partner: partner.Config{Name: "agent", Agent: scripted{}, MaxEvents: 100, MaxBytes: 1 << 20, MaxTasks: 100},
		Limits:  jsonrpc.Limits{Bytes: 1 << 20, Depth: 16}, Memory: limit.Limits{Total: 1 << 24, PerLeader: 1 << 24},
		Groups: true, Log: log,
	})
	w.must(err)
	w.gateway.Register(w.tasks)
	c := Config{
		Name: "agent", AIC: w.partner, Gateway: w.gateway, TLS: w.tls, Log: log,
		Inbox:  &Inbox{Host: "localhost", Port: w.broker.TLSPort, VHost: "acps"},
		Egress: &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}},
	}
	if w.change != nil {
		w.change(&c)
	}
	w.self, err = w.engine.Prepare(c)
	w.must(err)
	w.self.Register()
}

// stop ends the process.
func (w *mailWorld) stop() {
	w.Helper()
	w.self.Unregister()
	w.gateway.Unregister()
	w.engine.Close()
	w.must(w.tasks.Close())
	w.gateway.Close()
}

// isRead waits until the inbox is read.
func (w *mailWorld) isRead() {
	w.Helper()
	asynctest.Eventually(w, "the inbox is read", func() bool { return w.engine.Counts()["agent"].Mail.Connected })
}

// exchange declares the exchange of a group, and returns its messages.
func (w *mailWorld) exchange(group string) <-chan amqp.Delivery {
	w.Helper()
	name := exchangeName(w.leader, group)
	w.must(w.channel.ExchangeDeclare(name, "fanout", true, false, false, false, nil))
	q, err := w.channel.QueueDeclare("", false, true, true, false, nil)
	w.must(err)
	w.must(w.channel.QueueBind(q.Name, "", name, false, nil))
	heard, err := w.channel.Consume(q.Name, "", true, true, false, false, nil)
	w.must(err)
	w.Cleanup(func() { _ = w.channel.ExchangeDelete(name, false, false) })
	return heard
}

// invitation returns an invitation, after changes.
func (w *mailWorld) invitation(group, token string, changes ...func(map[string]any)) []byte {
	w.Helper()
	m := map[string]any{
		"type": "group-invitation", "id": "invite-" + token, "sentAt": time.Now().Format(time.RFC3339),
		"senderRole": "leader", "senderId": w.leader, "groupId": group, "protocol": "rabbitmq:4.2",
		"invitationToken": token, "expiresAt": time.Now().Add(5 * time.Minute).UTC().Format(time.RFC3339Nano),
		"group": map[string]any{"groupId": group, "leader": map[string]any{"aic": w.leader},
			"partners": []any{map[string]any{"aic": w.partner}}},
		"amqp": map[string]any{"exchange": exchangeName(w.leader, group), "exchangeType": "fanout", "routingKey": ""},
	}
	for _, change := range changes {
		change(m)
	}
	body, err := json.Marshal(m)
	w.must(err)
	return body
}

// send writes to the inbox of the Partner, by a channel, with a user id.
func (w *mailWorld) send(by *amqp.Channel, userID string, body []byte) {
	w.Helper()
	w.must(by.Publish("inbox.topic", "inbox_"+w.partner, false, false, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, UserId: userID, Body: body}))
}

// invite invites the Partner as the Leader does.
func (w *mailWorld) invite(group, token string, changes ...func(map[string]any)) {
	w.Helper()
	w.send(w.channel, w.leader, w.invitation(group, token, changes...))
}

// refusal is a refusal to the Leader.
type refusal struct {
	Type, ID, SenderRole, SenderID, PartnerAIC, GroupID, InvitationToken string
	Error                                                                struct {
		Code    int
		Message string
		Data    struct{ ErrorType, Details string }
	}
	SentAt time.Time

	UserID string `json:"-"` // of the message
}

// refusals returns the refusals to the Leader, in the order of their tokens. There must be n of them.
func (w *mailWorld) refusals(n int) (all []refusal) {
	w.Helper()
	asynctest.Eventually(w, fmt.Sprint(n, " refusals"), func() bool {
		for {
			d, ok, err := w.channel.Get("inbox_"+w.leader, true)
			w.must(err)
			if !ok {
				return len(all) >= n
			}
			r := refusal{UserID: d.UserId}
			w.must(json.Unmarshal(d.Body, &r))
			if d.MessageId != r.ID || r.SentAt.IsZero() {
				w.Errorf("the refusal is %s", d.Body)
			}
			all = append(all, r)
		}
	})
	if len(all) > n {
		w.Errorf("the Leader gets %d refusals, and not %d: %+v", len(all), n, all)
	}
	slices.SortFunc(all, func(a, b refusal) int { return strings.Compare(a.InvitationToken, b.InvitationToken) })
	return all
}

// counts waits until there are as many messages of each result, and nothing is left in the inbox.
func (w *mailWorld) counts(want map[Result]int) {
	w.Helper()
	var got map[Result]int
	defer func() {
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("the results (-want +got):\n%s", diff)
		}
	}()
	total := func(m map[Result]int) (n int) {
		for _, k := range m {
			n += k
		}
		return n
	}
	asynctest.Eventually(w, "all messages are handled", func() bool {
		got = w.engine.Counts()["agent"].Mail.Messages
		return total(got) >= total(want)
	})
}

// left returns the number of the broker's messages in the inbox, including delivered ones.
func (w *mailWorld) left() int {
	w.Helper()
	return messages(w, w.broker, "acps", "inbox_"+w.partner)
}

// messages returns the number of messages of a queue not acknowledged.
func messages(t testing.TB, b *rabbittest.Broker, vhost, queue string) (n int) {
	t.Helper()
	text, err := b.Eval(fmt.Sprintf("proplists:get_value(messages, rabbit_amqqueue:info(element(2, "+
		`rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>))), [messages]))`, vhost, queue))
	if err == nil {
		_, err = fmt.Sscan(text, &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// announced waits for the Partner's status after a join.
func (w *mailWorld) announced(heard <-chan amqp.Delivery) {
	w.Helper()
	select {
	case d := <-heard:
		var s struct {
			Type, SenderID string
			Status         task.MemberStatus
		}
		w.must(json.Unmarshal(d.Body, &s))
		if s.Type != "group-mgmt-result" || s.SenderID != w.partner || !s.Status.Connected || d.UserId != w.partner {
			w.Errorf("the group got %s", d.Body)
		}
	case <-time.After(2 * time.Minute):
		w.Fatal("the group gets nothing")
	}
}
