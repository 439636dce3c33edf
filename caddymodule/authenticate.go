// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"net/http"
	"slices"

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
