// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
)

// AgentHealth is the gateway's knowledge of an agent.
type AgentHealth struct {
	Dialect  string            // empty if it is not known yet
	Answered time.Time         // when the agent last answered a request; zero for never
	Failed   *upstream.Failure // the last request without an answer; nil for none
}

// Up reports whether the agent has answered since its last failure.
func (h *AgentHealth) Up() bool {
	return !h.Answered.IsZero() && (h.Failed == nil || h.Answered.After(h.Failed.At))
}

// Down reports whether the agent has not answered since its last failure.
func (h *AgentHealth) Down() bool { return h.Failed != nil && !h.Up() }

// Health returns the gateway's knowledge of the agent. It sends nothing.
func (g *Gateway) Health() (h AgentHealth) {
	if g.agent == nil {
		return h
	}
	traffic := g.agent.Traffic()
	return AgentHealth{Dialect: g.agent.Dialect(), Answered: traffic.Answered(), Failed: traffic.Failed()}
}

// AskAgent asks the agent once for a task that does not exist, which changes nothing. It finds out an unknown dialect.
// After an error, no agent of the dialect has answered; see upstream.Agent.Check.
func (g *Gateway) AskAgent(ctx context.Context) error { return g.agent.Check(ctx) }

// WayToAgent returns whether messages to the agent ask for streams, and the reason; see upstream.Agent.Way.
func (g *Gateway) WayToAgent(ctx context.Context) (way, why string) { return g.agent.Way(ctx) }

// TryAgent sends the agent a text as a start, without a caller, and returns a record of the agent's acts; see
// upstream.Agent.Try.
func (g *Gateway) TryAgent(ctx context.Context, text string) *upstream.Trial {
	return g.agent.Try(ctx, text)
}

// Examine asks an agent of HTTP or gRPC, by harmless questions, whether it speaks the configured dialect at its URL. If
// it denies this, or does not answer as its agents do, Examine finds out its dialect and URL; both are empty if nothing
// else is found. answered is true if AskAgent had an answer; it decides for the dialects without a question of their
// own.
func (c *AgentConfig) Examine(ctx context.Context, answered bool) (v translate.Verdict, dialect, url string) {
	where, probes := c.discovery(), c.probes()
	own := slices.IndexFunc(probes, func(p translate.Probe) bool { return p.Dialect == c.Dialect })
	switch {
	case own >= 0:
		var err error
		if v, err = discovery.Ask(ctx, where, &probes[own]); err != nil {
			return translate.Unsure, "", ""
		}
	case answered:
		v = translate.Yes
	}
	if v == translate.Yes {
		return v, "", ""
	}
	if found, err := discovery.Discover(ctx, where); err == nil {
		if found.Dialect == c.Dialect && found.URL == c.HTTP.URL || c.Dialect == A2A {
			return v, "", ""
		}
		return v, found.Dialect, found.URL
	}
	for i := range probes {
		if i == own || isA2A(probes[i].Dialect) {
			continue
		}
		if other, err := discovery.Ask(ctx, where, &probes[i]); err == nil && other == translate.Yes {
			return v, probes[i].Dialect, c.HTTP.URL
		}
	}
	return v, "", ""
}

// probes returns the questions for telling dialects apart.
func (c *AgentConfig) probes() []translate.Probe {
	id := "aip-gateway-" + rand.Text()
	return slices.Concat(a2a.Finder().Probes(id), aip.Probes(c.Sender, id), []translate.Probe{agentapi.Probe()})
}

// CheckAgent asks the agent a harmless question, once in every interval, until ctx ends, so Health knows of the agent
// before a turn needs it.
func (g *Gateway) CheckAgent(ctx context.Context, every time.Duration) {
	if g.agent == nil {
		return
	}
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		_ = g.AskAgent(ctx) // Health shows it
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}
