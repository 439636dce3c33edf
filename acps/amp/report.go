// SPDX-License-Identifier: Apache-2.0

package amp

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// Call is a call that a Partner has answered.
type Call struct {
	AIC     string // of the Partner
	Began   time.Time
	Took    time.Duration // of a stream: until it began
	Dialect string
	Command string // as it is named in metrics
	Caller  string // the id that the caller has proven; empty if it has proven none
	Leader  string
	Address string // of the caller; empty if it is not known
	Task    string
	Error   string // the kind of the error; empty for none
	Refused bool   // the error says that the caller may not call
	Failed  bool   // the error is not the caller's
	Trace   Trace
}

// Agent is a Partner that reports.
type Agent struct {
	AIC string
	// Alive reports whether the agent behind the Partner can be called.
	Alive func() bool
	// Load returns how many turns are at the agent, how many wait for it, and how many may be there at once.
	Load func() (running, waiting, most int)
}

// Reporter makes the records of Partners. It may be used by any number of goroutines at once.
type Reporter struct {
	log     *Log
	agents  []Agent
	every   time.Duration
	started time.Time // of the process

	mu      sync.Mutex
	windows map[string]*window // by AIC
}

// window is how calls went since the last record of metrics.
type window struct {
	calls, failed int
	took          []time.Duration // of as many calls as are kept
	sum           time.Duration
}

const (
	measuring = time.Minute // what records of metrics are about
	maxTook   = 8192        // durations that are kept in that time; of more calls, the quantiles are of the first ones
)

// NewReporter returns a Reporter, which sends heartbeats in an interval while it runs.
func NewReporter(l *Log, agents []Agent, every time.Duration, started time.Time) *Reporter {
	r := &Reporter{log: l, agents: agents, every: every, started: started, windows: make(map[string]*window)}
	for _, a := range agents {
		r.windows[a.AIC] = new(window)
	}
	return r
}

// Run reports heartbeats, the first ones at once, and metrics, until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	beat, minute := time.NewTicker(r.every), time.NewTicker(measuring)
	defer beat.Stop()
	defer minute.Stop()
	r.beat()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			if ctx.Err() == nil {
				r.beat()
			}
		case <-minute.C:
			r.measure()
		}
	}
}

// beat reports which agents are alive.
func (r *Reporter) beat() {
	now := time.Now()
	for _, a := range r.agents {
		if a.Alive() {
			r.log.Add(Record{Type: Heartbeat, AIC: a.AIC, At: now, Body: Object{"uptimeSeconds": r.uptime(now)}})
		}
	}
}

func (r *Reporter) uptime(now time.Time) int64 { return int64(now.Sub(r.started).Seconds()) }

// measure reports how calls went since it was called last.
func (r *Reporter) measure() {
	if !r.log.Writes(Metrics) {
		return
	}
	now := time.Now()
	for _, a := range r.agents {
		running, waiting, most := a.Load()
		load := Object{"activeTasks": running, "queuedTasks": waiting}
		if most > 0 {
			load["maxActiveTasks"] = most
		}
		r.mu.Lock()
		w := *r.windows[a.AIC]
		*r.windows[a.AIC] = window{}
		r.mu.Unlock()
		r.log.Add(Record{Type: Metrics, AIC: a.AIC, At: now, Body: Object{
			"uptimeSeconds": r.uptime(now), "loadMetrics": load, "windowMetrics": []any{w.object()},
		}})
	}
}

// object returns a window as JSON. Without a call, all of them have succeeded.
func (w *window) object() Object {
	o := Object{"window": "PT1M", "successRate": 100.0, "requestTotal": w.calls,
		"requestPerSecond": rounded(float64(w.calls) / measuring.Seconds())}
	if w.calls == 0 {
		return o
	}
	o["successRate"] = rounded(100 * float64(w.calls-w.failed) / float64(w.calls))
	o["avgLatencyMs"] = milliseconds(w.sum / time.Duration(w.calls))
	slices.Sort(w.took)
	for name, q := range map[string]float64{
		"p50LatencyMs": 0.5, "p90LatencyMs": 0.9, "p95LatencyMs": 0.95, "p99LatencyMs": 0.99,
	} {
		o[name] = milliseconds(w.took[min(int(math.Ceil(q*float64(len(w.took))))-1, len(w.took)-1)])
	}
	return o
}

// rounded returns a number with three decimals.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

func milliseconds(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }

// Called reports a call. It does not wait.
func (r *Reporter) Called(c *Call) {
	if r.log.Writes(Metrics) {
		r.mu.Lock()
		if w := r.windows[c.AIC]; w != nil {
			w.calls++
			w.sum += c.Took
			if c.Failed {
				w.failed++
			}
			if len(w.took) < maxTook {
				w.took = append(w.took, c.Took)
			}
		}
		r.mu.Unlock()
	}
	if r.log.Writes(Access) {
		r.log.Add(Record{Type: Access, AIC: c.AIC, At: c.Began, Trace: c.Trace, Correlation: c.Task,
			Severity: c.severity(), Body: c.access()})
	}
	if r.log.Writes(Audit) && c.concernsAudit() {
		r.log.Add(Record{Type: Audit, AIC: c.AIC, At: c.Began, Trace: c.Trace, Correlation: c.Task, Body: c.audit()})
	}
}

func (c *Call) severity() Severity {
	switch {
	case c.Failed:
		return Error
	case c.Error != "":
		return Warn
	}
	return Info
}

// access returns the body of a record of access (AMP v02.02 §5.4.1). The operation is that of the canon, whatever the
// dialect calls it, so that monitors can add them up.
func (c *Call) access() Object {
	o := Object{
		"durationMs": milliseconds(c.Took),
		"request":    Object{"method": c.Command, "url": c.Dialect, "route": c.Dialect},
		"callee":     Object{"aic": c.AIC},
	}
	if caller := some(Object{"aic": c.Caller, "ip": c.Address}); len(caller) > 0 {
		o["caller"] = caller
	}
	if c.Error != "" {
		o["error"] = Object{"code": c.Error}
	}
	return o
}

// reads are the commands that change nothing.
var reads = []string{"get", "re-stream", "list", "get-webhooks", "extended-card", "unknown"}

// concernsAudit reports whether a call changes something, or was refused.
func (c *Call) concernsAudit() bool { return c.Refused || !slices.Contains(reads, c.Command) }

// audit returns the body of a record of audit (AMP v02.02 §5.6.1).
func (c *Call) audit() Object {
	actor := some(Object{"id": c.Caller, "ip": c.Address, "name": c.Leader})
	if c.Caller == "" {
		actor["id"] = "unknown"
		if c.Leader != "" {
			actor["id"] = c.Leader
		}
	}
	actor["type"] = "service"
	result := Object{"status": "success"}
	if c.Error != "" {
		result = Object{"status": "failure", "errorCode": c.Error}
	}
	target := Object{"type": "agent", "id": c.AIC}
	if c.Task != "" {
		target = Object{"type": "task", "id": c.Task}
	}
	return Object{
		"actor":  actor,
		"action": Object{"name": "task." + c.Command, "type": "task", "method": c.Dialect + " " + c.Command},
		"target": target, "result": result,
	}
}

// some returns the texts that are not empty.
func some(o Object) Object {
	for name, value := range o {
		if value == "" {
			delete(o, name)
		}
	}
	return o
}
