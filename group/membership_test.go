// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/group/broker"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

const (
	testLeader  = "LEADER"
	testAgent   = "AGENT"
	testQueue   = "group_LEADER_g1_AGENT"
	testPartner = "partner"
)

// fakeTasks stand in for the tasks of a membership.
type fakeTasks struct {
	m *membership
	b *brokers

	mu       sync.Mutex
	link     link
	received []string
	muted    bool
	failing  error // of flush
	running  int
	canceled bool
	dropped  bool
	closed   bool
}

func (f *fakeTasks) receive(d *broker.Delivery) {
	f.mu.Lock()
	f.received = append(f.received, string(d.Body))
	f.mu.Unlock()
	m, err := aip.ReadGroupMessage(d.Body, jsonrpc.Limits{Bytes: 1 << 20, Depth: 32})
	if err != nil || m.Kind != aip.MemberCommand {
		d.Ack()
		return
	}
	c, err := m.Management()
	if err != nil {
		panic(err)
	}
	f.m.manage(&c, m.Dialect, d)
}

func (f *fakeTasks) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (*fakeTasks) follow(context.Context, string, string) (func(), func(context.Context) error, error) {
	return nil, nil, errLeaves
}

func (f *fakeTasks) connect(l link) { f.set(func() { f.link = l }) }

func (f *fakeTasks) mute(muted bool) { f.set(func() { f.muted = muted }) }

func (f *fakeTasks) note(event string) { f.b.change(func() { f.b.note(event) }) }

func (f *fakeTasks) cancel(ctx context.Context) error {
	f.note("cancel")
	f.set(func() { f.canceled = true })
	return ctx.Err()
}

func (f *fakeTasks) flush(ctx context.Context) error {
	f.note("flush")
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing
}

func (f *fakeTasks) drop(context.Context) error {
	f.set(func() { f.dropped = true })
	return nil
}

func (f *fakeTasks) close() { f.set(func() { f.closed = true }) }

func (f *fakeTasks) traffic() Traffic { return Traffic{Tasks: f.running} }

// memberships is an engine with a Partner, in a synctest bubble.
type memberships struct {
	*testing.T
	*brokers
	engine *Engine
	store  *flakyStore
	config Config
	self   *Partner
	tasks  map[key]*fakeTasks // of the newest membership
	mu     sync.Mutex
	log    bytes.Buffer
}

// flakyStore is a store that can be made unavailable, or to fail at a write.
type flakyStore struct {
	replay.Store
	mu       sync.Mutex
	down     bool
	reopened chan struct{}
	writes   int
	dieAt    int // the number of the write from which on the process is dead; 0 for never
	died     chan struct{}
}

func (s *flakyStore) Append(ctx context.Context, a replay.Append) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return replay.ErrUnavailable
	}
	s.writes++
	if s.dieAt > 0 && s.writes >= s.dieAt {
		if s.writes == s.dieAt {
			close(s.died)
		}
		return replay.ErrClosed
	}
	return s.Store.Append(ctx, a)
}

func (s *flakyStore) Reopened() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reopened
}

func (s *flakyStore) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down = down; !down {
		close(s.reopened)
		s.reopened = make(chan struct{})
	}
}

// inBubble runs a test with an engine.
func inBubble(t *testing.T, test func(*memberships)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &memberships{
			T: t, brokers: newBrokers("a.example", "b.example"),
			store: &flakyStore{Store: replay.NewMemory(replay.Settings{}), reopened: make(chan struct{})},
		}
		patterns := []Broker{mustParse("a.example"), mustParse("b.example"), mustParse("unknown.example")}
		m.config = Config{Name: testPartner, AIC: testAgent, Brokers: patterns, TLS: certifiedAs(testAgent)}
		m.start()
		defer func() {
			m.stop()
			_ = m.store.Close()
		}()
		test(m)
	})
}

func mustParse(pattern string) Broker {
	b, err := ParseBroker(pattern)
	if err != nil {
		panic(err)
	}
	return b
}

// start starts the process.
func (m *memberships) start() {
	m.Helper()
	m.tasks = make(map[key]*fakeTasks)
	var err error
	log := slog.New(slog.NewTextHandler(&m.log, nil))
	m.engine, err = open(m.Context(), m.store, log, m.brokers, func(of *membership) tasks {
		f := &fakeTasks{m: of, b: m.brokers}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.tasks[of.key] = f
		return f
	})
	if err != nil {
		m.Fatal(err)
	}
	m.register()
}

