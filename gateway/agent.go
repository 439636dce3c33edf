// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	aunclient "github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
	"github.com/aip-gateway/aip-gateway/upstream/grpctransport"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// AgentConfig is how messages are sent to the agent.
type AgentConfig struct {
	Name    string // of the agent in metrics; configurations with the same name share a Meter
	Dialect string // one that CheckAgentDialect knows
	Sender  string // the senderId that the gateway sends to an agent of AIP

	// Expose says what a Leader sees of the messages of an agent of the Agent API that are no answers.
	Expose agentapi.Expose
	// CancelPath is the path, on the host of the URL, by which a run of the Agent API is stopped; empty where there is
	// none.
	CancelPath string

	// AUN says as whom and where an agent of AUN is reached.
	AUN aunclient.ClientConfig
	// IdleWindow is how long an agent of AUN that is spoken to by messages may say nothing until its turn is over; 0 is
	// for the default of auntransport.
	IdleWindow time.Duration

	// HTTP is the configuration of the transport of all others. New sets its Codec.
	HTTP httptransport.Config
	// Turns is the configuration of the turn driver. New sets its Resolver, Slots and Listener.
	Turns       upstream.Config
	MaxRequests int // the most requests in flight to the agent
	// MaxPerLeader is the most turns of one Leader among them; 0 for no bound.
	MaxPerLeader int
	CallbackURL  string // the URL at which the agent reaches Process.Callbacks; empty for none

	// Owner returns the AID under which a Leader owns the tasks of an agent that connects to the gateway; nil for none.
	// The URL of such an agent is its AID.
	Owner func(leader string) string
}

// agentAPI returns the settings of an agent of the Agent API.
func (c *AgentConfig) agentAPI() agentapi.Options {
	return agentapi.Options{Expose: c.Expose, Cancels: c.CancelPath != ""}
}

// discovery returns where the agent is looked for.
func (c *AgentConfig) discovery() discovery.Config {
	return discovery.Config{URL: c.HTTP.URL, Finder: a2a.Finder(), Header: c.HTTP.Header, TLS: c.HTTP.TLS}
}

// reach returns the agent, and what fetches its card. Nothing is sent yet.
func (c *AgentConfig) reach(process *Process) (*upstream.Agent, *discovery.Card, error) {
	where := c.discovery()
	card := discovery.NewCard(where)
	turns := c.Turns
	turns.Traffic = &process.meterOf(c.Name).Traffic
	if c.Dialect == AUN {
		turns.Slots = process.slotsOf(c.AUN.URL+" "+string(c.AUN.Peer), c)
		turns.Resolver = upstream.NewEndpoint(clients[AUN](c), process.AUN.New(c.AUN, c.IdleWindow))
		return upstream.New(turns), card, nil
	}
	turns.Slots = process.slotsOf(c.HTTP.URL, c)
	if c.CallbackURL != "" && c.Dialect != AgentAPI { // whose agents have no cards, and push nothing
		turns.Listener = process.Callbacks.At(c.CallbackURL, card.Pushes)
	}
	if Connects(c.Dialect) {
		codec := aun.Assignee(c.HTTP.URL, c.Owner)
		turns.Resolver = upstream.NewEndpoint(codec, process.Assignees.Transport(c.HTTP.URL))
		return upstream.New(turns), card, nil
	}
	var err error
	if turns.Resolver, err = c.resolver(where); err != nil {
		return nil, nil, err
	}
	return upstream.New(turns), card, nil
}

// resolver returns what knows the dialect of the agent, or finds it out.
func (c *AgentConfig) resolver(where discovery.Config) (upstream.Resolver, error) {
	if c.Dialect != A2A {
		codec := clients[c.Dialect](c)
		transport, err := c.open(c.HTTP.URL, codec)
		if err != nil {
			return nil, err
		}
		return upstream.NewEndpoint(codec, transport), nil
	}
	codecs := make(map[string]func() translate.Client, len(clients))
	for name, codec := range clients {
		codecs[name] = func() translate.Client { return codec(c) }
	}
	resolver, err := discovery.NewResolver(discovery.ResolverConfig{
		Discover: where, Codecs: codecs, Next: nextDialect, Open: c.open, Logger: c.Turns.Logger,
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
	if _, ok := codec.(translate.StatusReader); ok {
		transport, err := grpctransport.New(grpctransport.Config{URL: url, Codec: codec, Header: c.HTTP.Header,
			TLS: c.HTTP.TLS, MaxMessage: c.HTTP.MaxReply, Dial: c.HTTP.Dial})
		if err != nil {
			return nil, err // not a nil pointer in a non-nil interface
		}
		return transport, nil
	}
	if c.CancelPath != "" {
		config.Paths = map[translate.Operation]string{translate.Cancel: c.CancelPath}
	}
	transport, err := httptransport.New(config)
	if err != nil {
		return nil, err // not a nil pointer in a non-nil interface
	}
	return transport, nil
}

// nextDialect is the dialect to try if an agent does not know the methods of the dialect that its card names. Cards are
// wrong in either direction.
var nextDialect = map[string]string{
	"a2a/1.0":      "a2a/0.3",
	"a2a/1.0-rest": "a2a/1.0",
	"a2a/0.3":      "a2a/legacy",
	"a2a/legacy":   "a2a/0.3",
}

// grpcOnly is the dialect of agents whose URL is that of a server of gRPC, which mostly has no card.
const grpcOnly = "a2a/1.0-grpc"

// described is an agent with its cards.
type described struct {
	dialect string // the agent's
	name    string // of an agent whose dialect has no cards
	card    *discovery.Card
	agent   *upstream.Agent
	since   time.Time // when the configuration was made
}

// public returns the public card of the agent, and when it has changed. If the dialect has no cards, one is made.
func (d *described) public(ctx context.Context) (*translate.Card, time.Time, error) {
	made := &translate.Card{Name: d.name, Streaming: true} // without the URL, which is private
	if !isA2A(d.dialect) {
		return made, d.since, nil
	}
	card, changed, err := d.card.Get(ctx)
	if err != nil && d.dialect == grpcOnly {
		return made, d.since, nil
	}
	return card, changed, err
}

// extended returns the extended card of the agent.
func (d *described) extended(ctx context.Context) (*translate.Card, error) {
	body, err := d.agent.Describe(ctx)
	if err != nil {
		return nil, err
	}
	return a2a.ParseCard(body)
}
