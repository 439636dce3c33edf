// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// counted returns the counts of an agent.
func counted(m *gateway.Meter) adminapi.Activity {
	a := adminapi.Activity{Failures: m.Tasks.Entered(task.Failed),
		First: tookOf(m.Tasks.FirstReport.Counts()), Settled: tookOf(m.Tasks.Settled.Counts())}
	for calls := range m.Calls() {
		for kind, n := range calls.ByKind() {
			a.Calls += n
			if kind != gateway.WithoutError {
				a.Errors += n
			}
		}
	}
	return a
}

// levels returns how much there is now.
func (a *Admin) levels() *adminapi.Levels {
	engines := a.Tasks.Engines()
	l := &adminapi.Levels{Tasks: make(map[string]int64), Streams: a.Process.Streams.Total(),
		Pending: int64(a.Tasks.Webhooks().Counts().Pending)}
	for _, state := range append([]task.State{task.None}, task.States()...) {
		if !state.Terminal() {
			l.Tasks[string(stateOf(state))] = engines.InState(state)
		}
	}
	return l
}

// showOverview answers with the counts since the process began.
func showOverview(a *Admin, r *http.Request) (any, error) {
	out := &adminapi.Overview{Since: a.Process.Began.Truncate(time.Second), Agents: []adminapi.AgentOverview{}}
	partners := a.Partners()
	if name := r.URL.Query().Get("partner"); name != "" {
		p := partners.Named(name)
		if p == nil {
			return nil, errUnknownPartner(name)
		}
		partners = node.Partners{p}
	} else {
		out.Now, out.Dead = a.levels(), a.Tasks.Webhooks().Counts().Dead
	}
	added := make(map[string]bool)
	for p := range partners.Each() {
		of := agentOverview(p)
		out.Agents = append(out.Agents, of)
		if !added[p.Agent] { // otherwise it is another Partner with this agent
			added[p.Agent] = true
			addActivity(&out.Activity, &of.Activity)
		}
	}
	slices.SortFunc(out.Agents, func(a, b adminapi.AgentOverview) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// agentOverview returns the counts of an agent.
func agentOverview(p *node.Partner) adminapi.AgentOverview {
	out := adminapi.AgentOverview{AgentHealth: HealthOf(p), Activity: counted(p.Gateway.Meter())}
	if slots := p.Gateway.Slots(); slots != nil {
		running, queued := slots.Use()
		out.Running, out.Queued = int64(running), int64(queued)
	}
	return out
}

func tookOf(c measure.Counts) adminapi.Took {
	if c == (measure.Counts{}) {
		return adminapi.Took{}
	}
	return adminapi.Took{Count: c.Total(), P50: c.Quantile(0.5).Seconds(), P99: c.Quantile(0.99).Seconds(), Buckets: &c}
}
