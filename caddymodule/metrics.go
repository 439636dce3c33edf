// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/build"
	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// metric describes one metric of the gateway.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// metrics are the metrics of the gateway, all of which describe has made.
var metrics []*prometheus.Desc

// describe returns the description of a metric. The label agent is the name of the Partner for people.
func describe(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("aip_"+name, help, labels, nil)
	metrics = append(metrics, d)
	return d
}

func newCounter(name, help string, labels ...string) metric {
	return metric{describe(name, help, labels...), prometheus.CounterValue}
}

func newGauge(name, help string, labels ...string) metric {
	return metric{describe(name, help, labels...), prometheus.GaugeValue}
}

// The metrics of calls, tasks, agents and streams.
var (
	metricBuild = newGauge("build_info", "Always 1; its labels are the versions of the gateway, of Caddy and of Go.",
		"version", "caddy", "go")
	metricCalls = newCounter("calls_total", "Calls that were answered, by the kind of their error.",
		"agent", "dialect", "method", "kind")
	metricCallTook = describe("call_duration_seconds",
		"Time from a decoded request to its answer, or to the begin of its stream.", "agent", "dialect", "method")

	metricUnfinished = newGauge("tasks_unfinished", "Unfinished tasks in the store.")
	metricTasks      = newGauge("tasks", "Unfinished tasks by state; pending before the agent has answered.", "state")
	metricDraining   = newGauge("draining", "Whether new tasks are refused until the operator ends that: 1 or 0.")
	metricEntered    = newCounter("task_states_total", "Tasks that have entered a state.", "agent", "state")
	metricFailed     = newCounter("task_failures_total", "Turns that have failed, by the kind of the error.",
		"agent", "kind")
	metricResumed = newCounter("task_resumes_total", "Turns that were resumed.", "agent")
	metricFirst   = describe("task_first_report_seconds",
		"Time from the begin of a turn to the agent's first report that was stored.", "agent")
	metricSettled = describe("task_settled_seconds",
		"Time from the begin of a turn to its end: the agent has finished, failed or needs input.", "agent")

	metricRequests = newCounter("agent_requests_total", "Requests to an agent, by their outcome.", "agent", "outcome")
	metricRetries  = newCounter("agent_retries_total", "Messages that were sent to an agent again.", "agent")
	metricRuns     = newGauge("agent_runs", "Turns that have a request open at an agent.", "agent")
	metricWaiting  = newGauge("agent_runs_waiting", "Turns that wait for a free run of an agent.", "agent")
	metricUp       = newGauge("agent_up", "Whether an agent has answered the last request: 1 or 0.", "agent")

	metricTokens = newCounter("access_tokens_total",
		"Calls whose access token was checked, or that lack one which is required, by the result.", "partner", "result")
	metricPolicy = newCounter("policy_calls_total",
		"Calls about which a rule has decided; the decision dry-run is a denial by a policy that is only tried.",
		"partner", "rule", "decision")
	metricQuota = newCounter("quota_refusals_total",
		"Calls that a quota has refused; with dry_run, those that it would refuse.", "partner", "quota", "dry_run")

	metricStreams = newGauge("streams_open", "Open streams.")
	metricEvents  = newCounter("stream_events_total", "Events that were sent by streams.", "agent")
	metricRecords = newCounter("amp_records_total",
		"Records for a monitor, by their type; the outcome lost is for those that could not be written.", "type", "outcome")
	metricMemory = newGauge("memory_bytes", "Memory that requests, answers, streams and running tasks hold.")
)

// The metrics of the store and of webhooks.
var (
	metricWritable = newGauge("store_writable", "Whether the store accepts new tasks: 1 or 0.")

	metricAttempts = newCounter("notify_attempts_total", "Attempts to deliver a notification, by their result.", "result")
	metricDead     = newCounter("notify_dead_total", "Notifications that became dead letters, or were dropped.")
	metricPending  = newGauge("notify_pending", "Stored notifications that are neither delivered nor dead.")
	metricOldest   = newGauge("notify_oldest_seconds", "For how long the oldest pending notification has waited.")
	metricInFlight = newGauge("notify_in_flight", "Attempts that are being made.")
	metricReady    = newGauge("notify_ready", "Deliveries that wait in memory for their turn.")
	metricBreakers = newGauge("notify_breakers_open", "Endpoints in memory whose breaker is open.")
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
	for _, d := range metrics {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := samples{out}
	s.add(metricBuild, 1, build.Version(build.Module), build.Version("github.com/caddyserver/caddy/v2"), runtime.Version())
	s.add(metricStreams, float64(process.Streams.Total()))
	s.add(metricMemory, float64(process.Memory.Total()))
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
			s.add(metricTokens, float64(n), p.Name, result)
		}
	}
	s.tasks(opened.Tasks.Engines())
	s.flag(metricDraining, !opened.Tasks.Process().Draining().IsZero())
	s.flag(metricWritable, opened.Storage.Writable() == nil)
	if store, ok := opened.Storage.(sampledStore); ok {
		store.sample(s)
	}
	s.notify(opened.Tasks.Webhooks().Counts())
	s.groups(partners, opened.Groups.Counts())
	s.certificates(c.app.certificates)
	s.certificates(currentCertificates(c.app.members))
}

