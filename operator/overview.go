// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/operator/history"
	"github.com/aip-gateway/aip-gateway/task"
)

// KeepHistory takes samples of what is counted while a configuration is in force, until the context is done.
func (a *Admin) KeepHistory(ctx context.Context, of *node.Configuration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(a.past.UntilNext()):
			a.sample(of)
		}
	}
}

// sample takes a sample of the counters, if a configuration is in force.
func (a *Admin) sample(of *node.Configuration) {
	if of == nil || of.Held() == nil || !of.IsInForce() {
		return
	}
	a.past.Take(func() history.Sample {
		levels := a.levels()
		s := history.Sample{Agents: make(map[string]history.Counts), Dead: a.Tasks.Webhooks().Counts().Dead,
			Levels: history.Levels{Pending: levels.Pending, Streams: levels.Streams}}
		for state, n := range levels.Tasks {
			if task.State(state).Settled() {
				s.Levels.Waiting += n
			} else {
				s.Levels.Working += n
			}
		}
		for p := range of.Partners().Agents() {
			s.Agents[p.Agent] = counted(p.Gateway.Meter())
		}
		return s
	})
}

// counted returns what was counted of an agent.
func counted(m *gateway.Meter) history.Counts {
	c := history.Counts{Failed: m.Tasks.Entered(task.Failed),
		First: m.Tasks.FirstReport.Counts(), Settled: m.Tasks.Settled.Counts()}
	for calls := range m.Calls() {
		for kind, n := range calls.ByKind() {
			c.Calls += n
			if kind != gateway.WithoutError {
				c.Errors += n
			}
		}
	}
	return c
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

// defaultSince is the time that an overview is about.
const defaultSince = time.Hour

// showOverview answers with what was counted in the last time, until now.
func showOverview(a *Admin, r *http.Request) (any, error) {
	q := r.URL.Query()
	since := defaultSince
	if text := q.Get("since"); text != "" {
		var err error
		if since, err = parseDuration(text); err != nil || since < time.Minute || since > history.Longest {
			return nil, task.Errorf(task.InvalidParams,
				"since is %q, but must be a duration from 1m to 24h, such as 5m or 6h", text)
		}
	}
	partners := a.Partners()
	if name := q.Get("partner"); name != "" {
		p := partners.Named(name)
		if p == nil {
			return nil, errUnknownPartner(name)
		}
		partners = node.Partners{p}
	}
	a.sample(a.InForce())
	report := a.past.Last(since)
	out := overviewOf(&report, partners)
	if q.Get("partner") == "" {
		out.Now = a.levels()
	}
	return out, nil
}

// overviewOf makes an overview of the agents of some Partners.
func overviewOf(report *history.Report, partners node.Partners) *adminapi.Overview {
	points := make([]history.Counts, len(report.Points)) // of all these agents
	length := time.Duration(len(points)) * report.Step
	out := &adminapi.Overview{From: time.Now().Add(-length).Truncate(time.Second), Step: report.Step.Seconds(),
		Points: make([]adminapi.OverviewPoint, len(points)), Agents: []adminapi.AgentOverview{}}
	added := make(map[string]bool)
	for p := range partners.Each() {
		of := report.Agents[p.Agent]
		out.Agents = append(out.Agents, agentOverview(p, of, len(points)))
		if added[p.Agent] {
			continue // another Partner with this agent
		}
		added[p.Agent] = true
		for i := range of {
			points[i].Add(&of[i])
		}
	}
	slices.SortFunc(out.Agents, func(a, b adminapi.AgentOverview) int { return cmp.Compare(a.Name, b.Name) })
	var all history.Counts
	for i := range points {
		all.Add(&points[i])
		p := &report.Points[i]
		out.Dead += p.Dead
		out.Points[i] = adminapi.OverviewPoint{Activity: activityOf(&points[i]), Counted: p.Counted.Seconds(), Dead: p.Dead,
			Working: p.Levels.Working, Waiting: p.Levels.Waiting, Pending: p.Levels.Pending, Streams: p.Levels.Streams}
	}
	out.Activity = activityOf(&all)
	return out
}

// agentOverview returns what was counted of an agent, in points.
func agentOverview(p *node.Partner, points []history.Counts, n int) adminapi.AgentOverview {
	var all history.Counts
	series := make([]uint64, n)
	for i := range points {
		all.Add(&points[i])
		series[i] = points[i].Calls
	}
	out := adminapi.AgentOverview{AgentHealth: HealthOf(p), Activity: activityOf(&all), Series: series}
	if slots := p.Gateway.Slots(); slots != nil {
		running, queued := slots.Use()
		out.Running, out.Queued = int64(running), int64(queued)
	}
	return out
}

func activityOf(c *history.Counts) adminapi.Activity {
	return adminapi.Activity{Calls: c.Calls, Errors: c.Errors, Failures: c.Failed,
		First: tookOf(c.First), Settled: tookOf(c.Settled)}
}

func tookOf(c measure.Counts) adminapi.Took {
	if c == (measure.Counts{}) {
		return adminapi.Took{}
	}
	return adminapi.Took{Count: c.Total(), P50: c.Quantile(0.5).Seconds(), P99: c.Quantile(0.99).Seconds(), Buckets: &c}
}
