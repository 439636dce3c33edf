// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// agent is what is fronted.
type agent interface {
	partner.Agent
	Describe(context.Context) ([]byte, error)
	Close()
}

// reach returns the agent, and sets what shows its card. Nothing is sent before it is needed.
func (g *Gateway) reach(header http.Header, repl *caddy.Replacer) (agent, error) {
	trust, err := g.Agent.TLS.config(repl)
	if err != nil {
		return nil, err
	}
	where := upstream.DiscoverConfig{URL: g.Agent.URL, Finder: a2a.Finder(), Header: header, TLS: trust}
	g.card = upstream.NewCard(where)
	config := upstream.Config{
		URL:         g.Agent.URL,
		Header:      header,
		TLS:         trust,
		IdleTimeout: time.Duration(g.Agent.Timeout),
		RetryFor:    time.Duration(*g.Agent.RetryFor),
		Slots:       slotsOf(g.Agent.URL, g.Agent.MaxRuns),
		Logger:      g.log,
	}
	if url := g.app.Notify.Callback; url != "" {
		config.Callbacks, config.CallbackURL, config.Pushes = &callbacks, url, g.card.Pushes
	}
	if g.Agent.Dialect != auto {
		config.Codec = clients[g.Agent.Dialect](g.sender())
		known, err := upstream.NewHTTP(config)
		if err != nil {
			return nil, err // and no agent that is a nil of some type
		}
		return known, nil
	}
	codecs := make(map[string]func() translate.Client, len(clients))
	for name, codec := range clients {
		codecs[name] = func() translate.Client { return codec(g.sender()) }
	}
	found, err := upstream.NewFound(upstream.FoundConfig{Agent: config, Discover: where, Codecs: codecs, Next: nextDialect})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// nextDialect is what is tried where an agent does not know the methods of what its card says that it speaks: cards
// are wrong in either direction.
var nextDialect = map[string]string{
	"a2a/1.0":      "a2a/0.3",
	"a2a/1.0-rest": "a2a/1.0",
	"a2a/0.3":      "a2a/legacy",
	"a2a/legacy":   "a2a/0.3",
}
