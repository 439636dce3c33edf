// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// AgentConfig says how the agent is reached.
type AgentConfig struct {
	Dialect string // one that CheckAgentDialect knows
	Sender  string // who the gateway is to an agent that is a Partner itself
	// HTTP is how messages are carried. Its Codec is set by New.
	HTTP httptransport.Config
	// Turns is how turns are carried out. Its Resolver, Slots and Listener are set by New.
	Turns       upstream.Config
	MaxRequests int    // that the agent is sent at once
	CallbackURL string // where Process.Callbacks is served to the agent; empty for nowhere
}

// reach returns the agent, and what fetches its card. Nothing is sent before it is needed.
func (c *AgentConfig) reach(process *Process) (*upstream.Agent, *discovery.Card, error) {
	where := discovery.Config{URL: c.HTTP.URL, Finder: a2a.Finder(), Header: c.HTTP.Header, TLS: c.HTTP.TLS}
	card := discovery.NewCard(where)
	turns := c.Turns
	turns.Slots = process.slotsOf(c.HTTP.URL, c.MaxRequests)
	if c.CallbackURL != "" {
		turns.Listener = process.Callbacks.At(c.CallbackURL, card.Pushes)
	}
	var err error
	if turns.Resolver, err = c.resolver(where); err != nil {
		return nil, nil, err
	}
	return upstream.New(turns), card, nil
}

// resolver returns what says how the agent is spoken to.
func (c *AgentConfig) resolver(where discovery.Config) (upstream.Resolver, error) {
	if c.Dialect != auto {
		codec := clients[c.Dialect](c.Sender)
		transport, err := c.open(c.HTTP.URL, codec)
		if err != nil {
			return nil, err
		}
		return upstream.NewEndpoint(codec, transport), nil
	}
	codecs := make(map[string]func() translate.Client, len(clients))
	for name, codec := range clients {
		codecs[name] = func() translate.Client { return codec(c.Sender) }
	}
	resolver, err := discovery.NewResolver(discovery.ResolverConfig{
		Discover: where, Codecs: codecs, Next: nextDialect, Open: c.open, Logger: c.Turns.Logger,
	})
	if err != nil {
		return nil, err // and no resolver that is a nil of some type
	}
	return resolver, nil
}

// open returns a transport to the agent in a dialect.
func (c *AgentConfig) open(url string, codec translate.Client) (upstream.Transport, error) {
	config := c.HTTP
	config.URL, config.Codec = url, codec
	transport, err := httptransport.New(config)
	if err != nil {
		return nil, err // and no transport that is a nil of some type
	}
	return transport, nil
}

// nextDialect is what is tried where an agent does not know the methods of what its card says that it speaks: cards
// are wrong in either direction.
var nextDialect = map[string]string{
	"a2a/1.0":      "a2a/0.3",
	"a2a/1.0-rest": "a2a/1.0",
	"a2a/0.3":      "a2a/legacy",
	"a2a/legacy":   "a2a/0.3",
}

// described is what a Partner's cards are made of.
type described struct {
	dialect string // the agent's
	name    string // what is known of an agent whose dialect has no card
	card    *discovery.Card
	agent   *upstream.Agent
	since   time.Time
}

// public returns the agent's card, or, for an agent whose dialect has none, what is known of it.
func (d *described) public(ctx context.Context) (*translate.Card, time.Time, error) {
	if !isA2A(d.dialect) {
		return &translate.Card{Name: d.name, Streaming: true}, d.since, nil // without its URL, which callers must not see
	}
	return d.card.Get(ctx)
}

// extended returns the card that the agent shows to the gateway alone.
func (d *described) extended(ctx context.Context) (*translate.Card, error) {
	body, err := d.agent.Describe(ctx)
	if err != nil {
		return nil, err
	}
	return a2a.ParseCard(body)
}
