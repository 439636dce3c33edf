// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"runtime"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/build"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// metrics are those of the host. The label agent is the name of the Partner for people.
var metrics metric.Set

// The metrics of calls, tasks, agents and streams.
var (
	metricBuild = metrics.Gauge("build_info", "Always 1; its labels are the versions of the gateway, of Caddy and of Go.",
		"version", "caddy", "go")
	metricCalls = metrics.Counter("calls_total", "Calls that were answered, by the kind of their error.",
		"agent", "dialect", "method", "kind")
	metricCallTook = metrics.Histogram("call_duration_seconds",
		"Time from a decoded request to its answer, or to the begin of its stream.", "agent", "dialect", "method")

	metricUnfinished = metrics.Gauge("tasks_unfinished", "Unfinished tasks in the store.")
	metricTasks      = metrics.Gauge("tasks", "Unfinished tasks by state; pending before the agent has answered.", "state")
	metricDraining   = metrics.Gauge("draining", "Whether new tasks are refused until the operator ends that: 1 or 0.")
	metricEntered    = metrics.Counter("task_states_total", "Tasks that have entered a state.", "agent", "state")
	metricFailed     = metrics.Counter("task_failures_total", "Turns that have failed, by the kind of the error.",
		"agent", "kind")
	metricResumed = metrics.Counter("task_resumes_total", "Turns that were resumed.", "agent")
	metricFirst   = metrics.Histogram("task_first_report_seconds",
		"Time from the begin of a turn to the agent's first report that was stored.", "agent")
	metricSettled = metrics.Histogram("task_settled_seconds",
		"Time from the begin of a turn to its end: the agent has finished, failed or needs input.", "agent")

	metricRequests = metrics.Counter("agent_requests_total", "Requests to an agent, by their outcome.", "agent", "outcome")
	metricRetries  = metrics.Counter("agent_retries_total", "Messages that were sent to an agent again.", "agent")
	metricRuns     = metrics.Gauge("agent_runs", "Turns that have a request open at an agent.", "agent")
	metricWaiting  = metrics.Gauge("agent_runs_waiting", "Turns that wait for a free run of an agent.", "agent")
	metricUp       = metrics.Gauge("agent_up", "Whether an agent has answered the last request: 1 or 0.", "agent")

	metricTokens = metrics.Counter("access_tokens_total",
		"Calls whose access token was checked, or that lack one which is required, by the result.", "partner", "result")
	metricPolicy = metrics.Counter("policy_calls_total",
		"Calls about which a rule has decided; the decision dry-run is a denial by a policy that is only tried.",
		"partner", "rule", "decision")
	metricQuota = metrics.Counter("quota_refusals_total",
		"Calls that a quota has refused; with dry_run, those that it would refuse.", "partner", "quota", "dry_run")

	metricStreams = metrics.Gauge("streams_open", "Open streams.")
	metricEvents  = metrics.Counter("stream_events_total", "Events that were sent by streams.", "agent")
	metricRecords = metrics.Counter("amp_records_total",
		"Records for a monitor, by their type; the outcome lost is for those that could not be written.", "type", "outcome")
	metricMemory = metrics.Gauge("memory_bytes", "Memory that requests, answers, streams and running tasks hold.")
)

// The metrics of the store and of webhooks.
var (
	metricWritable = metrics.Gauge("store_writable", "Whether the store accepts new tasks: 1 or 0.")

	metricAttempts = metrics.Counter("notify_attempts_total",
		"Attempts to deliver a notification, by their result.", "result")
	metricDead     = metrics.Counter("notify_dead_total", "Notifications that became dead letters, or were dropped.")
	metricPending  = metrics.Gauge("notify_pending", "Stored notifications that are neither delivered nor dead.")
	metricOldest   = metrics.Gauge("notify_oldest_seconds", "For how long the oldest pending notification has waited.")
	metricInFlight = metrics.Gauge("notify_in_flight", "Attempts that are being made.")
	metricReady    = metrics.Gauge("notify_ready", "Deliveries that wait in memory for their turn.")
	metricBreakers = metrics.Gauge("notify_breakers_open", "Endpoints in memory whose breaker is open.")
)

