// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// rabbit starts a RabbitMQ, with a Leader's exchange in each of two virtual hosts.
func rabbit(t *testing.T) (b *rabbittest.Broker, leader func(t *testing.T, vhost string) *amqp.Channel) {
	t.Helper()
	b, err := rabbittest.Start(rabbittest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(b.AddUser("leader", "secret"))
	must(b.AddUser("partner", "old"))
	for _, vhost := range []string{"one", "two"} {
		must(b.AddVhost(vhost))
		must(b.Permit("leader", vhost, ".*", ".*", ".*"))
		must(b.Permit("partner", vhost, "^group_LEADER_g.*_AGENT$", "^([xd]|group_LEADER_g.*_AGENT)$",
			"^([xd]|group_LEADER_g.*_AGENT)$"))
	}
	return b, func(t *testing.T, vhost string) *amqp.Channel {
		t.Helper()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		conn, err := amqp.DialConfig("amqp://"+b.Address(), amqp.Config{Vhost: vhost,
			SASL: []amqp.Authentication{&amqp.PlainAuth{Username: "leader", Password: "secret"}}})
		must(err)
		t.Cleanup(func() { _ = conn.Close() })
		channel, err := conn.Channel()
		must(err)
		must(channel.ExchangeDeclare("x", amqp.ExchangeFanout, true, false, false, false, nil))
		must(channel.ExchangeDeclare("d", amqp.ExchangeDirect, true, false, false, false, nil))
		return channel
	}
}

// atRabbit is an engine at a real broker, with the tasks of memberships left out.
type atRabbit struct {
	memberships
	broker *rabbittest.Broker
	logged asynctest.Buffer
}

func newAtRabbit(t *testing.T, b *rabbittest.Broker) *atRabbit {
	m := &atRabbit{broker: b}
	m.T, m.brokers = t, newBrokers()
	m.store = &flakyStore{Store: replay.NewMemory(replay.Settings{}), reopened: make(chan struct{})}
	m.config = Config{
		Name: testPartner, AIC: testAgent, Brokers: []Broker{mustParse("127.0.0.1")}, Key: bytes.Repeat([]byte("k"), KeySize),
		Egress: &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}
	return m
}

// start starts the process.
func (m *atRabbit) start() {
	m.Helper()
	var err error
	m.tasks = make(map[key]*fakeTasks)
	log := slog.New(slog.NewTextHandler(&m.logged, nil))
	m.engine, err = open(shard.One(m.store), log, newPool(), func(of *membership) tasks {
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

// invite invites to a group at the exchange x, after changes. As a Leader does, it repeats an invitation not answered
// in time, because the broker is slow.
func (m *atRabbit) invite(group, vhost, token string, changes ...func(*task.Invitation)) (err error) {
	for range 10 {
		_, err = m.self.Join(m.Context(), testLeader, invitation(func(inv *task.Invitation) {
			inv.Group.ID = group
			for _, change := range changes {
				change(inv)
			}
			inv.Server = task.BrokerServer{Host: "127.0.0.1", Port: m.broker.Port, VHost: vhost, AccessToken: token}
		}))
		if err == nil || !strings.Contains(err.Error(), "in time") {
			break
		}
	}
	return err
}

// in returns the number of memberships in a state.
func (m *atRabbit) in(s State) (n int) {
	for _, status := range m.engine.List() {
		if status.State == s {
			n++
		}
	}
	return n
}

// connections returns the number of the gateway's connections at the broker.
func (m *atRabbit) connections() (n int) {
	m.Helper()
	names, err := m.broker.Connections()
	if err != nil {
		m.Fatal(err)
	}
	for _, name := range names {
		if name == connectionName(testAgent) {
			n++
		}
	}
	return n
}

func TestRabbit(t *testing.T) {
	b, leader := rabbit(t)
	before := runtime.NumGoroutine()
	t.Run("one membership", func(t *testing.T) { testMembership(newAtRabbit(t, b), leader) })
	t.Run("hundreds of groups", func(t *testing.T) { testManyGroups(newAtRabbit(t, b), leader) })
	asynctest.Eventually(t, "no goroutine stays", func() bool { return runtime.NumGoroutine() <= before })
}

// testManyGroups has one Leader invite to hundreds of groups at once. They share few connections, and all of them come
// back when these are closed.
func testManyGroups(m *atRabbit, leader func(*testing.T, string) *amqp.Channel) {
	const groups = 300
	leader(m.T, "one")
	if err := m.broker.AddUser("partner", "new"); err != nil {
		m.Fatal(err)
	}
	m.start()
	defer func() { m.stop() }()
	few := func() {
		asynctest.Eventually(m, "the groups have few connections", func() bool {
			n := m.connections()
			return n >= 1 && n <= 4
		})
	}
	errs := make(chan error, groups)
	for i := range groups {
		go func() {
			group := fmt.Sprintf("g%d", i)
			errs <- m.invite(group, "one", "partner:new", func(inv *task.Invitation) {
				inv.Exchange = task.Exchange{Name: "d", Type: "direct", RoutingKey: group}
			})
		}()
	}
	for range groups {
		if err := <-errs; err != nil {
			m.Error(err)
		}
	}
	few()
	if _, err := m.broker.CloseConnections(connectionName(testAgent)); err != nil {
		m.Fatal(err)
	}
	asynctest.Eventually(m, "a connection is lost", func() bool {
		return strings.Contains(m.logged.String(), "the connection of a group to its broker was lost")
	})
	for n := m.in(Joined); n < groups; n = m.in(Joined) {
		asynctest.Eventually(m, "one more group is back", func() bool { return m.in(Joined) > n })
	}
	few()
	for i := range groups {
		go func() { errs <- m.engine.Leave(m.Context(), testPartner, testLeader, fmt.Sprintf("g%d", i)) }()
	}
	for range groups {
		if err := <-errs; err != nil {
			m.Error(err)
		}
	}
	queues, err := m.broker.Queues("one")
	if err != nil || len(queues) > 0 {
		m.Errorf("%d queues stay, %v", len(queues), err)
	}
	asynctest.Eventually(m, "no connection stays", func() bool { return m.connections() == 0 })
}

// testMembership has one membership live through everything.
func testMembership(m *atRabbit, leader func(*testing.T, string) *amqp.Channel) {
	t, b := m.T, m.broker
	start := m.start
	start()
	defer func() { m.stop() }()
	one, two := leader(t, "one"), leader(t, "two")
	history, err := one.QueueDeclare("history", false, true, true, false, nil)
	if err == nil {
		err = one.QueueBind(history.Name, "", "x", false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	statuses, err := one.Consume(history.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(to *amqp.Channel, body string) {
		t.Helper()
		if err := to.Publish("x", "", false, false, amqp.Publishing{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	// nextStatus returns the next message of the agent.
	nextStatus := func() string {
		t.Helper()
		for d := range statuses {
			if d.MessageId != "" {
				return string(d.Body)
			}
		}
		t.Fatal("the history has ended")
		return ""
	}
	invite := func(vhost, token string) error { return m.invite("g1", vhost, token) }
	mustInvite := func(vhost, token string) {
		t.Helper()
		if err := invite(vhost, token); err != nil {
			t.Fatal(err)
		}
	}
	queues := func(vhost string) []string {
		t.Helper()
		names, err := b.Queues(vhost)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(names, func(n string) bool { return n == "history" })
	}
	state := func() State {
		for _, s := range m.engine.List() {
			return s.State
		}
		return ""
	}
	eventually := func(want State) {
		t.Helper()
		asynctest.Eventually(t, "the membership is "+string(want), func() bool { return state() == want })
	}
	received := func(want ...string) {
		t.Helper()
		asynctest.Eventually(t, "all is received", func() bool {
			tasks := m.of("g1")
			tasks.mu.Lock()
			defer tasks.mu.Unlock()
			return slices.Equal(tasks.received, want)
		})
	}

	if err := invite("one", "partner:wrong"); task.KindOf(err) != task.AccessTokenInvalid {
		t.Errorf("a wrong password: %v", err)
	}
	if err := invite("three", "partner:old"); task.KindOf(err) != task.ConnectionFailed {
		t.Errorf("a foreign vhost: %v", err)
	}
	mustInvite("one", "partner:old")
	if got := queues("one"); !slices.Equal(got, []string{testQueue}) {
		t.Errorf("the queues are %v", got)
	}
	if node := m.engine.List()[0].Node; node == "" {
		t.Error("the broker says nothing of itself")
	}
	publish(one, membersCommand("c1", task.GetStatus))
	if s := nextStatus(); !bytes.Contains([]byte(s), []byte(`"connected":true`)) {
		t.Errorf("the status is %s", s)
	}

	// A new password, and a cut. Nothing is lost.
	if err := b.AddUser("partner", "new"); err != nil {
		t.Fatal(err)
	}
	mustInvite("one", "partner:new")
	if err := invite("one", "partner:old"); task.KindOf(err) != task.AccessTokenInvalid {
		t.Errorf("the old password: %v", err)
	}
	asynctest.Eventually(t, "it has one connection", func() bool { return m.connections() == 1 })
	publish(one, "first")
	if n, err := b.CloseConnections("agent-AGENT"); n != 1 || err != nil {
		t.Errorf("%d connections were closed, %v", n, err)
	}
	publish(one, "second")
	eventually(Joined)
	asynctest.Eventually(t, "the second message is received", func() bool {
		tasks := m.of("g1")
		tasks.mu.Lock()
		defer tasks.mu.Unlock()
		return slices.Contains(tasks.received, "second")
	})
	asynctest.Eventually(t, "it is acknowledged", func() bool { return messages(t, b, "one", testQueue) == 0 })

	// The process starts again.
	m.stop()
	publish(one, "third")
	start()
	eventually(Joined)
	received("third")

	// It moves to another virtual host. Waiting messages are received first, and the old queue goes.
	publish(one, "fourth")
	mustInvite("two", "partner:new")
	publish(two, "fifth")
	received("third", "fourth", "fifth")
	asynctest.Eventually(t, "the old queue is deleted", func() bool { return len(queues("one")) == 0 })

	// The Leader removes it, and then invites it again.
	if _, err := two.QueueDelete(testQueue, false, false, false); err != nil {
		t.Fatal(err)
	}
	eventually("")
	if got := queues("two"); len(got) > 0 {
		t.Errorf("the queues are %v", got)
	}
	mustInvite("one", "partner:new")

	// The Leader deletes its exchange, declares it again, and invites again.
	err = one.ExchangeDelete("x", false, false)
	if err == nil {
		err = one.ExchangeDeclare("x", amqp.ExchangeFanout, true, false, false, false, nil)
	}
	if err == nil {
		err = one.QueueBind(history.Name, "", "x", false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustInvite("one", "partner:new")
	publish(one, membersCommand("c3", task.GetStatus))
	if s := nextStatus(); !bytes.Contains([]byte(s), []byte(`"connected":true`)) {
		t.Errorf("the status is %s", s)
	}

	// It is removed while it is away.
	m.stop()
	if _, err := one.QueueDelete(testQueue, false, false, false); err != nil {
		t.Fatal(err)
	}
	start()
	eventually("")
	if got := queues("one"); len(got) > 0 {
		t.Errorf("the queues are %v", got)
	}

	// It is dissolved while it is away.
	mustInvite("one", "partner:new")
	m.stop()
	publish(one, membersCommand("c4", task.Disband))
	if err := one.ExchangeDelete("x", false, false); err != nil {
		t.Fatal(err)
	}
	start()
	eventually("")
	if got := queues("one"); len(got) > 0 {
		t.Errorf("the queues are %v", got)
	}
	err = one.ExchangeDeclare("x", amqp.ExchangeFanout, true, false, false, false, nil)
	if err == nil {
		err = one.QueueBind(history.Name, "", "x", false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}

	// It leaves.
	mustInvite("/one", "partner:new") // as AIP's example writes it
	publish(one, membersCommand("c2", task.LeaveGroup))
	if s := nextStatus(); !bytes.Contains([]byte(s), []byte(`"connected":false`)) {
		t.Errorf("the last status is %s", s)
	}
	eventually("")
	if got := queues("one"); len(got) > 0 {
		t.Errorf("the queues are %v", got)
	}
	asynctest.Eventually(t, "its connection is closed", func() bool { return m.connections() == 0 })
	if err := one.ExchangeDelete("x", false, false); err != nil {
		t.Fatal(err)
	}
}
