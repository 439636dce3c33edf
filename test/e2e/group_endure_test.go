// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/task"
)

// tokenKey seals the tokens of invitations in the stores of tests.
var tokenKey = strings.Repeat("0123456789abcdef", 4)

// endures leads many tasks through their life while the test does harm, and compares all that was published with the
// answers to get. harm is called twice, each time when a third of the commands of that part are sent.
func (g *groupLeader) endures(m *member, tasks int, harm func(part string)) {
	g.t.Helper()
	id := func(i int) string { return fmt.Sprintf("task-%d", i) }
	part := func(command, text, state string) {
		g.t.Helper()
		var sent sync.WaitGroup
		third := make(chan struct{})
		sent.Go(func() {
			for i := range tasks {
				if i == tasks/3 {
					close(third)
				}
				g.say(command, id(i), text)
			}
		})
		<-third
		harm(command)
		sent.Wait()
		for i := range tasks {
			g.waitForState(m.aic, id(i), state)
		}
	}
	part("start", "hello", "awaiting-completion")
	part("complete", "", "completed")
	caller := m.calledBy(g.certificate)
	for i := range tasks {
		got := caller.get(id(i))
		checkHistory(g.t, got)
		if n := len(got.MessageHistory); n != 2 {
			g.t.Errorf("%s has the commands %v", got.ID, commands(got.MessageHistory))
		}
		g.compare(m.aic, got)
	}
	eventually(g.t, "everything is confirmed", func() bool {
		groups := m.groups()
		return len(groups) == 1 && groups[0].Get("unconfirmed").Int() == 0 && groups[0].Get("lag").Int() == 0
	})
	g.t.Logf("%d messages for %d tasks, %d of them came again", len(g.all(m.aic)), tasks, len(g.repeated(m.aic)))
}

// TestGroupKill kills the gateway in the middle of a thousand group tasks.
func TestGroupKill(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	b := sharedBroker(t)
	m := makeMember(t)
	m.config = m.fronting("a2a/legacy http://"+agent, "localhost", "token_key "+tokenKey)
	m.config.handle = strings.Replace(m.config.handle, "aic ", "agent {\nresend always\n}\naic ", 1) // no work twice
	m.start(m.config)
	g := newGroup(t, b, "killed", certificates(t).LeaderV1)
	g.join(m)
	g.endures(m, 1000, func(string) {
		m.kill()
		m.start(m.config)
	})
}

