// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"strings"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/task"
)

var ofAgents metric.Set

// The metrics of agents: of their calls, their turns, and the requests to them.
var (
	metricCalls = ofAgents.Counter("calls_total", "Calls that were answered, by the kind of their error.",
		"agent", "dialect", "method", "kind")
	metricCallTook = ofAgents.Histogram("call_duration_seconds",
		"Time from a decoded request to its answer, or to the begin of its stream.", "agent", "dialect", "method")

	metricEntered = ofAgents.Counter("task_states_total", "Tasks that have entered a state.", "agent", "state")
	metricFailed  = ofAgents.Counter("task_failures_total", "Turns that have failed, by the kind of the error.",
		"agent", "kind")
	metricResumed = ofAgents.Counter("task_resumes_total", "Turns that were resumed.", "agent")
	metricFirst   = ofAgents.Histogram("task_first_report_seconds",
		"Time from the begin of a turn to the agent's first report that was stored.", "agent")
	metricSettled = ofAgents.Histogram("task_settled_seconds",
		"Time from the begin of a turn to its end: the agent has finished, failed or needs input.", "agent")

	metricRequests = ofAgents.Counter("agent_requests_total", "Requests to an agent, by their outcome.",
		"agent", "outcome")
	metricRetries = ofAgents.Counter("agent_retries_total", "Messages that were sent to an agent again.", "agent")
	metricRuns    = ofAgents.Gauge("agent_runs", "Turns that have a request open at an agent.", "agent")
	metricWaiting = ofAgents.Gauge("agent_runs_waiting", "Turns that wait for a free run of an agent.", "agent")
	metricUp      = ofAgents.Gauge("agent_up", "Whether an agent has answered the last request: 1 or 0.", "agent")
	metricEvents  = ofAgents.Counter("stream_events_total", "Events that were sent by streams.", "agent")
)

// agents adds what concerns agents. Partners with one agent are measured together.
func (s samples) agents(partners node.Partners) {
	for p := range partners.Agents() {
		s.agent(p.Title, p.Gateway)
	}
}

// agent adds what concerns one agent.
func (s samples) agent(name string, g *gateway.Gateway) {
	m := g.Meter()
	for c := range m.Calls() {
		for kind, n := range c.ByKind() {
			s.Add(metricCalls, float64(n), name, c.Dialect, c.Method, labelValue(kind))
		}
		s.Durations(metricCallTook, c.Took.Snapshot(), name, c.Dialect, c.Method)
	}
	for _, state := range task.States() {
		s.Add(metricEntered, float64(m.Tasks.Entered(state)), name, string(state))
	}
	for _, kind := range task.Kinds() {
		if n := m.Tasks.Failed(kind); n > 0 {
			s.Add(metricFailed, float64(n), name, labelValue(kind.String()))
		}
	}
	s.Add(metricResumed, float64(m.Tasks.Resumed()), name)
	s.Durations(metricFirst, m.Tasks.FirstReport.Snapshot(), name)
	s.Durations(metricSettled, m.Tasks.Settled.Snapshot(), name)
	s.traffic(name, g)
	s.Add(metricEvents, float64(m.Events.Load()), name)
}

// traffic adds what concerns the requests to an agent.
func (s samples) traffic(name string, g *gateway.Gateway) {
	t := &g.Meter().Traffic
	for outcome, n := range t.Requests() {
		if n > 0 || outcome == "ok" {
			s.Add(metricRequests, float64(n), name, labelValue(outcome))
		}
	}
	s.Add(metricRetries, float64(t.Retries()), name)
	if slots := g.Slots(); slots != nil {
		used, waiting := slots.Use()
		s.Add(metricRuns, float64(used), name)
		s.Add(metricWaiting, float64(waiting), name)
	}
	if h := g.Health(); !h.Answered.IsZero() || h.Failed != nil {
		s.Flag(metricUp, h.Up(), name)
	}
}

// labelValue returns a name as the value of a label.
func labelValue(name string) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(name))
}
