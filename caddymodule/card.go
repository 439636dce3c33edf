// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// CardConfig says what the Partner's cards tell beside what the agent's card does.
type CardConfig struct {
	// What becomes of a card that the agent has signed: drop (the gateway's card is another one, and not signed), keep
	// (it is passed on as it is, with the agent's own URLs in it) or refuse (no card is shown). Default: drop.
	Signatures string `json:"signatures,omitempty"`

	// The version of the ACS at .well-known/acs.json: 01.00 or 02.01. Default: 01.00.
	ACS string `json:"acs,omitempty"`

	// Who offers the Partner, in the ACS. Default: the provider that the agent's card names; CN for the country.
	Organization    string `json:"organization,omitempty"`
	OrganizationURL string `json:"organization_url,omitempty"`
	Department      string `json:"department,omitempty"`
	Country         string `json:"country,omitempty"`

	// The licence under which the provider works, which ACS 01.00 demands. Default: none.
	License string `json:"license,omitempty"`

	// Where the CA of a Partner of ACS 01.00 finds the answers to its challenges. Default: none.
	CAChallengeURL string `json:"ca_challenge_url,omitempty"`
}

func (c *CardConfig) provision() error {
	if c.Signatures == "" {
		c.Signatures = a2a.DropSignatures
	}
	if c.ACS == "" {
		c.ACS = aip.ACS01
	}
	switch c.Signatures {
	case a2a.DropSignatures, a2a.KeepSignatures, a2a.RefuseSignatures:
	default:
		return fmt.Errorf("card: signatures is %q, but must be drop, keep or refuse", c.Signatures)
	}
	if c.ACS != aip.ACS01 && c.ACS != aip.ACS02 {
		return fmt.Errorf("card: acs is %q, but must be %s or %s", c.ACS, aip.ACS01, aip.ACS02)
	}
	return nil
}

// checkPublicURL finds what is wrong with a setting that is told to others as the beginning of URLs, if it is set.
func checkPublicURL(setting, s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s: %q is no http or https URL", setting, s)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s must be a URL without credentials, query and fragment", setting)
	}
	return nil
}

// errSigned is why no card is shown.
var errSigned = errors.New("the agent has signed its card, and card signatures is refuse")

// documents returns what the Partner shows to anybody.
func (g *Gateway) documents(callers []translate.Server, mode identity.Mode) map[string]gateway.Document {
	generations := generationsOf(callers)
	var incomplete sync.Once
	docs := map[string]gateway.Document{
		".well-known/acs.json": func(ctx context.Context, base, _ string) ([]byte, error) {
			card, changed, err := g.describe(ctx)
			if err != nil {
				return nil, err
			}
			if g.started.After(changed) {
				changed = g.started
			}
			options := aip.ACSOptions{
				AIC: g.AIC, Modified: changed, ProtocolVersion: g.Card.ACS, Base: base,
				MutualTLS: mode == identity.Required, Notification: true, CAChallengeBaseURL: g.Card.CAChallengeURL,
				Organization: g.Card.Organization, Department: g.Card.Department, ProviderURL: g.Card.OrganizationURL,
				License: g.Card.License, CountryCode: g.Card.Country,
			}
			incomplete.Do(func() {
				if missing := aip.MissingACS(card, options); len(missing) > 0 {
					g.log.Warn("the ACS lacks what its version demands; set it in card, or aic", "members", missing)
				}
			})
			return aip.AppendACS(nil, card, options), nil
		},
	}
	if !slices.ContainsFunc(generations, func(name string) bool { return strings.HasPrefix(name, auto) }) {
		return docs
	}
	for _, file := range cardFiles {
		docs[".well-known/"+file] = func(ctx context.Context, base, version string) ([]byte, error) {
			form, ok := a2a.CardFormOf(file, version, generations)
			if !ok {
				return nil, nil
			}
			card, _, err := g.describe(ctx)
			if err != nil {
				return nil, err
			}
			return g.show(card, a2a.CardOptions{Form: form, Base: base, Generations: generations, MutualTLS: mode == identity.Required, Extended: card.Extended})
		}
	}
	return docs
}

// generationsOf names the dialects of those who may call.
func generationsOf(callers []translate.Server) (names []string) {
	for _, s := range callers {
		names = append(names, s.Name())
	}
	return names
}

// cardFiles are the names of the public cards.
var cardFiles = []string{"agent.json", "agent-card.json"}

// show makes a card of what an agent says of itself.
func (g *Gateway) show(card *translate.Card, o a2a.CardOptions) ([]byte, error) {
	if card.Signed && g.Card.Signatures == a2a.RefuseSignatures {
		return nil, errSigned
	}
	o.Push, o.Signatures = true, g.Card.Signatures
	return a2a.AppendCard(nil, card, o), nil
}

// extended returns what makes the card that only callers get, of the one that the agent shows to the gateway.
func (g *Gateway) extended(callers []translate.Server, mode identity.Mode) func(context.Context, string, string) ([]byte, error) {
	generations := generationsOf(callers)
	return func(ctx context.Context, base, dialect string) ([]byte, error) {
		public, _, err := g.describe(ctx)
		if err != nil || !public.Extended {
			return nil, err
		}
		body, err := g.agent.Describe(ctx)
		if err != nil {
			return nil, err
		}
		card, err := a2a.ParseCard(body)
		if err != nil {
			return nil, err
		}
		form := a2a.CardV1
		if strings.HasPrefix(dialect, "a2a/0.3") {
			form = a2a.CardV03
		}
		return g.show(card, a2a.CardOptions{Form: form, Base: base, Generations: generations, MutualTLS: mode == identity.Required, Extended: true})
	}
}

// describe returns the agent's card, or, for an agent whose dialect has none, what is known of it.
func (g *Gateway) describe(ctx context.Context) (*translate.Card, time.Time, error) {
	if !strings.HasPrefix(g.Agent.Dialect, auto) {
		return &translate.Card{Name: g.AIC, Streaming: true}, g.started, nil // not its URL, which is nobody's business
	}
	return g.card.Get(ctx)
}
