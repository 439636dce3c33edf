// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
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

// bodies returns the received bodies.
func (f *fakeTasks) bodies() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.received)
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

func (*fakeTasks) follow(context.Context, string, string, time.Duration) (partner.Accepted, error) {
	return partner.Accepted{}, errLeaves
}

func (f *fakeTasks) connect(l link) { f.set(func() { f.link = l }) }

func (f *fakeTasks) mute(muted bool) { f.set(func() { f.muted = muted }) }

func (f *fakeTasks) note(event string) { f.b.change(func() { f.b.note(event) }) }

func (f *fakeTasks) stop(ctx context.Context) error {
	f.note("stop")
	return ctx.Err()
}

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

// flakyStore is a store to be made unavailable, or to fail at a write.
type flakyStore struct {
	replay.Store
	mu       sync.Mutex
	down     bool
	reopened chan struct{}
	writes   int
	dieAt    int // the number of the write to kill the process; 0 for never
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
	bubble.Test(t, func(t *testing.T) {
		m := &memberships{
			T: t, brokers: newBrokers("a.example", "b.example"),
			store: &flakyStore{Store: replay.NewMemory(replay.Settings{}), reopened: make(chan struct{})},
		}
		patterns := []Broker{mustParse("a.example"), mustParse("b.example"), mustParse("unknown.example")}
		m.config = Config{Name: testPartner, AIC: testAgent, Brokers: patterns, TLS: certifiedAs(testAgent),
			Exchanges: map[string][]string{testLeader: {"x"}}}
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

// pass lets a time pass on the bubble's clock, and waits for the events of then. No real time passes; outside the
// bubble it panics.
func (m *memberships) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// start starts the process.
func (m *memberships) start() {
	m.Helper()
	m.tasks = make(map[key]*fakeTasks)
	var err error
	log := slog.New(slog.NewTextHandler(&m.log, nil))
	m.engine, err = open(shard.One(m.store), log, m.brokers, func(of *membership) tasks {
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
	if m.self, err = m.engine.Prepare(m.config); err != nil {
		m.Fatal(err)
	}
	m.self.Register()
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

// statuses returns the member's statuses at a broker, and forgets them.
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
