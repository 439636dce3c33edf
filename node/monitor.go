// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"net"
	"os"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/task"
)

// Monitoring is what is reported of the Partners with an AIC to a monitor. The node knows Counts and Log.
type Monitoring struct {
	amp.Config

	Heartbeats time.Duration // between two of an agent
}

// startMonitoring begins to report of the Partners, until the configuration is drained. c.mu is held.
func (c *Configuration) startMonitoring(m *Monitoring) {
	if m == nil {
		return
	}
	_ = os.MkdirAll(m.Dir, 0o750) // what cannot be written is logged
	m.Counts, m.Log = &c.process.Reported, c.process.log("aip.amp")
	var agents []amp.Agent
	for _, p := range c.settings.Partners {
		if p.AIC != "" && !slices.ContainsFunc(agents, func(other amp.Agent) bool { return other.AIC == p.AIC }) {
			agents = append(agents, amp.Agent{AIC: p.AIC, Alive: func() bool { return c.isAlive(p) }, Load: p.load})
		}
	}
	c.records = amp.Open(m.Config) // closed when the last call has left
	reporter := amp.NewReporter(c.records, agents, m.Heartbeats, c.process.Began)
	c.reporter.Store(reporter)
	c.Go(func(ctx context.Context) { reporter.Run(ctx) })
}

// load returns the number of turns at the agent, of those that wait for it, and the greatest one there may be.
func (p *Partner) load() (running, waiting, most int) {
	if slots := p.Gateway.Slots(); slots != nil {
		running, waiting = slots.Use()
	}
	return running, waiting, p.MaxRuns
}

// Report reports a call of the Partner with an AIC to the monitor, if there is one.
func (c *Configuration) Report(aic string, of *gateway.Answered) {
	reporter := c.reporter.Load()
	if reporter == nil {
		return
	}
	call := amp.Call{AIC: aic, Began: of.At, Took: of.Took, Dialect: of.Dialect, Command: of.Command, Caller: of.User,
		Leader: of.Leader, Address: of.Address, Task: of.Task, Error: of.Error}
	if host, _, err := net.SplitHostPort(of.Address); err == nil {
		call.Address = host
	}
	if of.Error != "" {
		switch of.Kind {
		case task.AuthenticationRequired, task.AuthorizationFailed, task.AccessTokenInvalid:
			call.Refused = true
		case task.Internal, task.InvalidAgentResponse, task.AgentUnavailable, task.AgentTimeout, task.StoreUnavailable:
			call.Failed = true
		}
	}
	if of.Trace.IsValid() {
		call.Trace = amp.Trace{ID: of.Trace.TraceID().String(), Span: of.Trace.SpanID().String()}
	}
	reporter.Called(&call)
}
