// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
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
			Points: []adminapi.OverviewPoint{{}, {Activity: a, Counted: float64(calls), Dead: 1, Working: 1, Waiting: 2,
				Pending: 3, Streams: 4}},
			Agents: []adminapi.AgentOverview{{AgentHealth: adminapi.AgentHealth{Partner: name, State: state}, Activity: a,
				Running: 1, Queued: 2, Series: []uint64{0, calls}}}}
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
	want.Points = []adminapi.OverviewPoint{{}, {Activity: all, Counted: 3, Dead: 3, Working: 3, Waiting: 6, Pending: 9,
		Streams: 12}}
	one := of(3, time.Millisecond, adminapi.AgentDown, "a").Agents[0]
	addActivity(&one.Activity, &of(1, time.Second, "", "").Activity)
	one.Running, one.Queued, one.Series = 2, 4, []uint64{0, 4}
	want.Agents = []adminapi.AgentOverview{one, want.Agents[0]}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
}