// sampledStore is a store that has metrics of its own, all of which describe has made.
type sampledStore interface{ sample(samples) }

// samples are the values that Collect sends.
type samples struct{ out chan<- prometheus.Metric }

func (s samples) add(m metric, value float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

func (s samples) flag(m metric, set bool, labels ...string) {
	value := 0.0
	if set {
		value = 1
	}
	s.add(m, value, labels...)
}

func (s samples) durations(d *prometheus.Desc, h measure.Snapshot, labels ...string) {
	m := prometheus.MustNewConstHistogram(d, h.Count, h.Sum, h.Buckets, labels...)
	if len(h.Exemplars) > 0 {
		all := make([]prometheus.Exemplar, len(h.Exemplars))
		for i, e := range h.Exemplars {
			all[i] = prometheus.Exemplar{Value: e.Took, Timestamp: e.At,
				Labels: prometheus.Labels{"trace_id": e.TraceID, "span_id": e.SpanID}}
		}
		m = prometheus.MustNewMetricWithExemplars(m, all...)
	}
	s.out <- m
}

// labelValue returns a name as the value of a label.
func labelValue(name string) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(name))
}

// agent adds what concerns one agent.
func (s samples) agent(name string, g *gateway.Gateway) {
	m := g.Meter()
	for c := range m.Calls() {
		for kind, n := range c.ByKind() {
			s.add(metricCalls, float64(n), name, c.Dialect, c.Method, labelValue(kind))
		}
		s.durations(metricCallTook, c.Took.Snapshot(), name, c.Dialect, c.Method)
	}
	for _, state := range task.States() {
		s.add(metricEntered, float64(m.Tasks.Entered(state)), name, string(state))
	}
	for _, kind := range task.Kinds() {
		if n := m.Tasks.Failed(kind); n > 0 {
			s.add(metricFailed, float64(n), name, labelValue(kind.String()))
		}
	}
	s.add(metricResumed, float64(m.Tasks.Resumed()), name)
	s.durations(metricFirst, m.Tasks.FirstReport.Snapshot(), name)
	s.durations(metricSettled, m.Tasks.Settled.Snapshot(), name)
	s.traffic(name, g)
	s.add(metricEvents, float64(m.Events.Load()), name)
}

// policy adds what the policies of a Partner have decided.
func (s samples) policy(name string, m *policy.Meter) {
	for r := range m.Rules() {
		s.add(metricPolicy, float64(r.Allowed), name, r.Name, "allow")
		s.add(metricPolicy, float64(r.Denied), name, r.Name, "deny")
		s.add(metricPolicy, float64(r.DryRun), name, r.Name, "dry-run")
	}
	for q := range m.Quotas() {
		s.add(metricQuota, float64(q.Denied), name, q.Name, "false")
		s.add(metricQuota, float64(q.DryRun), name, q.Name, "true")
	}
}

// traffic adds what concerns the requests to an agent.
func (s samples) traffic(name string, g *gateway.Gateway) {
	t := &g.Meter().Traffic
	for outcome, n := range t.Requests() {
		if n > 0 || outcome == "ok" {
			s.add(metricRequests, float64(n), name, labelValue(outcome))
		}
	}
	s.add(metricRetries, float64(t.Retries()), name)
	if slots := g.Slots(); slots != nil {
		used, waiting := slots.Use()
		s.add(metricRuns, float64(used), name)
		s.add(metricWaiting, float64(waiting), name)
	}
	if h := g.Health(); !h.Answered.IsZero() || h.Failed != nil {
		s.flag(metricUp, h.Up(), name)
	}
}

// tasks adds the unfinished tasks of all agents.
func (s samples) tasks(e partner.Engines) {
	s.add(metricUnfinished, float64(e.Unfinished()))
	s.add(metricTasks, float64(e.InState(task.None)), "pending")
	for _, state := range task.States() {
		if !state.Terminal() {
			s.add(metricTasks, float64(e.InState(state)), string(state))
		}
	}
}

// amp adds what was reported to a monitor.
func (s samples) amp(a *AMP) {
	for _, r := range a.Records {
		written, lost := process.Reported.Of(amp.Type(r))
		s.add(metricRecords, float64(written), r, "written")
		s.add(metricRecords, float64(lost), r, "lost")
	}
}

// notify adds what concerns webhooks.
func (s samples) notify(c notify.Counts) {
	s.add(metricAttempts, float64(c.Delivered), "delivered")
	s.add(metricAttempts, float64(c.Failed), "failed")
	s.add(metricDead, float64(c.Dead))
	s.add(metricPending, float64(c.Pending))
	s.add(metricOldest, c.Oldest.Seconds())
	s.add(metricInFlight, float64(c.InFlight))
	s.add(metricReady, float64(c.Ready))
	s.add(metricBreakers, float64(c.Open))
}
