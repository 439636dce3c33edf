// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// several is the part of a gateway in a store that it shares with another one.
type several struct {
	node.SharedStore
	drains bool
	other  string // the state of the other gateway
	moved  string // a shard, and where it went
}

func (s *several) Count() int { return 4 }

func (s *several) Move(_ context.Context, shard int, to string) error {
	if to == "me" {
		return task.Errorf(task.UnsupportedOperation, "it has it")
	}
	s.moved = fmt.Sprint(shard, " to ", to)
	return nil
}

func (s *several) Drain(_ context.Context, _ string, drain bool) (string, error) {
	s.drains = drain
	return "one", nil
}

func (s *several) Report(context.Context, bool) (*adminapi.ClusterReport, error) {
	one := adminapi.ClusterNode{Name: "one", State: adminapi.NodeUp}
	if s.drains {
		one.State = adminapi.NodeDraining
	}
	return &adminapi.ClusterReport{Node: "one", Nodes: []adminapi.ClusterNode{one, {Name: "two", State: s.other}}}, nil
}

// TestDrainOfSeveral: one of several gateways that is drained hands its shards over, and refuses no task that the
// others start at it meanwhile. It refuses new tasks if there is no other one that can have them.
func TestDrainOfSeveral(t *testing.T) {
	type state struct{ HandsOver, Draining, Refuses bool }
	for _, tc := range []struct {
		other string
		want  state // while it is drained
	}{
		{adminapi.NodeUp, state{true, true, false}},
		{adminapi.NodeDraining, state{true, true, true}},
		{adminapi.NodeGone, state{true, true, true}},
	} {
		t.Run(tc.other, func(t *testing.T) {
			a := adminNodes(t, 1)[0].Admin
			s := &several{other: tc.other}
			a.Shared = s
			for _, step := range []struct {
				method string
				want   state
			}{{"GET", state{}}, {"POST", tc.want}, {"GET", tc.want}, {"DELETE", state{}}} {
				out, err := drain(a, httptest.NewRequestWithContext(t.Context(), step.method, adminapi.Drain, nil))
				if err != nil {
					t.Fatal(err)
				}
				got := state{s.drains, out.(adminapi.DrainState).Draining, !a.Tasks.Process().Draining().IsZero()}
				if diff := cmp.Diff(step.want, got); diff != "" {
					t.Errorf("after %s (-want +got):\n%s", step.method, diff)
				}
			}
		})
	}
}
