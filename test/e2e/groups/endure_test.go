// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestGroupKill kills the gateway in the middle of a thousand group tasks.
func TestGroupKill(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	b := site.SharedBroker(t)
	m := site.MakeMember(t)
	m.Config = m.Fronting("a2a/legacy http://"+agent, "localhost", "token_key "+site.TokenKey)
	m.Config.Handle = strings.Replace(m.Config.Handle, "aic ", "agent {\nresend always\n}\naic ", 1) // no work twice
	m.Start(m.Config)
	g := site.NewGroup(t, b, "killed", site.Certificates(t).LeaderV1)
	g.Join(m)
	g.Endures(m, 1000, func(string) {
		m.Kill()
		m.Start(m.Config)
	})
}

// TestGroupBrokerOutage stops and kills the broker in the middle of group tasks.
func TestGroupBrokerOutage(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	b := ownBroker(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := site.NewGroup(t, b, "broken", site.Certificates(t).LeaderV1)
	g.Join(m)
	g.Endures(m, 100, func(part string) {
		if part == "start" {
			site.NoError(t, b.Stop(), b.Run())
		} else {
			site.NoError(t, b.Kill(), b.Run())
		}
	})
}

// TestGroupNetworkCut cuts the network between a gateway and the broker again and again.
func TestGroupNetworkCut(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	b := site.SharedBroker(t)
	var down atomic.Bool
	between := site.NewWire(t, b.Address(), func() site.Damage {
		if down.Load() {
			return site.Damage{After: 0}
		}
		return site.Damage{After: -1}
	})
	m := newMember(t, "a2a/legacy http://"+agent, between.Address())
	g := site.NewGroup(t, b, "cut", site.Certificates(t).LeaderV1)
	site.JoinThrough(g, m, between.Address())
	g.Endures(m, 300, func(string) {
		between.Cut()
		down.Store(true)
		between.Cut()
		waitForLoss(m)
		down.Store(false)
	})
}

// TestGroupSilentLoss loses all that a gateway and the broker send to each other, without closing a connection: each of
// them must find that out by itself. New connections are lost, too, until the gateway has found it out.
func TestGroupSilentLoss(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	b := site.SharedBroker(t)
	between := site.NewWire(t, b.Address(), func() site.Damage { return site.Damage{After: -1} })
	m := newMember(t, "a2a/legacy http://"+agent, between.Address())
	g := site.NewGroup(t, b, "silent", site.Certificates(t).LeaderV1)
	site.JoinThrough(g, m, between.Address())
	g.Endures(m, 150, func(command string) {
		if command != "start" {
			return
		}
		between.Lose()
		waitForLoss(m)
		between.Deliver()
	})
}

// TestGroupReload replaces the configuration of a gateway in the middle of group tasks.
func TestGroupReload(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	b := site.SharedBroker(t)
	m := newMember(t, "a2a/legacy http://"+agent, "localhost")
	g := site.NewGroup(t, b, "reloaded", site.Certificates(t).LeaderV1)
	g.Join(m)
	g.Endures(m, 200, func(string) {
		for range 3 {
			if said := m.Reload(m.Config); said != "" {
				t.Errorf("a reload: %s", said)
			}
		}
	})
}

// TestGroupRestart restarts a gateway: with a key it has the token of its invitation, without it waits for another one.
// Meanwhile its queue stays.
func TestGroupRestart(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	_, agent := site.SampleAgent(t)
	for name, settings := range map[string][]string{"with a key": {"token_key " + site.TokenKey}, "without a key": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMember(t, "a2a/legacy http://"+agent, "localhost", settings...)
			g := site.NewGroup(t, b, "restarted", site.Certificates(t).LeaderV1)
			joined := g.Join(m)
			g.Say("start", "before", "slow 2")
			g.WaitForState(m.AIC, "before", "working")
			m.Stop(t)
			g.Say("start", "between", "hello")
			m.Start(m.Config)
			if settings == nil {
				site.Eventually(t, "the member waits for an invitation", func() bool {
					groups := m.Groups()
					return len(groups) == 1 && groups[0].Get("state").String() == "waiting"
				})
				if got := g.Of(m.AIC, "between"); len(got) > 0 {
					t.Errorf("a member without a token has published %s", got[0].Raw)
				}
				if again := g.Join(m); again.QueueName != joined.QueueName {
					t.Errorf("the queue was %s and is %s", joined.QueueName, again.QueueName)
				}
			}
			for _, id := range []string{"before", "between"} {
				g.WaitForState(m.AIC, id, "awaiting-completion")
				g.Check(m, id, task.Accepted, task.Working, task.AwaitingCompletion)
			}
			nothingOf(t, m, "pass:word")
		})
	}
}

// TestInvitedAgain repeats an invitation, moves the member to another broker, and fails to.
func TestInvitedAgain(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	_, agent := site.SampleAgent(t)
	way := site.NewWire(t, b.Address(), func() site.Damage { return site.Damage{After: -1} })
	m := newMember(t, "a2a/legacy http://"+agent, "localhost 127.0.0.1")
	g := site.NewGroup(t, b, "again", site.Certificates(t).LeaderV1)
	first := g.Join(m)
	if second := g.Join(m); *second != *first {
		t.Errorf("an invitation is answered %+v, and again %+v", first, second)
	}
	if got := site.ConnectionsOf(t, b, first.ConnectionName); got != 1 {
		t.Errorf("there are %d connections", got)
	}
	g.Say("start", "one", "slow 1")
	// The broker at an address where none is: the membership stays as it is.
	bad := g.Invitation(m.AIC)
	bad["server"].(site.Object)["port"] = freeport.Closed(t)
	if joined, refused := g.Invite(m.CalledBy(g.Certificate), bad); joined != nil || refused.Code != -32603 {
		t.Errorf("an invitation to no broker is answered %+v", joined)
	}
	g.WaitForState(m.AIC, "one", "awaiting-completion")
	// The same broker at another address.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			g.Say("start", fmt.Sprint("moved-", i), "hello")
		}
	}()
	site.JoinThrough(g, m, way.Address())
	<-done
	for i := range 100 {
		g.WaitForState(m.AIC, fmt.Sprint("moved-", i), "awaiting-completion")
		g.Check(m, fmt.Sprint("moved-", i), task.Accepted, task.Working, task.AwaitingCompletion)
	}
	site.Eventually(t, "the old connection is closed",
		func() bool { return site.ConnectionsOf(t, b, first.ConnectionName) == 1 })
}
