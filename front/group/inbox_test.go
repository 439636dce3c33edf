// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestInbox has a Leader invite by the inbox.
//
// Promise: another party invites the Partner to a group in the name of a Leader
func TestInbox(t *testing.T) {
	w := startMailBroker(t)
	for name, test := range map[string]func(*mailWorld){
		"away": testInvitedWhileAway, "crash": testCrashBeforeAck, "what is dropped": testDropped,
		"what is refused": testRefusedInWriting, "more than the bound": testFlood, "configurations": testInboxConfigured,
		"nobody takes the refusal": testUnsent, "without a user_id": testNameless, "from nobody": testClaimed,
		"nobody takes the refusal of what nobody has sent": testUnsentClaim,
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

// deafPool makes links without acknowledgments of invitations.
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
	for d := range heard { // behind the publications of the leave
		if bytes.Contains(d.Body, []byte(`"connected":true`)) {
			break
		}
	}
}

// testDropped: a message not from the Leader it names, or an unreadable one, is acknowledged, without a word to anyone.
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
	w.send(nobody, "nobody", named) // not an agent
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
	for _, unnamed := range []string{`{"type":"group-invitation","invitationToken":"` + secret + `"}`, // by anybody
		`{"type":"group-invitation","invitationToken":"` + secret + `","group":{"groupId":"g","leader":{"aic":"#"}}}`} {
		w.send(nobody, "", []byte(unnamed))
	}
	w.counts(map[Result]int{Unproven: 4, Unreadable: 10, Ignored: 2})
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

// testRefusedInWriting: the Leader gets to know the fault.
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
	w.invite("g1", "joins", expires(time.Now().Add(-time.Second))) // within the skew of clocks
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
	w.refusals(all - groups)
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
}

// heldPool makes links. They deliver no invitation before the gate opens.
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

// testInboxConfigured: a reload keeps the connection of an inbox still configured, and ends it if the inbox is taken
// out.
func testInboxConfigured(w *mailWorld) {
	w.start()
	defer w.stop()
	w.isRead()
	reads := func() int { return strings.Count(w.logged.String(), "the inbox of groups is read") }
	before := w.self
	next, err := w.engine.Prepare(before.Config)
	w.must(err)
	next.Register()
	before.Unregister()
	without := next.Config
	without.Inbox, without.Brokers = nil, []Broker{mustParse("127.0.0.1")}
	if !w.engine.Counts()["agent"].Mail.Connected || reads() != 1 {
		w.Errorf("after a reload the inbox is not read as before: %s", w.logged.String())
	}
	w.self, err = w.engine.Prepare(without)
	w.must(err)
	w.self.Register()
	next.Unregister()
	mail := func() Mail { return w.engine.Counts()["agent"].Mail }
	asynctest.Eventually(w, "the inbox is not read", func() bool { return !mail().Open && !mail().Connected })
	again, err := w.engine.Prepare(before.Config)
	w.must(err)
	again.Register()
	w.self.Unregister()
	w.self = again
	w.isRead()
	if _, err := w.broker.CloseConnections(connectionName(w.partner)); err != nil {
		w.Fatal(err)
	}
	asynctest.Eventually(w, "it is read again", func() bool { return reads() == 3 && mail().Connected })
}

