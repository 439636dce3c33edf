// SPDX-License-Identifier: Apache-2.0

package group

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// Two Leaders with AICs. The second one is hostile.
const (
	victim   = "10001000011K94ZH3VDXLP4S5EB63614"
	attacker = "10001000011K912345E789ABCDEF2353"
)

// inviteBy invites the agent to a group of a Leader, after changes.
func (m *memberships) inviteBy(leader, groupID, exchange string, changes ...func(*task.Invitation)) error {
	m.Helper()
	inv := invitation(func(inv *task.Invitation) {
		inv.Group.ID, inv.Group.Leader.AIC, inv.Exchange.Name = groupID, leader, exchange
	})
	for _, change := range changes {
		change(inv)
	}
	_, err := m.self.Join(m.Context(), leader, inv)
	synctest.Wait()
	return err
}

// byCertificate leaves the access token out.
func byCertificate(inv *task.Invitation) { inv.Server.AccessToken = "" }

// TestExchangeOfALeader: an invitation may name only exchanges of its Leader. An agent with one login for several
// Leaders writes for none of them into the group of another.
func TestExchangeOfALeader(t *testing.T) {
	external := []func(*task.Invitation){byCertificate}
	listed := map[string][]string{
		attacker: {"shared", "mine-*", "group_10001000011K94*"}, strings.ToLower(victim): {"shared"},
	}
	for name, tc := range map[string]struct {
		group, exchange string
		changes         []func(*task.Invitation)
		before          func(*memberships) error // the invitation by the victim
		allowed         bool
	}{
		"by certificate, its own name": {"g", "group_" + attacker + "_g", external, nil, true},
		"by certificate, the name of another group": {"g", "group_" + attacker + "_h", external,
			nil, false},
		"by certificate, any name":         {"g", "x", external, nil, false},
		"by certificate, the default":      {"g", "amq.fanout", external, nil, false},
		"by certificate, a listed name":    {"g", "shared", external, nil, true},
		"by certificate, a listed pattern": {"g", "mine-1", external, nil, true},
		"by certificate, the victim's by a pattern": {"g", "group_" + victim + "_g", external,
			nil, false},
		"by password, any name":     {"g", "x", nil, nil, true},
		"by password, the victim's": {"g", "group_" + victim + "_g", nil, nil, false},
		"by certificate, a listed name that is used": {"g", "shared", external,
			func(m *memberships) error { return m.inviteBy(victim, "v", "shared", byCertificate) }, false},
		"by another name of the broker": {"g", "shared", []func(*task.Invitation){byCertificate,
			func(inv *task.Invitation) { inv.Server.Host = "b.example" }},
			func(m *memberships) error {
				m.change(func() { m.byName["b.example"].cluster = m.byName["a.example"].cluster })
				return m.inviteBy(victim, "v", "shared", byCertificate)
			}, false},
		"at another broker": {"g", "shared", []func(*task.Invitation){byCertificate,
			func(inv *task.Invitation) { inv.Server.Host = "b.example" }},
			func(m *memberships) error { return m.inviteBy(victim, "v", "shared", byCertificate) }, true},
		"in another virtual host": {"g", "shared", []func(*task.Invitation){byCertificate,
			func(inv *task.Invitation) { inv.Server.VHost = "/w" }},
			func(m *memberships) error { return m.inviteBy(victim, "v", "shared", byCertificate) }, true},
		"by a user of its own, an exchange that is used": {"g", "x", []func(*task.Invitation){token("other:secret")},
			func(m *memberships) error { return m.inviteBy(victim, "v", "x") }, false},
		"by the victim's user, any name": {"g", "y", nil,
			func(m *memberships) error { return m.inviteBy(victim, "v", "x") }, false},
		"by the victim's user, its own name": {"g", "group_" + attacker + "_g", nil,
			func(m *memberships) error { return m.inviteBy(victim, "v", "x") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.config.Exchanges = listed
				m.register()
				if tc.before != nil {
					if err := tc.before(m); err != nil {
						t.Fatal(err)
					}
				}
				queues := len(m.byName["a.example"].queues) + len(m.byName["b.example"].queues)
				err := m.inviteBy(attacker, tc.group, tc.exchange, tc.changes...)
				switch {
				case tc.allowed && err != nil:
					t.Error(err)
				case !tc.allowed && task.KindOf(err) != task.InvitationRejected:
					t.Errorf("the invitation is answered %v", err)
				case !tc.allowed && len(m.byName["a.example"].queues)+len(m.byName["b.example"].queues) != queues:
					t.Error("a queue stays")
				}
				if has := m.self.Has(attacker, tc.group); has != tc.allowed {
					t.Errorf("a member: %v", has)
				}
				if tc.before == nil {
					return
				}
				if err := tc.before(m); err != nil { // it stays as it was, and may be renewed
					t.Errorf("the other Leader's invitation is answered %v", err)
				}
			})
		})
	}
}