func (m *memberships) register() {
	m.Helper()
	var err error
	if m.self, err = m.engine.Register(m.config); err != nil {
		m.Fatal(err)
	}
}

func (m *memberships) stop() { m.engine.Close() }

// restart ends the process and starts another one.
func (m *memberships) restart() {
	m.Helper()
	m.stop()
	m.start()
	synctest.Wait()
}

// of returns the tasks of a group.
func (m *memberships) of(group string) *fakeTasks {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tasks[key{testPartner, testLeader, group}]
}

// invitation returns an invitation to group g1 at a.example, after changes.
func invitation(changes ...func(*task.Invitation)) *task.Invitation {
	inv := &task.Invitation{
		Protocol: "rabbitmq:4.0", Dialect: "aip/1.0",
		Group:    task.Group{ID: "g1", Leader: task.GroupMember{AIC: testLeader}},
		Server:   task.BrokerServer{Host: "a.example", Port: 5672, VHost: "/v", AccessToken: "user:secret"},
		Exchange: task.Exchange{Name: "x", Type: "fanout"},
	}
	for _, change := range changes {
		change(inv)
	}
	return inv
}

func (m *memberships) invite(changes ...func(*task.Invitation)) (task.Membership, error) {
	m.Helper()
	answer, err := m.self.Join(m.Context(), testLeader, invitation(changes...))
	synctest.Wait()
	return answer, err
}

func (m *memberships) mustInvite(changes ...func(*task.Invitation)) task.Membership {
	m.Helper()
	answer, err := m.invite(changes...)
	if err != nil {
		m.Fatal(err)
	}
	return answer
}

// state returns the state of group g1; empty if there is no membership.
func (m *memberships) state() State {
	m.Helper()
	synctest.Wait()
	for _, s := range m.engine.List() {
		if s.Group == "g1" {
			return s.State
		}
	}
	return ""
}

func (m *memberships) checkState(want State) {
	m.Helper()
	if got := m.state(); got != want {
		m.Errorf("the membership is %q, want %q", got, want)
	}
}

// command returns a command for members, as the Leader publishes it.
func membersCommand(id string, c task.GroupCommand) string {
	return fmt.Sprintf(`{"type":"group-mgmt-message","id":%q,"senderRole":"leader","senderId":%q,`+
		`"groupMgmtCommand":%q,"mentions":["all"]}`, id, testLeader, c)
}

// statuses returns what a broker has got of the member's status, and forgets it.
func (m *memberships) statuses(host string) (out []task.MemberStatus) {
	m.Helper()
	synctest.Wait()
	m.change(func() {
		at := m.byName[host]
		for _, sent := range at.sent {
			var got struct {
				ID     string
				Status task.MemberStatus  `json:"groupMemberStatus"`
				V2     *task.MemberStatus `json:"status"`
			}
			if err := json.Unmarshal(sent.Body, &got); err != nil {
				m.Error(err)
			}
			if got.ID != sent.ID || got.ID == "" {
				m.Errorf("the message %q has the id %q", sent.ID, got.ID)
			}
			if got.V2 != nil {
				got.Status = *got.V2
			}
			out = append(out, got.Status)
		}
		at.sent = nil
	})
	return out
}

func (m *memberships) checkStatuses(host string, want ...task.MemberStatus) {
	m.Helper()
	if diff := cmp.Diff(want, m.statuses(host)); diff != "" {
		m.Errorf("the statuses of the member (-want +got):\n%s", diff)
	}
}

