// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestAlone: a gateway that is alone has no others to report of, to move a shard to, or to drain.
func TestAlone(t *testing.T) {
	p := newAlone(t, nil)
	var report adminapi.ClusterReport
	p.ask("GET", adminapi.Cluster+"?brief=true", "", &report)
	want := adminapi.ClusterReport{Nodes: []adminapi.ClusterNode{}, Shards: []adminapi.ClusterShard{}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
	const alone = "Conflict: this gateway shares its store with no other one: its driver is memory"
	p.refuses(map[string]string{
		`POST /aip/cluster/move {"shard":1,"to":"two"}`: alone,
		`POST /aip/cluster/drain {"node":"two"}`:        alone,
	})
}

// TestShardMove: a shard that exists moves to another gateway, and a gateway is drained by its name.
func TestShardMove(t *testing.T) {
	p := newAlone(t, nil)
	s := &several{other: adminapi.NodeUp}
	p.Shared = s
	defer func() { p.Shared = nil }()
	var moved adminapi.ShardMove
	p.ask("POST", adminapi.MoveShard, `{"shard":3,"to":"two"}`, &moved)
	if *moved.Shard != 3 || moved.To != "two" || s.moved != "3 to two" {
		t.Errorf("the answer is %+v; moved %s", moved, s.moved)
	}
	for method, drains := range map[string]bool{"POST": true, "DELETE": false} {
		var node adminapi.NodeName
		p.ask(method, adminapi.DrainNode, `{"node":""}`, &node)
		if node.Node != "one" || s.drains != drains {
			t.Errorf("%s: %+v, drains %t", method, node, s.drains)
		}
	}
	var report adminapi.ClusterReport
	if p.ask("GET", adminapi.Cluster, "", &report); len(report.Nodes) != 2 {
		t.Errorf("the report is %+v", report)
	}
	const form = `Bad Request: the body must be {"shard": 7, "to": "a node"}`
	p.refuses(map[string]string{
		"POST /aip/cluster/move {}":                      form,
		`POST /aip/cluster/move {"to":"two"}`:            form,
		`POST /aip/cluster/move {"shard":1}`:             form,
		`POST /aip/cluster/move {"shard":4,"to":"two"}`:  "Bad Request: there is no shard 4; they are 0 to 3",
		`POST /aip/cluster/move {"shard":-1,"to":"two"}`: "Bad Request: there is no shard -1; they are 0 to 3",
		`POST /aip/cluster/move {"shard":1,"to":"me"}`:   "Conflict: it has it",
		`POST /aip/cluster/drain {"name":"two"}`: `Bad Request: the body must be {"node": "its name, or empty for the one ` +
			`that is asked"}`,
	})
}

// TestDrainAlone: a gateway that is alone refuses new tasks while it is drained, and says what is left.
func TestDrainAlone(t *testing.T) {
	p := newAlone(t, nil)
	p.try("ask", task.AwaitingInput)
	p.try("slow 60", task.Working)
	for _, step := range []struct {
		method   string
		draining bool
	}{{"GET", false}, {"POST", true}, {"POST", true}, {"GET", true}, {"DELETE", false}, {"DELETE", false}} {
		var state adminapi.DrainState
		p.ask(step.method, adminapi.Drain, "", &state)
		want := adminapi.DrainState{Draining: step.draining, Since: p.Tasks.Process().Draining().UTC(), Running: 1,
			Unfinished: 2}
		state.Since = state.Since.UTC()
		if diff := cmp.Diff(want, state); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", step.method, diff)
		}
		if !step.draining {
			continue
		}
		status, text := p.answer("POST", adminapi.TryPartner, `{"partner":"P","command":"start","text":"x"}`)
		if status < 400 {
			t.Errorf("a start is answered with %d %s", status, text)
		}
	}
}
