// SPDX-License-Identifier: Apache-2.0

// Package gateway is one Partner, between its callers and its agent. New composes it of its parts. A front takes callers'
// requests from a transport, and Dispatch carries them out: it has a dialect read them and a guard check who sent them, lets
// the Partner execute them, and returns a reply, a stream, or both. It knows no transport of callers and no Caddy.
package gateway

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// Config is what a Gateway is made of.
type Config struct {
	// Process is what the gateway shares with all others.
	Process *Process
	// Ready returns once Register has been called, or an error, which refuses a request. It is called for every request.
	// Default: the gateway is registered before its first request.
	Ready func(context.Context) error

	// Partner is the life-cycle's configuration. Its Memory and Log are set by New, and its Agent, unless there is one, by
	// Agent.
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
	// Memory bounds what callers hold of it by their requests, answers and streams. MemoryPatience is how long a call
	// waits for some.
	Memory         quota.Limits
	MemoryPatience time.Duration
	// Streaming is how streams are served.
	Streaming Streaming
	// Tracing makes the spans of calls that come without a recorded span; nil makes none.
	Tracing trace.TracerProvider

	Log *slog.Logger
}

// Gateway is one Partner, as fronts serve it. It may be used by any number of goroutines at once.
type Gateway struct {
	config    Config
	agent     *upstream.Agent // nil if the Partner was given one
	cards     *shower
	documents map[string]Document
	memory    quota.Budget

	// set by Register
	partner  *partner.Partner
	webhooks *notify.Engine
}

// New composes a gateway. Nothing is opened, and nothing is sent, before Register.
func New(c Config) (*Gateway, error) {
	about := described{dialect: c.Agent.Dialect, name: c.AIC, since: time.Now()}
	if c.Partner.Agent == nil {
		var err error
		if about.agent, about.card, err = c.Agent.reach(c.Process); err != nil {
			return nil, err
		}
		c.Partner.Agent = about.agent
	}
	memory := quota.Budget{Counter: &c.Process.Memory, Limits: c.Memory, Patience: c.MemoryPatience}
	c.Partner.Memory, c.Partner.Log = memory, c.Log
	g := &Gateway{config: c, agent: about.agent, memory: memory, cards: &shower{
		described: about, cards: c.Cards, aic: c.AIC, generations: names(c.Callers),
		mutualTLS: c.Guard.Mode == identity.Required, log: c.Log,
	}}
	g.documents = g.cards.documents()
	return g, nil
}

// Dialects returns the names of the dialects that are served.
func (g *Gateway) Dialects() []string { return g.cards.generations }

// Base returns the path that the Partner is mounted under, without a slash at its end.
func (g *Gateway) Base() string { return g.config.Base }

// MaxBody returns how large a request's body may be, in bytes. A front takes in one byte more of a larger one.
func (g *Gateway) MaxBody() int { return g.config.Limits.Bytes }

// URL returns the public URL of the mount point: as it is configured, or by the host that a caller has sent its request to.
func (g *Gateway) URL(overTLS bool, host string) string {
	switch {
	case g.config.PublicURL != "":
		return g.config.PublicURL
	case overTLS:
		return "https://" + host + g.config.Base
	}
	return "http://" + host + g.config.Base
}

// Draining reports whether another configuration has taken over.
func (g *Gateway) Draining() bool { return g.config.Streaming.Drain.Err() != nil }

// ready returns the Partner once it is registered.
func (g *Gateway) ready(ctx context.Context) (*partner.Partner, error) {
	if g.config.Ready != nil {
		if err := g.config.Ready(ctx); err != nil {
			return nil, err
		}
	}
	return g.partner, nil
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
func (g *Gateway) Close() {
	if g.agent != nil {
		g.cards.card.Close()
		g.agent.Close()
	}
}
