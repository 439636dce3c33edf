// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/group/broker"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/devpki"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// mailWorld is a RabbitMQ that knows agents by their certificates, with a Leader, and a gateway whose Partner has its
// inbox there.
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
	logged  lockedBuffer
}

// keptStore outlives processes.
type keptStore struct{ replay.Store }

func (keptStore) Close() error { return nil }

// lockedBuffer is a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

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
		Limits:  jsonrpc.Limits{Bytes: 1 << 20, Depth: 16}, Memory: quota.Limits{Total: 1 << 24, PerLeader: 1 << 24},
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
	w.self, err = w.engine.Register(c)
	w.must(err)
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

// exchange declares the exchange of a group, and returns what comes of it.
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

// refusal is what the Leader gets.
type refusal struct {
	Type, ID, SenderRole, SenderID, GroupID, InvitationToken string
	Error                                                    struct {
		Code    int
		Message string
		Data    struct{ ErrorType, Details string }
	}
	SentAt time.Time

	UserID string `json:"-"` // of the message
}

// refusals returns a number of refusals that the Leader gets, in the order of their tokens.
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

// left returns how many messages the broker has in the inbox, those included that it has delivered.
func (w *mailWorld) left() int {
	w.Helper()
	queue := fmt.Sprintf(`rabbit_misc:r(<<"acps">>, queue, <<"inbox_%s">>)`, w.partner)
	text, err := w.broker.Eval("proplists:get_value(messages, rabbit_amqqueue:info(element(2, rabbit_amqqueue:lookup(" +
		queue + ")), [messages]))")
	w.must(err)
	var n int
	_, err = fmt.Sscan(text, &n)
	w.must(err)
	return n
}

// announced waits for the status by which the Partner announces that it has joined.
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
	case <-time.After(20 * time.Second):
		w.Fatal("the group gets nothing")
	}
}

// TestInbox has a Leader invite by the inbox.
func TestInbox(t *testing.T) {
	w := startMailBroker(t)
	for name, test := range map[string]func(*mailWorld){
		"away": testInvitedWhileAway, "crash": testCrashBeforeAck, "what is dropped": testDropped,
		"what is refused": testRefusedInWriting, "more than the bound": testFlood, "configurations": testInboxConfigured,
		"nobody takes the refusal": testUnsent,
	} {
		t.Run(name, func(t *testing.T) { test(w.next(t)) })
	}
}

// testInvitedWhileAway: the Leader invites while the gateway is down, and it joins when it comes up.
func testInvitedWhileAway(w *mailWorld) {
	w.start()
	w.isRead()
	w.stop()
	heard := w.exchange("g1")
	w.invite("g1", "t1")
	w.start()
	defer w.stop()
	w.announced(heard)
	w.counts(map[Result]int{Accepted: 1})
	list := w.engine.List()
	if len(list) != 1 || list[0].State != Joined || list[0].Leader != w.leader || list[0].Group != "g1" {
		w.Errorf("the memberships are %+v", list)
	}
	asynctest.Eventually(w, "the invitation is acknowledged", func() bool { return w.left() == 0 })
}

// deafPool makes links by which no invitation is acknowledged.
type deafPool struct{ dialer }

type deafLink struct{ link }

type silentAck struct{}

func (silentAck) Ack(uint64) {}

func (p deafPool) Join(ctx context.Context, c broker.Config) (link, error) {
	l, err := p.dialer.Join(ctx, c)
	if err != nil || !strings.HasPrefix(c.Queue, inboxPrefix) {
		return l, err
	}
	return deafLink{l}, nil
}

func (l deafLink) Receive(ctx context.Context, deliver func(*broker.Delivery)) error {
	return l.link.Receive(ctx, func(d *broker.Delivery) {
		d.Acknowledger = silentAck{}
		deliver(d)
	})
}

// testCrashBeforeAck: the process dies when the membership is stored and the invitation is not acknowledged. The next
// one gets it again, and is the same member. When the membership has ended, the invitation counts no more.
func testCrashBeforeAck(w *mailWorld) {
	heard := w.exchange("g1")
	w.dial = deafPool{newPool()}
	w.start()
	w.isRead()
	w.invite("g1", "t1")
	w.announced(heard)
	w.counts(map[Result]int{Accepted: 1})
	joined := w.engine.List()[0].Joined
	w.stop()

	w.dial = deafPool{newPool()}
	w.start()
	w.announced(heard)
	w.counts(map[Result]int{Accepted: 1})
	if list := w.engine.List(); len(list) != 1 || !list[0].Joined.Equal(joined) {
		w.Errorf("the memberships are %+v", list)
	}
	w.must(w.engine.Leave(w.Context(), "agent", w.leader, "g1"))
	w.stop()

	w.dial = nil
	w.start()
	defer w.stop()
	w.counts(map[Result]int{Refused: 1})
	if r := w.refusals(1)[0]; r.InvitationToken != "t1" || !strings.Contains(r.Error.Data.Details, "accepted before") {
		w.Errorf("the refusal is %+v", r)
	}
	asynctest.Eventually(w, "the invitation is acknowledged", func() bool { return w.left() == 0 })
	w.invite("g1", "t2")
	for d := range heard { // behind what was published at the leave
		if bytes.Contains(d.Body, []byte(`"connected":true`)) {
			break
		}
	}
}