// collector reads what the rooms count, when Caddy's metrics are gathered. What it reads outlives configurations, and
// so counters continue after a reload. It implements prometheus.Collector.
type collector struct{ app *App }

// register adds the metrics to those of a configuration.
func register(metrics *prometheus.Registry, a *App) error {
	err := metrics.Register(collector{a})
	if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return nil // the app is loaded for a second time
	}
	return err
}

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	metrics.Describe(out)
	for _, m := range caddy.GetModules(store.Namespace) {
		if driver, ok := m.New().(store.Measured); ok {
			driver.Describe(out)
		}
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := samples{metric.Samples{Out: out}}
	s.Add(metricBuild, 1, build.Version(build.Module), build.Version("github.com/caddyserver/caddy/v2"), runtime.Version())
	s.Add(metricStreams, float64(process.Streams.Total()))
	s.Add(metricMemory, float64(process.Memory.Total()))
	s.aun()
	s.callbacks()
	s.trust(c.app)
	if c.app.AMP != nil {
		s.amp(c.app.AMP)
	}
	opened, partners := c.app.configuration.Held(), c.app.configuration.Partners()
	if opened == nil {
		return
	}
	for p := range partners.Agents() { // Partners with one agent are measured together
		s.agent(p.Title, p.Gateway)
	}
	for p := range partners.Each() {
		s.policy(p.Name, process.PolicyMeter(p.Name))
		for result, n := range process.TokenMeter(p.Name).Results() {
			s.Add(metricTokens, float64(n), p.Name, result)
		}
	}
	s.tasks(opened.Tasks.Engines())
	s.Flag(metricDraining, !opened.Tasks.Process().Draining().IsZero())
	s.Flag(metricWritable, opened.Storage.Writable() == nil)
	if store, ok := opened.Storage.(prometheus.Collector); ok {
		store.Collect(out)
	}
	s.notify(opened.Tasks.Webhooks().Counts())
	s.groups(partners, opened.Groups.Counts())
	s.certificates(c.app.certificates)
	s.certificates(currentCertificates(c.app.members))
}

// samples are the values that Collect sends.
type samples struct{ metric.Samples }

// labelValue returns a name as the value of a label.
func labelValue(name string) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(name))
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

// policy adds what the policies of a Partner have decided.
func (s samples) policy(name string, m *policy.Meter) {
	for r := range m.Rules() {
		s.Add(metricPolicy, float64(r.Allowed), name, r.Name, "allow")
		s.Add(metricPolicy, float64(r.Denied), name, r.Name, "deny")
		s.Add(metricPolicy, float64(r.DryRun), name, r.Name, "dry-run")
	}
	for q := range m.Quotas() {
		s.Add(metricQuota, float64(q.Denied), name, q.Name, "false")
		s.Add(metricQuota, float64(q.DryRun), name, q.Name, "true")
	}
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

// tasks adds the unfinished tasks of all agents.
func (s samples) tasks(e partner.Engines) {
	s.Add(metricUnfinished, float64(e.Unfinished()))
	s.Add(metricTasks, float64(e.InState(task.None)), "pending")
	for _, state := range task.States() {
		if !state.Terminal() {
			s.Add(metricTasks, float64(e.InState(state)), string(state))
		}
	}
}

// amp adds what was reported to a monitor.
func (s samples) amp(a *AMP) {
	for _, r := range a.Records {
		written, lost := process.Reported.Of(amp.Type(r))
		s.Add(metricRecords, float64(written), r, "written")
		s.Add(metricRecords, float64(lost), r, "lost")
	}
}

// notify adds what concerns webhooks.
func (s samples) notify(c notify.Counts) {
	s.Add(metricAttempts, float64(c.Delivered), "delivered")
	s.Add(metricAttempts, float64(c.Failed), "failed")
	s.Add(metricDead, float64(c.Dead))
	s.Add(metricPending, float64(c.Pending))
	s.Add(metricOldest, c.Oldest.Seconds())
	s.Add(metricInFlight, float64(c.InFlight))
	s.Add(metricReady, float64(c.Ready))
	s.Add(metricBreakers, float64(c.Open))
}