// TestJoin joins a group, and is invited again.
func TestJoin(t *testing.T) {
	inBubble(t, func(m *memberships) {
		want := task.Membership{
			ConnectionName: "agent-AGENT", VHost: "/v", NodeName: "rabbit@a.example", QueueName: testQueue,
			ProcessID: processID, AIC: testAgent, GroupID: "g1",
		}
		if m.self.Has(testLeader, "g1") {
			t.Error("it is a member before it is invited")
		}
		if diff := cmp.Diff(want, m.mustInvite()); diff != "" {
			t.Errorf("the answer (-want +got):\n%s", diff)
		}
		m.checkEvents(t, "declare "+testQueue, "join a.example", "consume a.example")
		m.checkState(Joined)
		if !m.self.Has(testLeader, "g1") || m.self.Has("OTHER", "g1") {
			t.Error("it is not known as a member, or as that of another Leader")
		}
		c := m.asked()[0]
		if c.Owner != testPartner+"\x00"+testLeader || c.Login != broker.Password("user", "secret") || c.Address.TLS ||
			c.Exchange != "x" || c.Prefetch != DefaultPrefetch {
			t.Errorf("the link is made by %+v", c)
		}

		writes := m.store.writes
		if diff := cmp.Diff(want, m.mustInvite()); diff != "" {
			t.Errorf("the answer to the same invitation (-want +got):\n%s", diff)
		}
		if m.store.writes != writes {
			t.Error("the same invitation is stored again")
		}
		m.mustInvite(func(inv *task.Invitation) { inv.Group.Partners = []task.GroupMember{{AIC: "P2"}} })
		if members := m.engine.List()[0].Members; !slices.Equal(members, []string{"P2"}) {
			t.Errorf("the members are %v", members)
		}
		m.checkEvents(t, "join a.example", "close a.example", "join a.example", "close a.example") // that bind it again

		// A broker that takes no publications may not answer.
		m.change(func() { m.byName["a.example"].blocked = true })
		m.mustInvite()
		m.checkEvents(t)
		m.change(func() { m.byName["a.example"].blocked = false })

		// Without the exchange it stays what it was.
		m.change(func() {
			m.byName["a.example"].fails = brokerError(broker.NoExchange, "a.example", "no exchange")
		})
		if _, err := m.invite(); task.KindOf(err) != task.ConnectionFailed {
			t.Errorf("without the exchange: %v", err)
		}
		m.checkState(Joined)
		m.change(func() { m.byName["a.example"].fails = brokerError(broker.QueueGone, "a.example", "no queue") })
		if _, err := m.invite(); err == nil {
			t.Error("without the queue: no error")
		}
		m.checkState("")
	})
}

// certifiedAs returns the TLS configuration of an agent whose certificate has a common name.
func certifiedAs(name string) *tls.Config {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
	return &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{{0}}, Leaf: leaf}, nil
	}}
}

// TestLogins gives each form of an access token.
func TestLogins(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ4In0.c2ln"
	for name, tc := range map[string]struct {
		token   string
		port    int
		allowed string
		login   broker.Login
		tls     bool
	}{
		"password":            {"u:p:q", 5672, "a.example", broker.Password("u", "p:q"), false},
		"JWT":                 {jwt, 5672, "a.example", broker.Token(testAgent, jwt), false},
		"EXTERNAL":            {"", 5672, "a.example", broker.Certificate(testAgent), true},
		"EXTERNAL as another": {"", 5672, "a.example", broker.Certificate(""), true},
		"TLS by port":         {"u:p", 5671, "a.example", broker.Password("u", "p"), true},
		"TLS by pattern":      {"u:p", 5672, "amqps://a.example:5672", broker.Password("u", "p"), true},
		"plain by scheme":     {"u:p", 5672, "amqp://*.example", broker.Password("u", "p"), false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.config.Brokers = []Broker{mustParse(tc.allowed)}
				if name == "EXTERNAL as another" {
					m.config.TLS = certifiedAs(testAgent + ".acps.pub")
				}
				m.register()
				m.mustInvite(func(inv *task.Invitation) { inv.Server.AccessToken, inv.Server.Port = tc.token, tc.port })
				c := m.asked()[0]
				if c.Login != tc.login || c.Address.TLS != tc.tls || int(c.Address.Port) != tc.port {
					t.Errorf("the link is made by %+v", c)
				}
			})
		})
	}
}