// testDropped: what is not from the Leader that it names, or cannot be read, is acknowledged, and nobody is told.
func testDropped(w *mailWorld) {
	w.start()
	defer w.stop()
	w.isRead()
	w.exchange("g1")
	nobody, partner := w.login("nobody"), "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	w.must(w.broker.AddUser(partner, "secret"))
	w.must(w.broker.Permit(partner, "acps", ".*", ".*", ".*"))
	other := w.login(partner)
	secret := "a-token-that-nobody-may-see"
	named := w.invitation("g1", secret)
	w.send(w.channel, "", named)    // by the Leader, who does not say so
	w.send(nobody, "nobody", named) // who is no agent
	w.send(other, partner, named)   // another agent
	for _, body := range []string{"", "{", `"` + secret + `"`, "[]", `{"type":"group-invitation"}`,
		`{"type":"group-invitation","invitationToken":"` + secret + `"}`, strings.Repeat("[", 1000), "\xff\xfe"} {
		w.send(w.channel, w.leader, []byte(body))
	}
	w.invite("g1", strings.Repeat("x", maxInvitation))
	w.send(w.channel, w.leader, w.invitation("g1", secret, func(m map[string]any) { // larger than an inbox takes
		m["more"] = strings.Repeat("x", maxInboxMessage)
	}))
	w.send(w.channel, w.leader, []byte(`{"type":"group-invitation-error","invitationToken":"`+secret+`"}`))
	w.send(w.channel, w.leader, []byte(`{"type":"task-command","command":"start"}`))
	w.counts(map[Result]int{Unproven: 3, Unreadable: 10, Ignored: 2})
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
	w.refusals(0)
	if len(w.engine.List()) > 0 {
		w.Errorf("the memberships are %+v", w.engine.List())
	}
	if log := w.logged.String(); strings.Contains(log, secret) || !strings.Contains(log, "is dropped") {
		w.Errorf("the log is %s", log)
	}
}

// maxInvitation is longer than a token may be.
const maxInvitation = 1000

// testRefusedInWriting: the Leader gets to know what does not work.
func testRefusedInWriting(w *mailWorld) {
	w.change = func(c *Config) { c.MaxGroups, c.MaxGroupsPerLeader = 1, 1 }
	w.start()
	defer w.stop()
	w.isRead()
	heard := w.exchange("g1")
	w.exchange("g2")
	expires := func(at time.Time) func(map[string]any) {
		return func(m map[string]any) { m["expiresAt"] = at.Format(time.RFC3339Nano) }
	}
	set := func(key string, value any) func(map[string]any) { return func(m map[string]any) { m[key] = value } }
	w.invite("g1", "joins", expires(time.Now().Add(-20*time.Second))) // within the skew of clocks
	w.announced(heard)
	w.invite("g1", "01", expires(time.Now().Add(-31*time.Second)))
	w.invite("g2", "02")
	w.invite("g1", "03", set("protocol", "kafka:3"))
	w.invite("g1", "04", set("senderId", w.partner))
	w.invite("g1", "05", set("groupId", "another"))
	w.invite("g1", "06", set("senderRole", "partner"))
	w.invite("g1", "07", set("expiresAt", nil))
	w.invite("g1", "08", set("amqp", map[string]any{"exchange": "group_of_all"}))
	w.invite("g1", "09", set("amqp", map[string]any{"exchange": exchangeName(w.leader, "g1"), "exchangeType": "headers"}))
	w.invite("g1", "again", func(m map[string]any) { delete(m, "senderId"); delete(m, "groupId") }) // as v02.01 has it
	w.announced(heard)
	var got []string
	ids := make(map[string]bool)
	for _, r := range w.refusals(9) {
		got = append(got, fmt.Sprint(r.InvitationToken, " ", r.Error.Code, " ", r.Error.Data.ErrorType, ": ",
			r.Error.Data.Details))
		if r.Type != "group-invitation-error" || r.SenderRole != "partner" || r.SenderID != w.partner ||
			r.UserID != w.partner || r.GroupID != "g1" && r.GroupID != "g2" || r.Error.Message == "" || ids[r.ID] {
			w.Errorf("the refusal is %+v", r)
		}
		ids[r.ID] = true
	}
	want := []string{
		"01 -32020 INVITATION_REJECTED: the invitation has expired",
		"02 -32050 LIMIT_EXCEEDED: ",
		"03 -32602 INVALID_PARAMS: protocol must be \"rabbitmq\"",
		"04 -32602 INVALID_PARAMS: senderId must be group.leader.aic",
		"05 -32602 INVALID_PARAMS: groupId must be group.groupId",
		"06 -32602 INVALID_PARAMS: senderRole must be \"leader\"",
		"07 -32602 INVALID_PARAMS: expiresAt is missing",
		"08 -32020 INVITATION_REJECTED: this Partner logs in to the broker by its certificate",
		"09 -32602 INVALID_PARAMS: exchangeType must be one of",
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			w.Errorf("the refusal is %s, want %s", got[i], want[i])
		}
	}
	w.counts(map[Result]int{Accepted: 2, Refused: 3, Unreadable: 6})
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
}

