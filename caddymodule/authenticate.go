// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/proof"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/trust/aac"
	"github.com/aip-gateway/aip-gateway/trust/authn"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// joined returns who calls, as the Leader that has all of its ids.
func joined(of *authn.Authenticator, ids *identity.Identities) func(*http.Request) (identity.Peer, error) {
	return func(r *http.Request) (identity.Peer, error) {
		peer, err := of.Authenticate(r)
		return ids.Of(peer), err
	}
}

// verifiers returns what verifies the tokens of callers: those that prove who they are, and those beside certificates.
func (g *Gateway) verifiers() (all token.Verifiers) {
	for _, t := range g.callers.Tokens {
		all = append(all, t.Verifier)
	}
	if g.aac != nil {
		all = append(all, g.aac.Tokens()...)
	}
	return all
}

// warnOfLoggedSecrets warns of keys and tokens that access logs show.
func (g *Gateway) warnOfLoggedSecrets() {
	if header := g.loggedSecrets(); header != "" {
		g.log.Warn("callers send keys or tokens in a header that the access log of the site shows", "header", header,
			"advice", doctor.HideSecrets(header))
	}
}

// loggedSecrets returns the header in which callers send keys or tokens, if access logs of the site show it; empty if
// not. By default, Caddy hides some.
func (g *Gateway) loggedSecrets() string {
	k := g.Identity.Keys
	switch {
	case !g.logsAccess:
	case k != nil && k.Header != "" && (g.logsCredentials || !doctor.HidesHeader(k.Header)):
		return k.Header
	case g.logsCredentials && (k != nil || len(g.Identity.JWT) > 0 || g.AAC != nil):
		return proof.Authorization
	}
	return ""
}

// issues reports whether a caller could prove an id of a kind by this configuration.
func (g *Gateway) issues(kind identity.Kind, id string) bool {
	return g.callers == nil || g.callers.Issues(kind, id)
}

// permits reports whether a Leader could call: the lists name it, and one of its names can be proven. Rules of a policy
// are about calls, and do not count here.
func (g *Gateway) permits(leader string) bool {
	if g.leaders == nil || g.callers == nil {
		return true
	}
	return g.leaders.Knows(leader) && slices.ContainsFunc(g.app.identities.Names(leader), func(name string) bool {
		return g.callers.Issues(identity.SplitLeader(name))
	})
}

// AAC has the gateway check the access tokens that callers send beside their certificates (AAC v02.02), as
// Authorization: Bearer. They say on whose behalf a caller acts.
type AAC struct {
	// An issuer. Required.
	Issuers []Issuer `json:"issuers,omitempty"`

	// Other names of this Partner in aud. Default: none, only acps:agent: and aic.
	Audiences []string `json:"audiences,omitempty"`

	// Refuses calls without a token. Default: false; a caller for itself needs none.
	Require bool `json:"require,omitempty"`

	// Whether a token counts once (refuse). Default: off.
	Replay string `json:"replay,omitempty"`

	proof.TokenVerification
}

// Issuer is who signs tokens.
type Issuer struct {
	// Its claim iss.
	Issuer string `json:"issuer"`

	// The URL of its keys. Default: as its OpenID configuration says.
	JWKS string `json:"jwks,omitempty"`
}

// The values of replay.
const (
	replayOff    = "off"
	replayRefuse = "refuse"
)

// aacOption returns what reads the option. Syntax:
//
//	aac {
//		issuer         <issuer> [<url>]
//		audience       <name>...
//		require
//		replay         off|refuse
//		algorithms     <algorithm>...
//		leeway         <duration>
//		allow_networks <cidr>...
//		ca             <file>...
//	}
func aacOption(p *conf.Parser, into **AAC) func() {
	return func() {
		a := new(AAC)
		*into = a
		p.Section(a.Options(p, conf.Options{
			"issuer": func() {
				args := p.RemainingArgs()
				if len(args) != 1 && len(args) != 2 {
					p.Fail("issuer needs the claim iss, and perhaps the URL of its keys")
					return
				}
				i := Issuer{Issuer: args[0]}
				if len(args) == 2 {
					i.JWKS = args[1]
				}
				a.Issuers = append(a.Issuers, i)
			},
			"audience": p.Words(&a.Audiences),
			"require":  p.Flag(&a.Require),
			"replay":   p.Word(&a.Replay),
		}))()
	}
}

// newAAC returns what checks the access tokens of the handler's callers; nil if nothing does.
func (g *Gateway) newAAC() (*aac.Gate, error) {
	a := g.AAC
	if a == nil {
		return nil, nil
	}
	tokens, err := a.verifiers(identity.AIC(g.AIC), g.log)
	if err != nil {
		return nil, fmt.Errorf("aac: %w", err)
	}
	return aac.New(aac.Config{
		AIC: identity.AIC(g.AIC), Tokens: tokens, Require: a.Require, Refuse: a.Replay == replayRefuse, Partner: g.name(),
		Ready: g.app.configuration.Ready, Meter: process.TokenMeter(g.name()), Log: g.log,
	}), nil
}

// check checks the settings, which may be none, together with those of the handler.
func (a *AAC) check(g *Gateway) error {
	switch {
	case a == nil:
		return nil
	case g.AIC == "" && !g.registered: // before the registry has assigned it, no token can name it
		return errors.New("aac: the handler has no aic, which tokens must name as their audience; set it")
	case g.Identity.Mode == string(identity.Off):
		return errors.New("aac: identity is off, so there is no certificate that tokens come beside; " +
			"set it to required or optional")
	case len(a.Issuers) == 0:
		return errors.New("aac: there is no issuer whose tokens are accepted")
	case a.Replay != "" && a.Replay != replayOff && a.Replay != replayRefuse:
		return fmt.Errorf("aac: replay is %q, but must be off or refuse", a.Replay)
	case a.Require && g.Group != nil:
		return errors.New("aac: a message in a group carries no token, so require would refuse all of them; " +
			"leave require out, or take group to a handler of its own")
	}
	if err := a.TokenVerification.Check(); err != nil {
		return fmt.Errorf("aac: %w", err)
	}
	return nil
}

// verifiers returns what verifies the tokens of each issuer.
func (a *AAC) verifiers(aic identity.AIC, log *slog.Logger) (all token.Verifiers, err error) {
	defer func() {
		if err != nil {
			all.Close()
		}
	}()
	c, err := a.Config(caddy.NewReplacer(), &process.TokenKeys)
	if err != nil {
		return nil, err
	}
	c.Audiences, c.Log = append([]string{aac.Audience(aic)}, a.Audiences...), log
	for _, i := range a.Issuers {
		if err := cmp.Or(conf.Literal("issuer", i.Issuer), conf.Literal("issuer", i.JWKS)); err != nil {
			return all, err
		}
		c.Issuer, c.JWKS = i.Issuer, i.JWKS
		v, err := token.New(c)
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}