// limitInboxOfLeader makes the inbox of the Leader anew: it holds one message, and the broker refuses more.
func (w *mailWorld) limitInboxOfLeader() {
	_, err := w.channel.QueueDelete("inbox_"+w.leader, false, false, false)
	w.must(err)
	_, err = w.channel.QueueDeclare("inbox_"+w.leader, true, false, false, false,
		amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	w.must(err)
	w.must(w.channel.QueueBind("inbox_"+w.leader, "inbox_"+w.leader, "inbox.topic", false, nil))
}

// testUnsent: the broker does not take the refusal, as the inbox of the Leader is full. The invitation does not come
// again and again.
func testUnsent(w *mailWorld) {
	w.limitInboxOfLeader()
	w.start()
	defer w.stop()
	w.isRead()
	for i := range 4 {
		w.invite("no-exchange", fmt.Sprint("t", i))
	}
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
	w.refusals(1)
}

// asOf0201 makes an invitation one of AIP 02.01, without the name of its sender.
func asOf0201(m map[string]any) {
	for _, member := range []string{"id", "sentAt", "senderRole", "senderId"} {
		delete(m, member)
	}
	delete(m, "groupId") // the group's counts
}

// testNameless: a Leader without a user_id gets to know the Partner's reason not to join, and the operator of the
// Partner the remedies. It is an invitation like any other if the configuration says so.
func testNameless(w *mailWorld) {
	heard := w.exchange("g1")
	w.start()
	w.isRead()
	w.send(w.channel, "", w.invitation("g1", "t1", asOf0201))
	r := w.refusals(1)[0]
	if r.InvitationToken != "t1" || r.GroupID != "g1" || r.Error.Code != -32020 || r.PartnerAIC != w.partner ||
		!strings.Contains(r.Error.Data.Details, "set the AMQP property user_id to your AIC") {
		w.Errorf("the refusal is %+v", r)
	}
	asynctest.Eventually(w, "the invitation is acknowledged", func() bool { return w.left() == 0 })
	w.counts(map[Result]int{Unproven: 1})
	if len(w.engine.List()) > 0 || !strings.Contains(w.logged.String(), "without_user_id") {
		w.Errorf("the memberships are %+v, and the log is %s", w.engine.List(), w.logged.String())
	}
	w.stop()

	w.change = func(c *Config) { c.InboxWithoutUserID = true }
	w.start()
	defer w.stop()
	w.isRead()
	w.send(w.channel, "", w.invitation("g1", "t2", asOf0201))
	w.announced(heard)
	unnamed := func(m map[string]any) { m["group"].(map[string]any)["leader"] = map[string]any{} }
	w.send(w.channel, "", w.invitation("g1", "t3", unnamed))      // in nobody's name
	w.send(w.login("nobody"), "nobody", w.invitation("g1", "t4")) // the broker's word still counts
	w.counts(map[Result]int{Accepted: 1, Unproven: 2})
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
	w.refusals(0)
}

// testClaimed: a user of the broker with access to the inbox cannot have the Partner fill those of others.
func testClaimed(w *mailWorld) {
	const all = 3 * maxClaimsOfLeader
	w.start()
	defer w.stop()
	w.isRead()
	nobody := w.login("nobody")
	for i := range all {
		w.send(nobody, "", w.invitation("g1", fmt.Sprint("t", i)))
	}
	w.counts(map[Result]int{Unproven: all})
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
	if n := len(w.refusals(maxClaimsOfLeader)); n != maxClaimsOfLeader {
		w.Errorf("the Leader gets %d refusals", n)
	}
	if n := strings.Count(w.logged.String(), "without a user_id is refused"); n > 10 {
		w.Errorf("%d lines are logged", n)
	}
}

// testUnsentClaim: a sender names a Leader with a full inbox. This ends the link once, not with each message.
func testUnsentClaim(w *mailWorld) {
	w.limitInboxOfLeader()
	w.must(w.channel.Publish("inbox.topic", "inbox_"+w.leader, false, false, amqp.Publishing{Body: []byte("full")}))
	w.start()
	defer w.stop()
	w.isRead()
	nobody := w.login("nobody")
	for i := range maxClaims {
		w.send(nobody, "", w.invitation("g1", fmt.Sprint("t", i)))
	}
	asynctest.Eventually(w, "all are acknowledged", func() bool { return w.left() == 0 })
	if n := strings.Count(w.logged.String(), "the inbox of groups is read"); n > 2 {
		w.Errorf("the inbox was read by %d links", n)
	}
}
