// SPDX-License-Identifier: Apache-2.0

package group

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// twoProcesses starts two processes over shards, without owning any, with the Partner at each, until end.
func (m *memberships) twoProcesses(shards *replaytest.Shards) (
	nodes [2]*replaytest.Node, engines [2]*Engine, partners [2]*Partner, end func(),
) {
	m.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var sets [2]*shard.Set
	for i := range nodes {
		nodes[i] = shards.Node()
		sets[i] = shard.Join(nodes[i], quiet)
		var err error
		engines[i], err = open(sets[i], quiet, m.brokers, func(of *membership) tasks {
			return &fakeTasks{m: of, b: m.brokers}
		})
		if err != nil {
			m.Fatal(err)
		}
		if partners[i], err = engines[i].Prepare(m.config); err != nil {
			m.Fatal(err)
		}
		partners[i].Register()
	}
	return nodes, engines, partners, func() {
		for i := range sets {
			_ = sets[i].Close()
		}
	}
}

// TestMembershipsMove: a membership moves with its shard, served by the owner alone: the former owner has neither its
// link nor its exchange, and takes no invitation to it.
func TestMembershipsMove(t *testing.T) {
	inBubble(t, func(m *memberships) {
		shards := replaytest.NewShards(4)
		at := logname.Shard(4, testPartner, testLeader)
		nodes, engines, partners, end := m.twoProcesses(shards)
		defer end()
		for i := range 4 {
			if i != at {
				shards.Assign(i, nodes[i%2], false)
			}
		}
		states := func(i int) (all []State) {
			synctest.Wait()
			for _, s := range engines[i].List() {
				all = append(all, s.State)
			}
			return all
		}
		join := func(i int) error {
			synctest.Wait()
			_, err := partners[i].Join(m.Context(), testLeader, invitation())
			return err
		}
		for i, seize := range []bool{false, false, true, true} {
			owner, other := i%2, 1-i%2
			shards.Assign(at, nodes[owner], seize)
			if err := join(owner); err != nil {
				m.Fatalf("the owner of the shard refuses an invitation: %v", err)
			}
			if err := join(other); task.KindOf(err) != task.StoreUnavailable {
				m.Errorf("the other process answers an invitation by %v", err)
			}
			if diff := cmp.Diff([]State{Joined}, states(owner)); diff != "" {
				m.Errorf("the memberships of the owner (-want +got):\n%s", diff)
			}
			if got := states(other); len(got) > 0 {
				m.Errorf("the other process has memberships, too: %v", got)
			}
			if !partners[owner].Has(testLeader, "g1") || partners[other].Has(testLeader, "g1") {
				m.Error("it is not the owner alone that is a member")
			}
		}
	})
}

// TestExchangeAtTwoProcesses: an exchange in use by a group of a Leader is not given to another Leader with its groups
// at another process; and none is given away while its user is not known.
func TestExchangeAtTwoProcesses(t *testing.T) {
	inBubble(t, func(m *memberships) {
		const other = testLeader + "-other"
		shards := replaytest.NewShards(8)
		first, second := logname.Shard(8, testPartner, testLeader), logname.Shard(8, testPartner, other)
		if first == second {
			m.Fatal("both Leaders are in one shard")
		}
		nodes, _, partners, end := m.twoProcesses(shards)
		defer end()
		for i := range 8 {
			if i == first {
				shards.Assign(i, nodes[0], false)
			} else {
				shards.Assign(i, nodes[1], false)
			}
		}
		synctest.Wait()
		of := func(leader, token string) func(*task.Invitation) {
			return func(in *task.Invitation) {
				in.Group.Leader.AIC, in.Server.AccessToken = leader, token
			}
		}
		if _, err := partners[0].Join(m.Context(), testLeader, invitation()); err != nil {
			m.Fatal(err)
		}
		_, err := partners[1].Join(m.Context(), other, invitation(of(other, "another:secret")))
		if task.KindOf(err) != task.InvitationRejected {
			m.Errorf("the exchange of another Leader: %v", err)
		}
		elsewhere := func(in *task.Invitation) { in.Exchange.Name = "y" }
		_, err = partners[1].Join(m.Context(), other, invitation(of(other, "user:secret"), elsewhere))
		if task.KindOf(err) != task.InvitationRejected {
			m.Errorf("the user of another Leader: %v", err)
		}
		if _, err = partners[1].Join(m.Context(), other, invitation(of(other, "another:secret"), elsewhere)); err != nil {
			m.Errorf("an exchange of its own: %v", err)
		}
		shards.Assign(first, nil, false)
		synctest.Wait()
		third := func(in *task.Invitation) { in.Exchange.Name, in.Group.ID = "z", "g2" }
		_, err = partners[1].Join(m.Context(), other, invitation(of(other, "another:secret"), third))
		if task.KindOf(err) != task.StoreUnavailable {
			m.Errorf("while nobody knows the groups of a Leader: %v", err)
		}
	})
}