// TestRefusals refuses invitations. Nothing stays.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*memberships, *task.Invitation)
		kind   task.Kind
	}{
		"another broker": {func(_ *memberships, inv *task.Invitation) { inv.Server.Host = "10.0.0.1" },
			task.InvitationRejected},
		"a private address": {func(m *memberships, _ *task.Invitation) {
			m.byName["a.example"].fails = brokerError(broker.AddressRefused, "a.example", "loopback")
		}, task.InvitationRejected},
		"no such host": {func(_ *memberships, inv *task.Invitation) { inv.Server.Host = "unknown.example" },
			task.ConnectionFailed},
		"a silent broker": {func(m *memberships, _ *task.Invitation) { m.byName["a.example"].hangs = true },
			task.ConnectionFailed},
		"a wrong password": {func(m *memberships, _ *task.Invitation) {
			m.byName["a.example"].refuses = func(broker.Login) bool { return true }
		}, task.AccessTokenInvalid},
		"no certificate": {func(m *memberships, inv *task.Invitation) {
			inv.Server.AccessToken = ""
			m.config.TLS = nil
			m.register()
		}, task.AccessTokenInvalid},
		"a wrong certificate": {func(m *memberships, inv *task.Invitation) {
			inv.Server.AccessToken = ""
			m.byName["a.example"].refuses = func(broker.Login) bool { return true }
		}, task.ConnectionFailed},
		"a malformed token": {func(_ *memberships, inv *task.Invitation) { inv.Server.AccessToken = "secret" },
			task.AccessTokenInvalid},
		"a token without a user": {func(_ *memberships, inv *task.Invitation) { inv.Server.AccessToken = ":x" },
			task.AccessTokenInvalid},
		"a foreign vhost": {func(m *memberships, _ *task.Invitation) {
			m.byName["a.example"].fails = brokerError(broker.VHostRefused, "a.example", "NOT_ALLOWED")
		}, task.ConnectionFailed},
		"no permission to read": {func(m *memberships, _ *task.Invitation) { m.byName["a.example"].noRead = true },
			task.ConnectionFailed},
		"a store that is down": {func(m *memberships, _ *task.Invitation) { m.store.setDown(true) },
			task.StoreUnavailable},
		"a groupId too long": {func(_ *memberships, inv *task.Invitation) {
			inv.Group.ID = strings.Repeat("g", 250)
		}, task.InvalidParams},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				inv := invitation()
				tc.change(m, inv)
				began := time.Now()
				_, err := m.self.Join(m.Context(), testLeader, inv)
				if task.KindOf(err) != tc.kind {
					t.Errorf("the error is %v, want one of kind %v", err, tc.kind)
				}
				if tc.kind == task.ConnectionFailed {
					e, _ := errors.AsType[*task.Error](err)
					if e.Data["host"] != inv.Server.Host || e.Data["port"] != inv.Server.Port || e.Detail == "" {
						t.Errorf("the error has the data %v and the detail %q", e.Data, e.Detail)
					}
				}
				if time.Since(began) > 5*time.Second {
					t.Errorf("the answer took %v", time.Since(began))
				}
				if strings.Contains(fmt.Sprint(err), "secret") || strings.Contains(m.log.String(), "secret") {
					t.Error("an error or a log line has the access token")
				}
				if m.store.down {
					m.store.setDown(false)
				}
				synctest.Wait()
				m.checkState("")
				for _, at := range m.byName {
					if len(at.queues) > 0 || len(at.links) > 0 {
						t.Errorf("queues %v and %d links stay", at.queues, len(at.links))
					}
				}
				m.restart()
				m.checkState("")
			})
		})
	}
}

// TestLimitOfGroups refuses a membership more than are allowed.
func TestLimitOfGroups(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.config.MaxGroups, m.config.MaxGroupsPerLeader = 3, 2
		m.register()
		for i, tc := range []struct {
			leader, group string
			limit         any
		}{{"L1", "1", nil}, {"L1", "2", nil}, {"L1", "3", "groups_per_leader"}, {"L2", "3", nil}, {"L2", "4", "groups"},
			{"L1", "1", nil}} {
			_, err := m.self.Join(m.Context(), tc.leader, invitation(func(inv *task.Invitation) {
				inv.Group.ID, inv.Group.Leader.AIC = tc.group, tc.leader
			}))
			if e, _ := errors.AsType[*task.Error](err); tc.limit == nil && err != nil || tc.limit != nil &&
				(e == nil || e.Kind != task.LimitExceeded || e.Data["limit"] != tc.limit) {
				t.Errorf("invitation %d: %v, want the limit %v", i, err, tc.limit)
			}
		}
	})
}

// TestLimitOfUnverified counts all Leaders that have proven nothing as one.
func TestLimitOfUnverified(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.config.MaxGroupsPerLeader = 1
		m.register()
		for i, leader := range []string{quota.Unverified + "L1", quota.Unverified + "L2"} {
			_, err := m.self.Join(m.Context(), leader, invitation())
			if (err == nil) != (i == 0) {
				t.Errorf("invitation %d: %v", i, err)
			}
		}
	})
}