// testFlood: of many invitations a bounded number is in work, and the others wait at the broker. In the end each is
// answered.
func testFlood(w *mailWorld) {
	const all, groups = 60, 5
	w.change = func(c *Config) { c.MaxGroups, c.MaxGroupsPerLeader = groups, groups }
	gate := make(chan struct{})
	w.dial = heldPool{newPool(), gate}
	w.start()
	defer w.stop()
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	w.isRead()
	for i := range all {
		w.exchange(fmt.Sprint("g", i))
		w.invite(fmt.Sprint("g", i), fmt.Sprint("t", i))
	}
	asynctest.Eventually(w, "the others wait", func() bool {
		q, err := w.channel.QueueDeclarePassive("inbox_"+w.partner, true, false, false, false, nil)
		w.must(err)
		return q.Messages == all-inboxPrefetch
	})
	open()
	w.counts(map[Result]int{Accepted: groups, Refused: all - groups})
	if n := len(w.refusals(all - groups)); n != all-groups {
		w.Errorf("the Leader gets %d refusals", n)
	}
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
}

// heldPool makes links that deliver no invitation before the gate opens.
type heldPool struct {
	dialer
	gate chan struct{}
}

type heldLink struct {
	link
	gate chan struct{}
}

func (p heldPool) Join(ctx context.Context, c broker.Config) (link, error) {
	l, err := p.dialer.Join(ctx, c)
	if err != nil || !strings.HasPrefix(c.Queue, inboxPrefix) {
		return l, err
	}
	return heldLink{l, p.gate}, nil
}

func (l heldLink) Receive(ctx context.Context, deliver func(*broker.Delivery)) error {
	return l.link.Receive(ctx, func(d *broker.Delivery) {
		<-l.gate
		deliver(d)
	})
}

// testInboxConfigured: a reload keeps the connection of an inbox that stays, and ends it where the inbox is taken out.
func testInboxConfigured(w *mailWorld) {
	w.start()
	defer w.stop()
	w.isRead()
	reads := func() int { return strings.Count(w.logged.String(), "the inbox of groups is read") }
	before := w.self
	next, err := w.engine.Register(before.Config)
	w.must(err)
	before.Unregister()
	without := next.Config
	without.Inbox, without.Brokers = nil, []Broker{mustParse("127.0.0.1")}
	if !w.engine.Counts()["agent"].Mail.Connected || reads() != 1 {
		w.Errorf("after a reload the inbox is not read as before: %s", w.logged.String())
	}
	w.self, err = w.engine.Register(without)
	w.must(err)
	next.Unregister()
	mail := func() Mail { return w.engine.Counts()["agent"].Mail }
	asynctest.Eventually(w, "the inbox is not read", func() bool { return !mail().Open && !mail().Connected })
	again, err := w.engine.Register(before.Config)
	w.must(err)
	w.self.Unregister()
	w.self = again
	w.isRead()
	if _, err := w.broker.CloseConnections(connectionName(w.partner)); err != nil {
		w.Fatal(err)
	}
	asynctest.Eventually(w, "it is read again", func() bool { return reads() == 3 && mail().Connected })
}

// testUnsent: the broker does not take the refusal, as the inbox of the Leader is full. The invitation does not come
// again and again.
func testUnsent(w *mailWorld) {
	_, err := w.channel.QueueDelete("inbox_"+w.leader, false, false, false)
	w.must(err)
	_, err = w.channel.QueueDeclare("inbox_"+w.leader, true, false, false, false,
		amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	w.must(err)
	w.must(w.channel.QueueBind("inbox_"+w.leader, "inbox_"+w.leader, "inbox.topic", false, nil))
	w.start()
	defer w.stop()
	w.isRead()
	for i := range 4 {
		w.invite("no-exchange", fmt.Sprint("t", i))
	}
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
	w.refusals(1)
}
