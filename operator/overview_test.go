// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// TestOverviewsAreAdded: what several gateways have counted is added, also the times, whose quantiles are those of all.
func TestOverviewsAreAdded(t *testing.T) {
	of := func(calls uint64, took time.Duration, state, name string) *adminapi.Overview {
		var d measure.Durations
		for range calls {
			d.Add(took)
		}
		a := adminapi.Activity{Calls: calls, Errors: 1, Failures: 2, First: tookOf(d.Counts()), Settled: tookOf(d.Counts())}
		return &adminapi.Overview{Activity: a, Dead: 1,
			Now: &adminapi.Levels{Tasks: map[string]int64{"working": 3}, Pending: 4, Streams: 5},
			Agents: []adminapi.AgentOverview{{AgentHealth: adminapi.AgentHealth{Partner: name, State: state}, Activity: a,
				Running: 1, Queued: 2}}}
	}
	sum := of(3, time.Millisecond, adminapi.AgentUp, "a")
	addOverview(sum, of(1, time.Second, adminapi.AgentDown, "a"))
	addOverview(sum, of(1, time.Second, adminapi.AgentUp, "b"))

	var d measure.Durations
	for _, took := range []time.Duration{1e6, 1e6, 1e6, 1e9, 1e9} {
		d.Add(took)
	}
	all := adminapi.Activity{Calls: 5, Errors: 3, Failures: 6, First: tookOf(d.Counts()), Settled: tookOf(d.Counts())}
	if all.First.P99 < 0.9 || all.First.P50 > 0.001 {
		t.Errorf("the quantiles are %v and %v", all.First.P50, all.First.P99)
	}
	want := of(1, time.Second, adminapi.AgentUp, "b")
	want.Activity, want.Dead = all, 3
	want.Now = &adminapi.Levels{Tasks: map[string]int64{"working": 9}, Pending: 12, Streams: 15}
	one := of(3, time.Millisecond, adminapi.AgentDown, "a").Agents[0]
	addActivity(&one.Activity, &of(1, time.Second, "", "").Activity)
	one.Running, one.Queued = 2, 4
	want.Agents = []adminapi.AgentOverview{one, want.Agents[0]}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
}

// TestOverview: an overview has what was counted of an agent, and what there is now. One of a Partner has no levels.
func TestOverview(t *testing.T) {
	p := newAlone(t, withPolicy(t, policy.Config{}))
	p.try("ask", task.AwaitingInput)
	slow := p.try("slow 60", task.Working)
	var got adminapi.Overview
	p.ask("GET", adminapi.OverviewOf, "", &got)
	want := &adminapi.Levels{Tasks: map[string]int64{"pending": 0, "accepted": 0, "working": 1, "awaiting-input": 1,
		"awaiting-completion": 0}}
	if diff := cmp.Diff(want, got.Now); diff != "" {
		t.Errorf("the levels (-want +got):\n%s", diff)
	}
	if len(got.Agents) != 1 || got.Agents[0].Name != "maps" || got.Agents[0].State != adminapi.AgentUp ||
		got.First.Count == 0 || got.Since.IsZero() {
		t.Errorf("the overview is %+v", got)
	}
	var one adminapi.Overview
	if p.ask("GET", adminapi.OverviewOf+"?partner=maps", "", &one); one.Now != nil || len(one.Agents) != 1 {
		t.Errorf("the overview of a Partner is %+v", one)
	}
	p.refuses(map[string]string{
		"GET " + adminapi.OverviewOf + "?partner=Q": `Conflict: the Partner "Q" is not in the configuration`,
	})
	p.ask("POST", adminapi.CancelTask, `{"partner":"P","leader":"`+slow.Leader+`","task":"`+slow.Task+`"}`,
		new(adminapi.Task))
	p.agent.CloseClientConnections()
	p.agent.Close()
	p.ask("POST", adminapi.TryPartner, `{"partner":"maps","command":"start","text":"hello"}`, new(adminapi.Task))
	asynctest.Eventually(t, "the agent is down", func() bool { return HealthOf(p.partner()).State == adminapi.AgentDown })
	if h := HealthOf(p.partner()); h.Reason == "" || h.Failed.IsZero() || strings.Contains(h.Reason, "127.0.0.1") {
		t.Errorf("an agent that is away is %+v", h)
	}
}
