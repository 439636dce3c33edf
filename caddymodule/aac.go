// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/aac"
	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/token"
)

// AAC has the gateway check the access tokens that callers send beside their certificates (AAC v02.02), as
// Authorization: Bearer. They say on whose behalf a caller acts.
type AAC struct {
	// The issuers whose tokens are accepted. Required.
	Issuers []Issuer `json:"issuers,omitempty"`

	// Other names of this Partner in the claim aud of tokens. Default: none; it is acps:agent: and aic.
	Audiences []string `json:"audiences,omitempty"`

	// Refuses calls without a token, over every transport. Default: a caller that acts for itself needs none.
	Require bool `json:"require,omitempty"`

	// Whether a token may be used for several calls (off), or for one alone (refuse). Default: off.
	Replay string `json:"replay,omitempty"`

	// The algorithms that tokens may be signed by: RS256, PS256, ES256 and EdDSA. Default: all four.
	Algorithms []string `json:"algorithms,omitempty"`

	// By how much the clocks of issuers may differ from that of the gateway. Default: 60s.
	Leeway caddy.Duration `json:"leeway,omitempty"`

	// Networks that are not public, and that keys may be fetched from, also by plain http. Default: none.
	AllowNetworks []string `json:"allow_networks,omitempty"`

	// PEM files with the trusted roots of the servers that keys are fetched from, read when the configuration is loaded.
	// Default: the system's.
	CA []string `json:"ca,omitempty"`
}

// Issuer is who signs tokens.
type Issuer struct {
	// The claim iss of its tokens.
	Issuer string `json:"issuer"`

	// The URL of its keys. Default: what its OpenID configuration says; then issuer is a URL.
	JWKS string `json:"jwks,omitempty"`
}

// The values of replay.
const (
	replayOff    = "off"
	replayRefuse = "refuse"
)

// tokenKeys are the keys of issuers, which outlive configurations.
var tokenKeys token.Keys

// aacMeters are those of all Partners, by their names. They are small and are kept.
var aacMeters sync.Map

// aacMeter returns what counts the access tokens of a Partner's callers.
func aacMeter(partner string) *aac.Meter {
	m, _ := aacMeters.LoadOrStore(partner, new(aac.Meter))
	return m.(*aac.Meter)
}

func (p *parser) aac(into **AAC) func() {
	return func() {
		a := new(AAC)
		*into = a
		p.section(options{
			"issuer": func() {
				args := p.RemainingArgs()
				if len(args) != 1 && len(args) != 2 {
					p.fail("issuer needs the claim iss, and perhaps the URL of its keys")
					return
				}
				i := Issuer{Issuer: args[0]}
				if len(args) == 2 {
					i.JWKS = args[1]
				}
				a.Issuers = append(a.Issuers, i)
			},
			"audience":       p.words(&a.Audiences),
			"require":        p.flag(&a.Require),
			"replay":         p.word(&a.Replay),
			"algorithms":     p.words(&a.Algorithms),
			"leeway":         p.duration(&a.Leeway),
			"allow_networks": p.words(&a.AllowNetworks),
			"ca":             p.words(&a.CA),
		})()
	}
}

// newAAC returns what checks the access tokens of the handler's callers; nil if nothing does.
func (g *Gateway) newAAC(mode identity.Mode) (*aac.Gate, error) {
	a := g.AAC
	if a == nil {
		return nil, nil
	}
	switch {
	case g.AIC == "":
		return nil, errors.New("aac: the handler has no aic, which tokens must name as their audience; set it")
	case mode == identity.Off:
		return nil, errors.New("aac: identity is off, so there is no certificate that tokens come beside; " +
			"set it to required or optional")
	case len(a.Issuers) == 0:
		return nil, errors.New("aac: there is no issuer whose tokens are accepted")
	case a.Replay != "" && a.Replay != replayOff && a.Replay != replayRefuse:
		return nil, fmt.Errorf("aac: replay is %q, but must be off or refuse", a.Replay)
	case a.Require && g.Group != nil:
		return nil, errors.New("aac: a message in a group carries no token, so require would refuse all of them; " +
			"leave require out, or take group to a handler of its own")
	}
	tokens, err := a.verifiers(identity.AIC(g.AIC), g.log)
	if err != nil {
		return nil, fmt.Errorf("aac: %w", err)
	}
	return aac.New(aac.Config{
		AIC: identity.AIC(g.AIC), Tokens: tokens, Require: a.Require, Refuse: a.Replay == replayRefuse, Partner: g.name(),
		Ready: g.app.ready, Meter: aacMeter(g.name()), Log: g.log,
	}), nil
}

// verifiers returns what verifies the tokens of each issuer.
func (a *AAC) verifiers(aic identity.AIC, log *slog.Logger) (all token.Verifiers, err error) {
	defer func() {
		if err != nil {
			all.Close()
		}
	}()
	c := token.Config{Audiences: append([]string{aac.Audience(aic)}, a.Audiences...), Algorithms: a.Algorithms,
		Leeway: time.Duration(a.Leeway), Keys: &tokenKeys, Log: log}
	if c.Egress, err = networks(a.AllowNetworks); err != nil {
		return nil, err
	}
	if c.Roots, err = readCAs(caddy.NewReplacer(), a.CA); err != nil {
		return nil, err
	}
	for _, i := range a.Issuers {
		if err := cmp.Or(literal("issuer", i.Issuer), literal("issuer", i.JWKS)); err != nil {
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

// networks returns the policy that allows networks beside public ones.
func networks(allow []string) (p egress.Policy, err error) {
	for _, s := range allow {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return p, fmt.Errorf("allow_networks: %q is no network, such as 10.0.0.0/8", s)
		}
		p.Allow = append(p.Allow, prefix.Masked())
	}
	return p, nil
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

// issuers says whether the keys of the issuers of tokens can be fetched, and used.
func (e *examination) issuers(ctx context.Context, g *Gateway) {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	for _, v := range g.verifiers() {
		switch h := v.Fetch(ctx); {
		case h.Keys > 0:
			e.add(doctor.CheckIssuer, doctor.OK, h.Issuer, fmt.Sprintf("it publishes %d keys", h.Keys))
		case h.Others > 0:
			e.add(doctor.CheckIssuer, doctor.Broken, h.Issuer, fmt.Sprintf("none of the %d keys that it publishes is for %s, "+
				"so its tokens are refused; set algorithms", h.Others, strings.Join(v.Algorithms(), " or ")))
		default:
			e.add(doctor.CheckIssuer, doctor.Broken, h.Issuer, fmt.Sprintf("its keys cannot be fetched, so its tokens are "+
				"refused: %v", h.Err))
		}
	}
}

// listIssuers answers with the issuers of tokens of the configuration that is in force.
func listIssuers(o *openStore, r *http.Request) (any, error) {
	only, list := r.URL.Query().Get("partner"), adminapi.IssuerList{Issuers: []adminapi.Issuer{}}
	for _, g := range o.members() {
		if only != "" && only != g.name() {
			continue
		}
		for _, v := range g.verifiers() {
			h := v.Health()
			one := adminapi.Issuer{Partner: g.name(), Issuer: h.Issuer, Keys: h.Keys, Fetched: h.Fetched}
			if h.Err != nil {
				one.Error = h.Err.Error()
			}
			if !slices.Contains(list.Issuers, one) { // mounts of a Partner share keys
				list.Issuers = append(list.Issuers, one)
			}
		}
	}
	return list, nil
}
