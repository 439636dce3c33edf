// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
)

// AgentHealth is what is known of an agent.
type AgentHealth struct {
	Dialect  string            // empty if it is not known yet
	Answered time.Time         // when the agent last answered a request; zero for never
	Failed   *upstream.Failure // the last request that was not answered; nil for none
}

// Up reports whether the agent has answered since its last failure.
func (h *AgentHealth) Up() bool {
	return !h.Answered.IsZero() && (h.Failed == nil || h.Answered.After(h.Failed.At))
}

// Health returns what is known of the agent. It sends nothing.
func (g *Gateway) Health() (h AgentHealth) {
	if g.agent == nil {
		return h
	}
	traffic := g.agent.Traffic()
	return AgentHealth{Dialect: g.agent.Dialect(), Answered: traffic.Answered(), Failed: traffic.Failed()}
}

// AskAgent asks the agent once for a task that does not exist, which changes nothing. It finds out the dialect if that
// is not known. An error says that no agent of the dialect has answered.
func (g *Gateway) AskAgent(ctx context.Context) error { return g.agent.Check(ctx) }

// OtherDialect asks an agent with a configured version of A2A whether it speaks that version at its URL, by a question
// that changes nothing. If it denies that, or does not answer as an agent of A2A would, OtherDialect finds out what the
// agent speaks, and where. Both results are empty if nothing else is found.
func (c *AgentConfig) OtherDialect(ctx context.Context) (dialect, url string) {
	if d := dialectOf(c.Dialect); d.client == nil || d.Transport != OverHTTP || !d.cards {
		return "", ""
	}
	where := c.discovery()
	if verdict, err := discovery.Ask(ctx, where, c.Dialect); err != nil || verdict == translate.Yes {
		return "", ""
	}
	found, err := discovery.Discover(ctx, where)
	if err != nil || found.Dialect == c.Dialect && found.URL == c.HTTP.URL {
		return "", ""
	}
	return found.Dialect, found.URL
}

// CheckAgent asks the agent something that changes nothing, once in every interval, until ctx ends, so that Health
// knows of the agent before a turn needs it.
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
