// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// Config is the configuration of a Gateway.
type Config struct {
	// Process is shared by all gateways.
	Process *Process
	// Ready is called for every request. It waits until Register has been called; an error refuses the request. nil:
	// the gateway is registered before its first request.
	Ready func(context.Context) error

	// Partner is the configuration of the life-cycle. New sets its Memory, Meter and Log, and also its Agent if this is
	// nil.
	Partner partner.Config
	Agent   AgentConfig // for making Partner.Agent
	AIC     string      // of the Partner; empty for none
	Name    string      // of the Partner, in cards made without one of its agent. Default: the AIC
	Cards   Cards

	// Base is the path of the Partner's mount, without a slash at its end.
	Base string
	// PublicURL is the public URL of the mount point. Default: the URL used by the caller.
	PublicURL string

	// HTTP2 has the kinds of connections on which callers can use HTTP/2, and so gRPC.
	HTTP2 HTTP2

	// Callers are the served dialects, as Callers makes them. If several have the path of a request, the first match
	// decodes it.
	Callers []translate.Server
	// Confirm is true if Callers were made with confirm: a finished task waits until its caller confirms it.
	Confirm bool
	// AutoComplete completes a task started by a Leader of AIP as soon as its agent has finished.
	AutoComplete bool
	// Guard decides about the peers' right to call.
	Guard *identity.Guard
	// AAC checks the access tokens of callers; nil reads none.
	AAC AAC
	// Schemes are the callers' ways of proving their identities, by the name of their dialect, for the cards. Default: a
	// client certificate, if the Guard requires a proof.
	Schemes map[string]a2a.Schemes
	// Policy decides about their calls, and counts them; nil allows all.
	Policy Policy
	// Revocation is asked before each call of a peer with a certificate; nil: no certificate is revoked.
	Revocation Revocation
	// Inactive returns the reason why the Partner takes no calls now, as an error of kind AgentUnavailable; nil if it
	// does. Its tasks go on meanwhile. nil: it always takes calls. It may be called by any number of goroutines at once.
	Inactive func() error
	// Issues reports whether a peer could prove an id of a kind now; nil: it always could.
	Issues func(kind identity.Kind, id string) bool
	// InForce returns the gateways of a Partner in the configuration in force. They judge calls received during a
	// replacement of their configuration. nil: the rules of this configuration count to its end.
	InForce func(partner string) []*Gateway

	// Watch is called with each answered call, and must not wait; nil: it is not called.
	Watch func(*Answered)

	// Blocking is the time for which a blocking call waits for the agent to finish or to need input. Then it is answered
	// with the task as it is.
	Blocking time.Duration
	// Limits bound the body of a request.
	Limits jsonrpc.Limits
	// Memory bounds the bytes held by the requests, answers and streams of callers. MemoryPatience is the time for which a
	// call waits for some of it.
	Memory         limit.Limits
	MemoryPatience time.Duration
	// Streaming is the configuration of streams.
	Streaming Streaming
	// Groups is true if the Partner takes part in groups: TakePart is called before Ready allows the first request.
	Groups bool
	// Tracing makes the spans of calls without a recorded span in their context; nil makes none.
	Tracing trace.TracerProvider

	Log *slog.Logger
}

// HTTP2 has the kinds of connections on which callers can use HTTP/2.
type HTTP2 struct{ TLS, Plain bool }

// Gateway is one Partner for its fronts. It may be used by any number of goroutines at once.
type Gateway struct {
	config    Config
	agent     *upstream.Agent // nil if the Partner was given one
	cards     *cardMaker
	documents map[string]Document
	memory    limit.Budget
	meter     *Meter

	// set by Register
	tasks *Tasks
	owned *shard.Each[owned]

	groups Groups // set by TakePart; nil if the Partner takes part in none
}

// New composes a gateway. It opens nothing and sends nothing: Register begins the work.
func New(c Config) (*Gateway, error) {
	if c.Inactive == nil {
		c.Inactive = func() error { return nil }
	}
	about := described{name: cmp.Or(c.Name, c.AIC), version: c.Cards.Version, since: time.Now(),
		provider: translate.Provider{Organization: c.Cards.Organization, URL: c.Cards.OrganizationURL}}
	if d := dialectOf(c.Agent.Dialect); d != nil {
		about.dialect, about.hasCard = *d, c.Agent.hasCard(d)
	}
	if c.Partner.Agent == nil {
		var err error
		if about.agent, about.card, err = c.Agent.reach(c.Process); err != nil {
			return nil, err
		}
		c.Partner.Agent = about.agent
	}
	memory := limit.Budget{Counter: &c.Process.Memory, Limits: c.Memory, Patience: c.MemoryPatience}
	meter := c.Process.meterOf(c.Agent.Name)
	meter.serve(c.Callers)
	c.Partner.Memory, c.Partner.Meter, c.Partner.Log = memory, &meter.Tasks, c.Log
	if c.Guard.Mode == identity.Required && c.Schemes == nil {
		c.Schemes = make(map[string]a2a.Schemes)
		for _, caller := range c.Callers {
			c.Schemes[caller.Name()] = a2a.Schemes{MutualTLS: true}
		}
	}
	g := &Gateway{config: c, agent: about.agent, memory: memory, meter: meter, cards: &cardMaker{
		described: about, config: c.Cards, aic: c.AIC, publicURL: c.PublicURL, document: c.Partner.Name,
		generations: names(c.Callers),
		schemes:     c.Schemes, identified: c.Guard.Mode != identity.Off,
		http2: c.HTTP2, inactive: c.Inactive, log: c.Log,
	}}
	g.documents = g.cards.documents()
	return g, nil
}

// Dialects returns the names of the served dialects.
func (g *Gateway) Dialects() []string { return g.cards.generations }

// Base returns the path of the Partner's mount, without a slash at its end.
func (g *Gateway) Base() string { return g.config.Base }

// MaxBody returns the most bytes of a request's body. Of a larger one, a front reads one byte more.
func (g *Gateway) MaxBody() int { return g.config.Limits.Bytes }

// URL returns the public URL of the mount point: the configured one, or else the one at the host used by a caller.
// stripped is the part cut off the path of the caller's request.
func (g *Gateway) URL(overTLS bool, host, stripped string) string {
	switch {
	case g.config.PublicURL != "":
		return g.config.PublicURL
	case overTLS:
		return "https://" + host + stripped + g.config.Base
	}
	return "http://" + host + stripped + g.config.Base
}

// LogOf returns the name of the log of a Leader's task.
func (g *Gateway) LogOf(leader, taskID string) string {
	return logname.New(g.config.Partner.Name, leader, taskID)
}

// Head reads the head of a task's log, as partner.ReadHead does.
func (g *Gateway) Head(ctx context.Context, log string) (partner.Head, error) {
	if err := g.ready(ctx); err != nil {
		return partner.Head{}, err
	}
	_, leader, _ := logname.Split(log)
	return partner.ReadHead(ctx, g.logs(leader), log)
}

// Draining reports whether another configuration has replaced the gateway's.
func (g *Gateway) Draining() bool { return g.Replaced().Err() != nil }

// Replaced returns a context which is done when another configuration has replaced the gateway's.
func (g *Gateway) Replaced() context.Context { return g.config.Streaming.Drain }

// Close closes idle connections to the agent. Requests in flight keep theirs.
func (g *Gateway) Close() {
	if g.agent != nil {
		g.cards.card.Close()
		g.agent.Close()
	}
}