// TestGroupBrokerOutage stops and kills the broker in the middle of group tasks.
func TestGroupBrokerOutage(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	b := ownBroker(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := newGroup(t, b, "broken", certificates(t).LeaderV1)
	g.join(m)
	g.endures(m, 100, func(part string) {
		if part == "start" {
			noError(t, b.Stop(), b.Run())
		} else {
			noError(t, b.Kill(), b.Run())
		}
	})
}

// TestGroupNetworkCut cuts the network between a gateway and the broker again and again.
func TestGroupNetworkCut(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	b := sharedBroker(t)
	var down atomic.Bool
	between := newWire(t, b.Address(), func() damage {
		if down.Load() {
			return damage{after: 0}
		}
		return damage{after: -1}
	})
	m := newMember(t, "a2a/legacy http://"+agent, between.address())
	g := newGroup(t, b, "cut", certificates(t).LeaderV1)
	joinThrough(g, m, between.address())
	g.endures(m, 300, func(string) {
		between.cut()
		down.Store(true)
		between.cut()
		m.waitForLoss()
		down.Store(false)
	})
}

// TestGroupSilentLoss loses all that a gateway and the broker send to each other, without closing a connection: each of
// them must find that out by itself. New connections are lost, too, until the gateway has found it out.
func TestGroupSilentLoss(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	b := sharedBroker(t)
	between := newWire(t, b.Address(), func() damage { return damage{after: -1} })
	m := newMember(t, "a2a/legacy http://"+agent, between.address())
	g := newGroup(t, b, "silent", certificates(t).LeaderV1)
	joinThrough(g, m, between.address())
	g.endures(m, 150, func(command string) {
		if command != "start" {
			return
		}
		between.lose()
		m.waitForLoss()
		between.deliver()
	})
}

// waitForLoss waits until a member has noticed that it has lost its connection to the broker.
func (m *member) waitForLoss() {
	m.t.Helper()
	eventually(m.t, "the member tries to come back", func() bool {
		groups := m.groups()
		return len(groups) == 1 && groups[0].Get("state").String() != "joined"
	})
}

// joinThrough invites a member to come to the broker by another address.
func joinThrough(g *groupLeader, m *member, address string) {
	g.t.Helper()
	host, port, _ := strings.Cut(address, ":")
	g.host = host
	_, err := fmt.Sscan(port, &g.port)
	noError(g.t, err)
	g.join(m)
}

// TestGroupReload replaces the configuration of a gateway in the middle of group tasks.
func TestGroupReload(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	b := sharedBroker(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := newGroup(t, b, "reloaded", certificates(t).LeaderV1)
	g.join(m)
	g.endures(m, 200, func(string) {
		for range 3 {
			if said := m.reload(m.config); said != "" {
				t.Errorf("a reload: %s", said)
			}
		}
	})
}

// TestGroupRestart restarts a gateway: with a key it has the token of its invitation, without it waits for another one.
// Meanwhile its queue stays.
func TestGroupRestart(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	_, agent := sampleAgent(t)
	for name, settings := range map[string][]string{"with a key": {"token_key " + tokenKey}, "without a key": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMember(t, "a2a/legacy http://"+agent, "localhost", settings...)
			g := newGroup(t, b, "restarted", certificates(t).LeaderV1)
			joined := g.join(m)
			g.say("start", "before", "slow 2")
			g.waitForState(m.aic, "before", "working")
			m.stop(t)
			g.say("start", "between", "hello")
			m.start(m.config)
			if settings == nil {
				eventually(t, "the member waits for an invitation", func() bool {
					groups := m.groups()
					return len(groups) == 1 && groups[0].Get("state").String() == "waiting"
				})
				if got := g.of(m.aic, "between"); len(got) > 0 {
					t.Errorf("a member without a token has published %s", got[0].raw)
				}
				if again := g.join(m); again.QueueName != joined.QueueName {
					t.Errorf("the queue was %s and is %s", joined.QueueName, again.QueueName)
				}
			}
			for _, id := range []string{"before", "between"} {
				g.waitForState(m.aic, id, "awaiting-completion")
				g.check(m, id, task.Accepted, task.Working, task.AwaitingCompletion)
			}
			m.nothingOf(t, "pass:word")
		})
	}
}

// nothingOf demands that a secret is in no log line.
func (m *member) nothingOf(t testing.TB, secret string) {
	t.Helper()
	if strings.Contains(m.out.String(), secret) {
		t.Errorf("%s is in the log", secret)
	}
}

// TestInvitedAgain repeats an invitation, moves the member to another broker, and fails to.
func TestInvitedAgain(t *testing.T) {
	t.Parallel()
	b := sharedBroker(t)
	_, agent := sampleAgent(t)
	way := newWire(t, b.Address(), func() damage { return damage{after: -1} })
	m := newMember(t, "a2a/legacy http://"+agent, "localhost 127.0.0.1")
	g := newGroup(t, b, "again", certificates(t).LeaderV1)
	first := g.join(m)
	if second := g.join(m); *second != *first {
		t.Errorf("an invitation is answered %+v, and again %+v", first, second)
	}
	if got := connectionsOf(t, b, first.ConnectionName); got != 1 {
		t.Errorf("there are %d connections", got)
	}
	g.say("start", "one", "slow 1")
	// The broker at an address where none is: the membership stays as it is.
	bad := g.invitation(m.aic)
	bad["server"].(object)["port"] = freeport.Closed(t)
	if joined, refused := g.invite(m.calledBy(g.certificate), bad); joined != nil || refused.Code != -32603 {
		t.Errorf("an invitation to no broker is answered %+v", joined)
	}
	g.waitForState(m.aic, "one", "awaiting-completion")
	// The same broker at another address.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			g.say("start", fmt.Sprint("moved-", i), "hello")
		}
	}()
	joinThrough(g, m, way.address())
	<-done
	for i := range 100 {
		g.waitForState(m.aic, fmt.Sprint("moved-", i), "awaiting-completion")
		g.check(m, fmt.Sprint("moved-", i), task.Accepted, task.Working, task.AwaitingCompletion)
	}
	eventually(t, "the old connection is closed", func() bool { return connectionsOf(t, b, first.ConnectionName) == 1 })
}

func connectionsOf(t testing.TB, b *rabbittest.Broker, name string) (n int) {
	t.Helper()
	names, err := b.Connections()
	noError(t, err)
	for _, it := range names {
		if it == name {
			n++
		}
	}
	return n
}