// TestTwoInvitations sends two different invitations to one group at once.
func TestTwoInvitations(t *testing.T) {
	inBubble(t, func(m *memberships) {
		var all sync.WaitGroup
		for _, token := range []string{"u:1", "u:2", "u:3"} {
			all.Go(func() {
				_, err := m.self.Join(m.Context(), testLeader, invitation(func(inv *task.Invitation) {
					inv.Server.AccessToken = token
				}))
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if at := m.byName["a.example"]; len(at.links) != 1 || len(m.asked()) != 3 {
			t.Errorf("there were %d joins, and there are %d links", len(m.asked()), len(at.links))
		}
	})
}

func token(token string) func(*task.Invitation) {
	return func(inv *task.Invitation) { inv.Server.AccessToken = token }
}

func host(host string) func(*task.Invitation) {
	return func(inv *task.Invitation) { inv.Server.Host = host }
}

// TestNewToken invites again with a new token: the old link is closed before the new one consumes, so that messages
// keep their order. With a token that is refused, the old link stays.
func TestNewToken(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		at := m.byName["a.example"]
		m.change(func() { at.refuses = func(l broker.Login) bool { return l == broker.Password("user", "wrong") } })
		if _, err := m.invite(token("user:wrong")); task.KindOf(err) != task.AccessTokenInvalid {
			t.Errorf("the error is %v", err)
		}
		m.checkEvents(t)
		m.checkState(Joined)

		m.mustInvite(token("user:new"))
		m.checkEvents(t, "join a.example", "close a.example", "consume a.example")
		m.checkState(Joined)

		// One that may not read is found out only when the old link is closed: then that is made again.
		m.change(func() { at.noRead = true })
		if _, err := m.invite(token("user:blind")); task.KindOf(err) != task.ConnectionFailed {
			t.Errorf("the error is %v", err)
		}
		m.change(func() { at.noRead = false })
		at.publish("while away")
		m.checkEvents(t, "join a.example", "close a.example", "close a.example", "join a.example", "close a.example")
		time.Sleep(time.Minute)
		m.checkState(Joined)
		m.checkEvents(t, "join a.example", "consume a.example", "ack while away")
		asked := m.asked()
		if login := asked[len(asked)-1].Login; login != broker.Password("user", "new") {
			t.Errorf("the login is %v", login)
		}
	})
}

// TestOtherBroker moves a membership to another broker. What waits at the old one is received first.
func TestOtherBroker(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		a, b := m.byName["a.example"], m.byName["b.example"]
		m.change(func() { b.fails = brokerError(broker.NoExchange, "b.example", "no exchange") })
		if _, err := m.invite(host("b.example")); task.KindOf(err) != task.ConnectionFailed {
			t.Errorf("the error is %v", err)
		}
		m.checkEvents(t)
		m.checkState(Joined)

		m.change(func() {
			b.fails = nil
			b.queues[testQueue] = &fakeQueue{messages: []string{"third"}}
			a.links[0].paused = true
		})
		a.publish("first")
		a.publish("second")
		time.AfterFunc(drainLimit/2, func() {
			m.change(func() { a.links[0].paused = false })
			a.deliver()
		})
		m.mustInvite(host("b.example"))
		time.Sleep(drainLater)
		m.checkEvents(t, "join b.example", "ack first", "ack second", "consume b.example", "ack third",
			"delete "+testQueue+" at a.example", "close a.example")
		if got := m.of("g1").received; !slices.Equal(got, []string{"first", "second", "third"}) {
			t.Errorf("received were %v", got)
		}
		m.restart()
		m.checkState(Waiting) // it has no key
		if s := m.engine.List()[0]; s.Broker != "b.example:5672" {
			t.Errorf("it belongs to %s", s.Broker)
		}
	})
}

// TestOneCluster moves a membership to another node of its cluster: the queue is the same, and is not deleted.
func TestOneCluster(t *testing.T) {
	inBubble(t, func(m *memberships) {
		b := m.byName["b.example"]
		b.cluster, b.queues = m.byName["a.example"].cluster, m.byName["a.example"].queues
		m.mustInvite()
		m.took()
		m.mustInvite(host("b.example"))
		time.Sleep(drainLater)
		m.checkEvents(t, "join b.example", "close a.example", "consume b.example")
	})
}

