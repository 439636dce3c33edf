// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/upstream"
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

// CanCheck reports whether CheckAgent has something to ask an agent of a dialect.
func CanCheck(dialect string) bool {
	return dialect != AgentAPI && dialect != AUN && !Connects(dialect)
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
		_ = g.agent.Check(ctx) // Health shows it
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}
