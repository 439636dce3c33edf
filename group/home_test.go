// SPDX-License-Identifier: Apache-2.0

package group

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestMembershipsMove: a membership moves with its shard, which alone the owner serves: the owner before has neither
// its link nor its exchange, and takes no invitation to it.
func TestMembershipsMove(t *testing.T) {
	inBubble(t, func(m *memberships) {
		shards := replaytest.NewShards(4)
		at := logname.Shard(4, testPartner, testLeader)
		quiet := slog.New(slog.DiscardHandler)
		var nodes [2]*replaytest.Node
		var engines [2]*Engine
		var partners [2]*Partner
		for i := range engines {
			nodes[i] = shards.Node()
			set := shard.Join(nodes[i], quiet)
			defer set.Close()
			var err error
			engines[i], err = open(set, quiet, m.brokers, func(of *membership) tasks { return &fakeTasks{m: of, b: m.brokers} })
			if err != nil {
				m.Fatal(err)
			}
			if partners[i], err = engines[i].Register(m.config); err != nil {
				m.Fatal(err)
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
