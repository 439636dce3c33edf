// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// Cards say what the Partner's cards have beside what the agent's card says.
type Cards struct {
	Signatures string // what is done with a card that the agent has signed: a2a.DropSignatures and others
	ACS        string // the version of the ACS: aip.ACS01 or aip.ACS02

	// Who offers the Partner, in the ACS. Default: the provider that the agent's card names; CN for the country.
	Organization    string
	OrganizationURL string
	Department      string
	Country         string

	License        string // of the provider, which ACS 01.00 demands
	CAChallengeURL string // where the CA of a Partner of ACS 01.00 finds the answers to its challenges
}

// shower makes the Partner's cards.
type shower struct {
	described
	cards       Cards
	aic         string
	generations []string // the names of the callers' dialects
	mutualTLS   bool
	incomplete  sync.Once // the log says once what the ACS lacks
	log         *slog.Logger
}

// errSigned is why no card is shown.
var errSigned = errors.New("the agent has signed its card, and card signatures is refuse")

// A Document makes what is shown to every caller: one of the Partner's cards. base is the public URL of the mount point,
// version the one that the caller names. A nil body says that there is no such document for it.
type Document func(ctx context.Context, base, version string) (body []byte, err error)

// Document returns the document at a path under the mount point; nil for none.
func (g *Gateway) Document(path string) Document { return g.documents[path] }

// Documents returns the paths of all documents, in order.
func (g *Gateway) Documents() []string { return slices.Sorted(maps.Keys(g.documents)) }

// documents returns what is shown to every caller.
func (s *shower) documents() map[string]Document {
	docs := map[string]Document{".well-known/acs.json": s.acs}
	if !slices.ContainsFunc(s.generations, isA2A) {
		return docs
	}
	for _, file := range cardFiles {
		docs[".well-known/"+file] = func(ctx context.Context, base, version string) ([]byte, error) {
			form, ok := a2a.CardFormOf(file, version, s.generations)
			if !ok {
				return nil, nil
			}
			card, _, err := s.public(ctx)
			if err != nil {
				return nil, err
			}
			return s.show(card, base, form, card.Extended)
		}
	}
	return docs
}

// isA2A reports whether a dialect is a version of A2A.
func isA2A(dialect string) bool { return strings.HasPrefix(dialect, auto) }

// acs makes the ACS.
func (s *shower) acs(ctx context.Context, base, _ string) ([]byte, error) {
	card, changed, err := s.public(ctx)
	if err != nil {
		return nil, err
	}
	if s.since.After(changed) {
		changed = s.since
	}
	c := &s.cards
	options := aip.ACSOptions{
		AIC: s.aic, Modified: changed, ProtocolVersion: c.ACS, Base: base,
		MutualTLS: s.mutualTLS, Notification: true, CAChallengeBaseURL: c.CAChallengeURL,
		Organization: c.Organization, Department: c.Department, ProviderURL: c.OrganizationURL,
		License: c.License, CountryCode: c.Country,
	}
	s.incomplete.Do(func() {
		if missing := aip.MissingACS(card, options); len(missing) > 0 {
			s.log.Warn("the ACS lacks what its version demands; set it in card, or aic", "members", missing)
		}
	})
	return aip.AppendACS(nil, card, options), nil
}

// cardFiles are the names of the public cards.
var cardFiles = []string{"agent.json", "agent-card.json"}

// show makes a card of what an agent says of itself.
func (s *shower) show(card *translate.Card, base string, form a2a.CardForm, extended bool) ([]byte, error) {
	if card.Signed && s.cards.Signatures == a2a.RefuseSignatures {
		return nil, errSigned
	}
	return a2a.AppendCard(nil, card, a2a.CardOptions{
		Form: form, Base: base, Generations: s.generations, MutualTLS: s.mutualTLS, Extended: extended,
		Push: true, Signatures: s.cards.Signatures,
	}), nil
}

// extendedCard makes the card that only callers get, of the one that the agent shows to the gateway.
func (s *shower) extendedCard(ctx context.Context, base, dialect string) ([]byte, error) {
	public, _, err := s.public(ctx)
	if err != nil || !public.Extended {
		return nil, err
	}
	card, err := s.extended(ctx)
	if err != nil {
		return nil, err
	}
	form := a2a.CardV1
	if strings.HasPrefix(dialect, "a2a/0.3") {
		form = a2a.CardV03
	}
	return s.show(card, base, form, true)
}
