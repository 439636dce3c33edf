// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// AgentConfig says how the agent is reached.
type AgentConfig struct {
	Dialect string // one that CheckAgentDialect knows
	Sender  string // who the gateway is to an agent that is a Partner itself
	// HTTP is how messages are carried. Its Codec, Slots and Callbacks are set by New, Pushes with the latter.
	HTTP        upstream.Config
	MaxRequests int // that the agent is sent at once
}

// fronted is the agent that is fronted.
type fronted interface {
	partner.Agent
	Describe(context.Context) ([]byte, error)
	Close()
}

// reach returns the agent, and what fetches its card. Nothing is sent before it is needed.
func (c *AgentConfig) reach(process *Process) (fronted, *upstream.Card, error) {
	config := c.HTTP
	where := upstream.DiscoverConfig{URL: config.URL, Finder: a2a.Finder(), Header: config.Header, TLS: config.TLS}
	card := upstream.NewCard(where)
	config.Slots = process.slotsOf(config.URL, c.MaxRequests)
	if config.CallbackURL != "" {
		config.Callbacks, config.Pushes = &process.Callbacks, card.Pushes
	}
	if c.Dialect != auto {
		config.Codec = clients[c.Dialect](c.Sender)
		known, err := upstream.NewHTTP(config)
		if err != nil {
			return nil, nil, err // and no agent that is a nil of some type
		}
		return known, card, nil
	}
	codecs := make(map[string]func() translate.Client, len(clients))
	for name, codec := range clients {
		codecs[name] = func() translate.Client { return codec(c.Sender) }
	}
	found, err := upstream.NewFound(upstream.FoundConfig{Agent: config, Discover: where, Codecs: codecs, Next: nextDialect})
	if err != nil {
		return nil, nil, err
	}
	return found, card, nil
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
	card    *upstream.Card
	agent   fronted
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
