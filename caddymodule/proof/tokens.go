// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// TokenVerification is how the tokens of issuers are verified.
type TokenVerification struct {
	// Algorithms of signatures. Default: RS256, PS256, ES256 and EdDSA.
	Algorithms []string `json:"algorithms,omitempty"`

	// Difference between clocks. Default: 60s.
	Leeway *caddy.Duration `json:"leeway,omitempty"`

	// Networks for keys although not public, also by plain http. Default: none.
	AllowNetworks []string `json:"allow_networks,omitempty"`

	// PEM files with the roots of servers with keys, read at load. Default: the system's.
	CA []string `json:"ca,omitempty"`
}

// Options adds its options to those of a block.
func (t *TokenVerification) Options(p *conf.Parser, of conf.Options) conf.Options {
	of["algorithms"], of["allow_networks"], of["ca"] = p.Words(&t.Algorithms), p.Words(&t.AllowNetworks), p.Words(&t.CA)
	of["leeway"] = conf.Optional(p, &t.Leeway, p.Duration)
	return of
}

// Check checks what can be known without reading files.
func (t *TokenVerification) Check() error {
	if t.Leeway == nil {
		return nil
	}
	return conf.NotNegative("leeway", *t.Leeway)
}

// Config returns the configuration of verifiers, without an issuer.
func (t *TokenVerification) Config(repl *caddy.Replacer, keys *token.Keys) (c token.Config, err error) {
	c = token.Config{Algorithms: t.Algorithms, Keys: keys}
	if t.Leeway != nil {
		if c.Leeway = time.Duration(*t.Leeway); c.Leeway == 0 {
			c.Leeway = -1
		}
	}
	if c.Egress, err = conf.Networks(t.AllowNetworks); err == nil {
		c.Roots, err = certfile.ReadPool(repl, t.CA)
	}
	return c, err
}
