// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/net/http/httpguts"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/callerinfo"
)

// Caller says how the gateway names the caller to the agent.
type Caller struct {
	// By the header fields Aip-Leader, Aip-Proof, Aip-Subject, Aip-Task and Aip-Session. Default: false.
	Headers bool `json:"headers,omitempty"`

	// By a token from the option issuer. Default: none.
	JWT *CallerJWT `json:"jwt,omitempty"`
}

// CallerJWT is a token in every request to the agent.
type CallerJWT struct {
	// Its aud. Default: acps:agent: and the aic in tls, else the scheme and host of the URL.
	Audience string `json:"audience,omitempty"`

	// Its header field; in Authorization a bearer token. Default: Aip-Token.
	Header string `json:"header,omitempty"`
}

// options are those of the block caller.
func (c *Caller) options(p *conf.Parser) conf.Options {
	return conf.Options{
		"headers": p.Flag(&c.Headers),
		"jwt": func() {
			c.JWT = new(CallerJWT)
			p.Section(conf.Options{"audience": p.Word(&c.JWT.Audience), "header": p.Word(&c.JWT.Header)})()
		},
	}
}

func (c *Caller) set() bool { return c.Headers || c.JWT != nil }

// check checks the settings; up are the agent's other header fields.
func (c *Caller) check(up http.Header) error {
	var own []string
	if c.Headers {
		own = []string{callerinfo.LeaderField, callerinfo.ProofField, callerinfo.SubjectField, callerinfo.TaskField,
			callerinfo.SessionField}
	}
	if c.JWT != nil {
		if c.JWT.Header != "" && !httpguts.ValidHeaderFieldName(c.JWT.Header) {
			return fmt.Errorf("agent: caller: %q is no name of a header field", c.JWT.Header)
		}
		token := http.CanonicalHeaderKey(cmp.Or(c.JWT.Header, callerinfo.TokenField))
		if slices.Contains(own, token) {
			return fmt.Errorf("agent: caller: jwt needs a header field of its own, and headers has %s", token)
		}
		own = append(own, token)
	}
	for field := range up {
		for _, name := range own {
			if http.CanonicalHeaderKey(field) == name {
				return fmt.Errorf("agent: caller sets the header field %s; leave it out of header_up", name)
			}
		}
	}
	return nil
}

// Introducer returns the Introducer that names callers to the agent; nil for none. Issuer is nil where the gateway
// signs no tokens. Actor is the Partner, as tokens name it; empty: the issuer.
func (a *Config) Introducer(
	issuer *callerinfo.Issuer, actor string, log *slog.Logger,
) (upstream.Introducer, error) {
	c := &a.Caller
	if !c.set() {
		return nil, nil
	}
	config := callerinfo.Config{Fields: c.Headers, Logger: log}
	if c.JWT != nil {
		if issuer == nil {
			return nil, errors.New("agent: caller: jwt needs keys to sign with; set issuer in the global option aip")
		}
		config.Issuer, config.TokenField = issuer, c.JWT.Header
		config.Audience = cmp.Or(c.JWT.Audience, a.audience())
		config.Actor = actor
	}
	return callerinfo.New(config), nil
}

// audience names the agent in a token.
func (a *Config) audience() string {
	if len(a.TLS.AIC) > 0 {
		return "acps:agent:" + a.TLS.AIC[0]
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		return a.URL
	}
	return u.Scheme + "://" + u.Host
}