// TestExchangeOfAnUnprovenLeader: a Leader has no right to an exchange by an unproven AIC. The Partner does not join,
// by its certificate, the group of the Leader with the AIC.
func TestExchangeOfAnUnprovenLeader(t *testing.T) {
	external := []func(*task.Invitation){byCertificate}
	for name, tc := range map[string]struct {
		exchange string
		changes  []func(*task.Invitation)
		before   bool // the Leader with the AIC is there
		allowed  bool
	}{
		"by certificate, the name":           {"group_" + victim + "_g", external, false, false},
		"by certificate, a listed exchange":  {"shared", external, false, false},
		"by a user of its own":               {"group_" + victim + "_g", nil, false, true},
		"by the user of the Leader":          {"group_" + victim + "_g", nil, true, false},
		"by a user of its own, another name": {"group_" + attacker + "_g", nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.config.Exchanges = map[string][]string{victim: {"shared"}}
				m.register()
				if tc.before {
					if err := m.inviteBy(victim, "h", "group_"+victim+"_h"); err != nil {
						t.Fatal(err)
					}
				}
				inv := invitation(func(inv *task.Invitation) {
					inv.Group.ID, inv.Group.Leader.AIC, inv.Exchange.Name = "g", victim, tc.exchange
				})
				for _, change := range tc.changes {
					change(inv)
				}
				_, err := m.self.Join(m.Context(), limit.Unverified+victim, inv)
				synctest.Wait()
				if (err == nil) != tc.allowed || err != nil && task.KindOf(err) != task.InvitationRejected {
					t.Errorf("the invitation is answered %v", err)
				}
				if has := m.self.Has(limit.Unverified+victim, "g"); has != tc.allowed {
					t.Errorf("a member: %v", has)
				}
			})
		})
	}
}

// TestExchangeAfterALeader: an exchange is free when the membership using it has ended or moved.
func TestExchangeAfterALeader(t *testing.T) {
	inBubble(t, func(m *memberships) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		other := token("other:secret")
		must(m.inviteBy(victim, "v", "x"))
		must(m.inviteBy(victim, "v", "y"))
		must(m.inviteBy(attacker, "g", "x", other))
		if err := m.inviteBy(victim, "v", "x"); task.KindOf(err) != task.InvitationRejected {
			t.Errorf("an exchange of another Leader: %v", err)
		}
		must(m.engine.Leave(m.Context(), testPartner, victim, "v"))
		must(m.inviteBy(attacker, "h", "y", other))
		m.restart()
		if err := m.inviteBy(victim, "v", "x"); task.KindOf(err) != task.InvitationRejected {
			t.Errorf("after a restart: %v", err)
		}
	})
}

// TestExchangeOfAnotherConfiguration: a membership waits if its exchange is not listed any more.
func TestExchangeOfAnotherConfiguration(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.mustInvite(byCertificate)
		m.config.Exchanges = nil
		m.register()
		m.checkState(Waiting)
		m.restart()
		m.checkState(Waiting)
		m.config.Exchanges = map[string][]string{testLeader: {"x"}}
		m.register()
		m.checkState(Joined)
	})
}

// TestPublishesNoOtherTask: a group hears nothing of a task not started in it, though a task of the same name was.
func TestPublishesNoOtherTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*agent.Turn) []step { return []step{{0, working()}, {0, finished()}} }, nil)
		w.connect(true)
		w.rpc("start", "T", "")
		accepted, err := w.group.follow(t.Context(), logname.New("agent", leaderAIC, "T"), "aip/1.0", 0)
		if err != nil {
			t.Fatal(err)
		}
		accepted.Stored()
		w.send("get", "T", "m1", "")
		synctest.Wait()
		if got := w.link.taken(); len(got) > 0 {
			t.Errorf("the group hears %s", got[0].Body)
		}
		if got := w.acknowledged(); len(got) != 1 {
			t.Errorf("the get is acknowledged %d times", len(got))
		}
	})
}