// TestReconnect loses the link.
func TestReconnect(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		at := m.byName["a.example"]
		m.change(func() { at.fails = brokerError(broker.Unreachable, "a.example", "refused") })
		at.cut(broker.Closed)
		at.publish("meanwhile")
		m.checkState(Reconnecting)
		if !m.self.Has(testLeader, "g1") {
			t.Error("it is no member while it is reconnected")
		}
		time.Sleep(time.Hour)
		if n := len(m.asked()); n < 100 || n > 300 {
			t.Errorf("there were %d attempts in an hour", n)
		}
		m.checkState(Reconnecting)
		if s := m.engine.List()[0]; !strings.Contains(s.LastError, "refused") {
			t.Errorf("the last error is %q", s.LastError)
		}
		m.change(func() { at.fails = nil })
		time.Sleep(2 * longestRetry)
		m.checkState(Joined)
		m.checkEvents(t, "close a.example", "join a.example", "consume a.example", "ack meanwhile")

		// An invitation does not wait for the next attempt, nor for one that hangs.
		m.change(func() { at.hangs = true })
		at.cut(broker.Closed)
		time.Sleep(firstRetry)
		synctest.Wait()
		waiting := 0
		m.change(func() { waiting = m.waiting })
		if waiting != 1 {
			t.Fatal("no attempt is made")
		}
		m.change(func() { at.hangs = false })
		began := time.Now()
		m.mustInvite()
		if time.Since(began) > 0 {
			t.Errorf("the invitation waited %v", time.Since(began))
		}
		m.checkState(Joined)
		for line, want := range map[string]int{
			"a group is connected to its broker": 3, "the connection of a group to its broker was lost": 2,
		} {
			if n := strings.Count(m.log.String(), line); n != want {
				t.Errorf("%q is logged %d times, want %d", line, n, want)
			}
		}
	})
}

// TestLostForLong gives up a broker that cannot be reached for days.
func TestLostForLong(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		at := m.byName["a.example"]
		m.change(func() { at.fails = brokerError(broker.Unreachable, "a.example", "refused") })
		at.cut(broker.Closed)
		time.Sleep(keepLost - time.Minute)
		m.checkState(Reconnecting)
		tasks := m.of("g1")
		time.Sleep(2 * time.Minute)
		m.checkState("")
		if !tasks.canceled || !tasks.dropped || !tasks.closed {
			t.Errorf("its tasks are %+v", tasks)
		}
	})
}

// TestForcedRemoval deletes the queue, while there is a link and while there is none.
func TestForcedRemoval(t *testing.T) {
	removed := func(m *memberships, tasks *fakeTasks) {
		m.Helper()
		m.checkState("")
		if !tasks.canceled || !tasks.dropped || !tasks.closed {
			m.Errorf("its tasks are %+v", tasks)
		}
		m.checkEvents(m.T, "close a.example", "cancel")
		m.restart()
		m.checkState("")
		m.mustInvite() // the Leader may invite it again
		m.checkEvents(m.T, "declare "+testQueue, "join a.example", "consume a.example")
		m.checkState(Joined)
	}
	t.Run("while it has a link", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			m.took()
			tasks := m.of("g1")
			m.byName["a.example"].cut(broker.QueueGone)
			removed(m, tasks)
		})
	})
	t.Run("while it was away", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			m.took()
			tasks, at := m.of("g1"), m.byName["a.example"]
			m.change(func() { clear(at.queues) })
			at.cut(broker.Closed)
			time.Sleep(firstRetry)
			removed(m, tasks)
		})
	})
	t.Run("and is invited before it has noticed", func(t *testing.T) {
		inBubble(t, func(m *memberships) {
			m.mustInvite()
			m.took()
			tasks, at := m.of("g1"), m.byName["a.example"]
			m.change(func() {
				clear(at.queues)
				at.fails = brokerError(broker.Unreachable, "a.example", "refused")
			})
			at.cut(broker.Closed)
			m.change(func() { at.fails = nil })
			m.mustInvite()
			m.checkEvents(t, "close a.example", "cancel", "declare "+testQueue, "join a.example", "consume a.example")
			if !tasks.closed || tasks == m.of("g1") {
				t.Error("the new membership has the tasks of the old one")
			}
		})
	})
}

