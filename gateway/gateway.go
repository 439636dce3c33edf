// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Config is what a Gateway is made of.
type Config struct {
	// Process is what the gateway shares with all others.
	Process *Process
	// Ready returns once Register has been called, or an error, which refuses a request. It is called for every request.
	// Default: the gateway is registered before its first request.
	Ready func(context.Context) error

	// Partner is the life-cycle's configuration. Its Agent, Memory and Log are set by New.
	Partner partner.Config
	Agent   AgentConfig
	AIC     string // the Partner's, if it has one
	Cards   Cards

	// Base is the path that the Partner is mounted under, without a slash at its end.
	Base string
	// PublicURL is the public URL of the mount point. Default: as the caller wrote it.
	PublicURL string

	// Callers are the dialects that are served, as Callers makes them. Where a path is open to several, the first that
	// matches the request has it.
	Callers []translate.Server
	// Confirm says that Callers were made for a Partner whose tasks wait to be confirmed.
	Confirm bool
	// Guard decides who may call.
	Guard *identity.Guard

	// Blocking is how long a call that waits until its task rests may take. Then it is answered with the task as it is.
	Blocking time.Duration
	// Limits bound a request's body.
	Limits jsonrpc.Limits
	// BodyTimeout is how long a caller may take to send a request's body.
	BodyTimeout time.Duration
	// Memory bounds what callers hold of it by their requests, answers and streams. MemoryPatience is how long a call
	// waits for some.
	Memory         quota.Limits
	MemoryPatience time.Duration
	// Streaming is how streams are served. Its Open is set by New.
	Streaming Streaming

	Log *slog.Logger
}

// Gateway is one Partner, with its front.
type Gateway struct {
	*Handler
	config Config
	agent  fronted

	// set by Register
	partner  *partner.Partner
	webhooks *notify.Engine
}

// New composes a gateway. Nothing is opened, and nothing is sent, before Register.
func New(c Config) (*Gateway, error) {
	agent, card, err := c.Agent.reach(c.Process)
	if err != nil {
		return nil, err
	}
	memory := quota.Budget{Counter: &c.Process.Memory, Limits: c.Memory, Patience: c.MemoryPatience}
	c.Partner.Agent, c.Partner.Memory, c.Partner.Log = agent, memory, c.Log
	c.Streaming.Open = &c.Process.Streams
	g := &Gateway{config: c, agent: agent}
	s := &shower{
		cards: c.Cards, aic: c.AIC, generations: names(c.Callers), mutualTLS: c.Guard.Mode == identity.Required, log: c.Log,
		described: described{dialect: c.Agent.Dialect, name: c.AIC, card: card, agent: agent, since: time.Now()},
	}
	g.Handler = &Handler{
		Base:         c.Base,
		PublicURL:    c.PublicURL,
		Documents:    s.documents(),
		ExtendedCard: s.extendedCard,
		Callers:      c.Callers,
		Confirm:      c.Confirm,
		Guard:        c.Guard,
		Partner: func(ctx context.Context) (*partner.Partner, error) {
			if c.Ready != nil {
				if err := c.Ready(ctx); err != nil {
					return nil, err
				}
			}
			return g.partner, nil
		},
		Webhooks:    func() *notify.Engine { return g.webhooks },
		Blocking:    c.Blocking,
		Limits:      c.Limits,
		BodyTimeout: c.BodyTimeout,
		Memory:      memory,
		Streaming:   c.Streaming,
		Log:         c.Log,
	}
	return g, nil
}

// Register begins the Partner's work on the tasks of a store.
func (g *Gateway) Register(t *Tasks) {
	g.webhooks, g.partner = t.Webhooks, t.Engine.Register(g.config.Partner)
}

// Unregister hands the Partner's unattended tasks to another gateway of its name, if there is one. Calls under way are
// not affected. It does nothing if the gateway was not registered.
func (g *Gateway) Unregister() {
	if g.partner != nil {
		g.partner.Unregister()
	}
}

// Close closes idle connections to the agent. Calls under way keep theirs.
func (g *Gateway) Close() { g.agent.Close() }
