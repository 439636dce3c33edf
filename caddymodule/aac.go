// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/proof"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/trust/aac"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

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

// check checks the settings, which may be none, beside those of their handler: whether its Partner has an AIC, its
// identity mode, and whether it takes part in groups.
func (a *AAC) check(hasAIC bool, mode string, hasGroup bool) error {
	switch {
	case a == nil:
		return nil
	case !hasAIC:
		return errors.New("aac: the handler has no aic, which tokens must name as their audience; set it")
	case mode == string(identity.Off):
		return errors.New("aac: identity is off, so there is no certificate that tokens come beside; " +
			"set it to required or optional")
	case len(a.Issuers) == 0:
		return errors.New("aac: there is no issuer whose tokens are accepted")
	case a.Replay != "" && a.Replay != replayOff && a.Replay != replayRefuse:
		return fmt.Errorf("aac: replay is %q, but must be off or refuse", a.Replay)
	case a.Require && hasGroup:
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