// TestLoginRefused waits for an invitation when a token has expired.
func TestLoginRefused(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		at := m.byName["a.example"]
		m.change(func() { at.refuses = func(l broker.Login) bool { return l == broker.Password("user", "secret") } })
		at.cut(broker.LoginRefused)
		time.Sleep(firstRetry)
		m.checkState(Waiting)
		joins := len(m.asked())
		time.Sleep(time.Hour)
		if n := len(m.asked()) - joins; n < 5 || n > 30 {
			t.Errorf("there were %d attempts in an hour", n)
		}
		m.checkEvents(t, "close a.example")
		at.publish("meanwhile")
		m.mustInvite(token("user:new"))
		m.checkEvents(t, "join a.example", "consume a.example", "ack meanwhile")
		m.checkState(Joined)
	})
}

// TestRestart restarts the gateway, with and without a key.
func TestRestart(t *testing.T) {
	key1, key2 := bytes.Repeat([]byte{1}, KeySize), bytes.Repeat([]byte{2}, KeySize)
	for name, tc := range map[string]struct {
		before, after []byte
		token         string
		want          State
	}{
		"the same key":  {key1, key1, "user:secret", Joined},
		"no key":        {nil, nil, "user:secret", Waiting},
		"another key":   {key1, key2, "user:secret", Waiting},
		"the first key": {nil, key1, "user:secret", Waiting},
		"EXTERNAL":      {nil, nil, "", Joined},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.config.Key = tc.before
				m.register()
				m.mustInvite(token(tc.token))
				m.byName["a.example"].publish(membersCommand("c1", task.Mute))
				m.state()
				m.took()
				for e := range m.store.List(m.Context(), "", "") {
					if bytes.Contains(e.Head.Metadata, []byte("secret")) {
						t.Errorf("the store has the access token: %s", e.Head.Metadata)
					}
				}
				m.config.Key = tc.after
				m.restart()
				m.checkState(tc.want)
				if !m.of("g1").muted {
					t.Error("the member is not muted any more")
				}
				if tc.want == Waiting {
					m.checkEvents(t, "close a.example")
					m.mustInvite(token(tc.token))
					m.checkState(Joined)
					m.took()
					if tc.after != nil { // from now on it is sealed by the present key
						m.restart()
						m.checkState(Joined)
					}
				} else {
					m.checkEvents(t, "close a.example", "join a.example", "consume a.example")
				}
			})
		})
	}
}

// TestReload changes the configuration while the gateway runs.
func TestReload(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite()
		m.took()
		old := m.self
		m.config.Key = bytes.Repeat([]byte{1}, KeySize) // the token is sealed from now on
		m.register()
		old.Unregister()
		m.checkState(Joined)
		m.checkEvents(t)
		m.restart()
		m.checkState(Joined)
		m.took()

		m.self.Unregister()
		m.checkState(Unregistered)
		m.checkEvents(t, "close a.example")
		if err := m.engine.Leave(m.Context(), testPartner, testLeader, "g2"); task.KindOf(err) != task.InvalidParams {
			t.Errorf("the error is %v", err)
		}
		m.register()
		m.checkState(Joined)
		m.checkEvents(t, "join a.example", "consume a.example")

		// An invitation by way of a configuration that is gone by then is answered, and the link is closed.
		last := m.self
		last.Unregister()
		if _, err := last.Join(m.Context(), testLeader, invitation()); err != nil {
			t.Error(err)
		}
		m.checkState(Unregistered)
		if links := len(m.byName["a.example"].links); links != 0 {
			t.Errorf("there are %d links", links)
		}
		m.register()
		m.checkState(Joined)
		m.took()

		// A broker that is not allowed any more is left.
		old, allowed := m.self, m.config.Brokers
		m.config.Brokers = []Broker{mustParse("b.example")}
		m.register()
		old.Unregister()
		m.checkState(Waiting)
		m.checkEvents(t, "close a.example")
		old = m.self
		m.config.Brokers = allowed
		m.register()
		old.Unregister()
		m.checkState(Joined)

		// So is one for which the agent has another name.
		old = m.self
		m.config.AIC = "RENAMED"
		m.register()
		old.Unregister()
		m.checkState(Waiting)
	})
}
