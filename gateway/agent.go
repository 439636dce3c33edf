// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"strings"
	"time"

	aunclient "github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
	"github.com/aip-gateway/aip-gateway/upstream/grpctransport"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// AgentConfig configures the sending of messages to the agent.
type AgentConfig struct {
	Name    string // of the agent in metrics; configurations with the same name share a Meter
	Dialect string // known to AgentDialect
	// CardURL is the URL of the agent's card, or ReadCard reads it; without either, it is at the dialect's own place.
	CardURL  string
	ReadCard func() ([]byte, error)

	Sender string // the gateway's senderId to an agent of AIP

	AgentAPI agentapi.Options // of an agent of the Agent API

	// AUN is the identity and the address for reaching an agent of AUN.
	AUN aunclient.ClientConfig
	// IdleWindow is the time of silence after which the turn of an agent of AUN in messages is over; 0 is for the default
	// of auntransport.
	IdleWindow time.Duration

	// Finder finds an agent of AIP without a URL; nil for one with a URL.
	Finder discovery.Finder

	// HTTP is the configuration of the transport of all others. New sets its Codec.
	HTTP httptransport.Config
	// Turns is the configuration of the turn driver. New sets its Resolver, Slots and Listener.
	Turns       upstream.Config
	MaxRequests int // the most requests in flight to the agent
	// MaxPerLeader is the most turns of one Leader among them; 0 for no bound.
	MaxPerLeader int
	CallbackURL  string // the URL of Process.Callbacks for the agent; empty for none

	// Owner returns the AID under which a Leader owns the tasks of an agent connecting to the gateway; nil for none. The
	// URL of such an agent is its AID.
	Owner func(leader string) string
}

// hasCard reports whether the agent has a card of its own, or a configured one.
func (c *AgentConfig) hasCard(d *Dialect) bool {
	return d.cards || c.CardURL != "" || c.ReadCard != nil
}

// discovery returns the places to look for the agent.
func (c *AgentConfig) discovery() discovery.Config {
	config := discovery.Config{URL: c.HTTP.URL, Finder: a2a.Finder(), Header: c.HTTP.Header, TLS: c.HTTP.TLS,
		CardURL: c.CardURL, ReadCard: c.ReadCard}
	if !strings.HasPrefix(c.HTTP.URL, "http") { // only its card is reached over HTTP
		config.URL, config.Header, config.TLS = cmp.Or(c.CardURL, "http://localhost/"), nil, nil
	}
	return config
}

// reach returns the agent, and the source of its card. Nothing is sent yet.
func (c *AgentConfig) reach(process *Process) (*upstream.Agent, *discovery.Card, error) {
	d, err := AgentDialect(c.Dialect)
	if err != nil {
		return nil, nil, err
	}
	address, card, turns := cmp.Or(c.HTTP.URL, c.Name), discovery.NewCard(c.discovery()), c.Turns
	switch d.Transport {
	case OverAUN:
		address = c.AUN.URL + " " + string(c.AUN.Peer)
		turns.Resolver = upstream.NewEndpoint(d.client(c), process.AUN.New(c.AUN, c.IdleWindow))
	case Connecting:
		turns.Resolver = upstream.NewEndpoint(d.client(c), process.Assignees.Transport(c.HTTP.URL))
	default:
		if turns.Resolver, err = c.resolver(d); err != nil {
			return nil, nil, err
		}
	}
	turns.Slots, turns.Secrets = process.slotsOf(address, c), upstream.NewSecrets(c.HTTP.Header)
	turns.Traffic = &process.meterOf(c.Name).Traffic
	if c.CallbackURL != "" && d.Polled() {
		turns.Listener = process.Callbacks.At(c.CallbackURL, card.Pushes)
	}
	if d.cards && c.HTTP.URL != "" {
		turns.Streams = card.Streams
	}
	return upstream.New(turns), card, nil
}

// resolver returns a resolver with a known dialect of the agent, or one finding it out.
func (c *AgentConfig) resolver(d *Dialect) (upstream.Resolver, error) {
	if d.client != nil && c.Finder == nil {
		codec := d.client(c)
		transport, err := c.open(c.HTTP.URL, codec)
		if err != nil {
			return nil, err
		}
		return upstream.NewEndpoint(codec, transport), nil
	}
	versions := make(map[string]discovery.Dialect)
	for _, v := range dialects {
		if v.client != nil && (c.Finder == nil && v.cards || c.Finder != nil && v.found) {
			versions[v.Name] = discovery.Dialect{Codec: func() translate.Client { return v.client(c) }, Older: v.older}
		}
	}
	resolver, err := discovery.NewResolver(discovery.ResolverConfig{
		Discover: c.discovery(), Finder: c.Finder, Dialects: versions, Open: c.open, Logger: c.Turns.Logger,
	})
	if err != nil {
		return nil, err // not a nil pointer in a non-nil interface
	}
	return resolver, nil
}

// open returns a transport to the agent in a dialect.
func (c *AgentConfig) open(url string, codec translate.Client) (upstream.Transport, error) {
	config := c.HTTP
	config.URL, config.Codec = url, codec
	if dialectOf(codec.Name()).Transport == OverGRPC {
		transport, err := grpctransport.New(grpctransport.Config{URL: url, Codec: codec, Header: c.HTTP.Header,
			TLS: c.HTTP.TLS, Introducer: c.HTTP.Introducer, MaxMessage: c.HTTP.MaxReply, Dial: c.HTTP.Dial})
		if err != nil {
			return nil, err // not a nil pointer in a non-nil interface
		}
		return transport, nil
	}
	if path := c.AgentAPI.CancelPath; path != "" {
		config.Paths = map[translate.Operation]string{translate.Cancel: path}
	}
	transport, err := httptransport.New(config)
	if err != nil {
		return nil, err // not a nil pointer in a non-nil interface
	}
	return transport, nil
}

// described is an agent with its cards.
type described struct {
	dialect  Dialect // the agent's
	hasCard  bool
	name     string // in cards made here
	version  string // likewise
	provider translate.Provider
	card     *discovery.Card
	agent    *upstream.Agent
	since    time.Time // when the configuration was made
}

// public returns the public card of the agent, and when it has changed. If the agent has none, one is made of the
// configuration.
func (d *described) public(ctx context.Context) (*translate.Card, time.Time, error) {
	card, changed, err := d.ofAgent(ctx)
	if upstream.ReasonOf(err) == upstream.CardMissing {
		return d.made(), d.since, nil
	}
	return card, changed, err
}

// ofAgent is public, but an agent not showing the card of its dialect is an error.
func (d *described) ofAgent(ctx context.Context) (*translate.Card, time.Time, error) {
	if !d.hasCard {
		return d.made(), d.since, nil
	}
	card, changed, err := d.card.Get(ctx)
	if err != nil && d.dialect.Transport == OverGRPC { // a server of gRPC mostly has no card
		return d.made(), d.since, nil
	}
	return card, changed, err
}

// made returns a card without one of the agent. It does not have the agent's URL, since this is private.
func (d *described) made() *translate.Card {
	return &translate.Card{Name: d.name, Version: d.version, Provider: d.provider, Streaming: true}
}

// extended returns the extended card of the agent.
func (d *described) extended(ctx context.Context) (*translate.Card, error) {
	body, err := d.agent.Describe(ctx)
	if err != nil {
		return nil, err
	}
	return a2a.ParseCard(body)
}
