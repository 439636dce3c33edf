// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// Cards are the settings of the Partner's cards.
type Cards struct {
	Signatures string // what to do with a card that the agent has signed: a2a.DropSignatures and others
	ACS        string // the version of the ACS: aip.ACS01 or aip.ACS02

	// The provider of the Partner, in the ACS. Default: the provider that the agent's card names; CN for the country.
	Organization    string
	OrganizationURL string
	Department      string
	Country         string

	License        string // of the provider, which ACS 01.00 requires
	CAChallengeURL string // where the CA finds the answers to its challenges (ACS 01.00)
}

// cardMaker makes the Partner's cards.
type cardMaker struct {
	described
	config      Cards
	aic         string
	generations []string               // the names of the callers' dialects
	schemes     map[string]a2a.Schemes // by the name of a dialect
	identified  bool                   // callers can prove who they are; otherwise there is no extended card
	http2       HTTP2
	groups      bool      // the Partner takes part in groups
	incomplete  sync.Once // what the ACS lacks is logged once
	log         *slog.Logger
}

// What an operator may have to change in Cards.
var (
	ErrCardSigned    = errors.New("the agent has signed its card, so that no card may be made of it")
	ErrIncompleteACS = errors.New("members that the ACS requires have no value")
)

// A Document makes one of the Partner's public cards. base is the public URL of the mount point, version is the version
// of A2A that the caller names. A nil body says that there is no such card for that version.
type Document func(ctx context.Context, base, version string) (body []byte, err error)

// Document returns the document at a path below the mount point; nil for none.
func (g *Gateway) Document(path string) Document { return g.documents[path] }

// Documents returns the paths of all documents, in order.
func (g *Gateway) Documents() []string { return slices.Sorted(maps.Keys(g.documents)) }

// documents returns the public cards, by path.
func (m *cardMaker) documents() map[string]Document {
	docs := map[string]Document{".well-known/acs.json": m.acs}
	if !slices.ContainsFunc(m.generations, isA2A) {
		return docs
	}
	for _, file := range cardFiles {
		docs[".well-known/"+file] = func(ctx context.Context, base, version string) ([]byte, error) {
			form, ok := a2a.CardFormOf(file, version, m.generations)
			if !ok {
				return nil, nil
			}
			card, _, err := m.public(ctx)
			if err != nil {
				return nil, err
			}
			return m.render(card, base, form, card.Extended && m.identified)
		}
	}
	return docs
}

// acs makes the ACS.
func (m *cardMaker) acs(ctx context.Context, base, _ string) ([]byte, error) {
	card, changed, err := m.public(ctx)
	if err != nil {
		return nil, err
	}
	if m.since.After(changed) {
		changed = m.since
	}
	c := &m.config
	options := aip.ACSOptions{
		AIC: m.aic, Modified: changed, ProtocolVersion: c.ACS, Base: base,
		MutualTLS: m.takesCertificates(), Notification: true, Groups: m.groups, CAChallengeBaseURL: c.CAChallengeURL,
		Organization: c.Organization, Department: c.Department, ProviderURL: c.OrganizationURL,
		License: c.License, CountryCode: c.Country,
	}
	m.incomplete.Do(func() {
		if missing := aip.MissingACS(card, options); len(missing) > 0 {
			m.log.Warn("the ACS lacks members that its version requires", "members", missing, "error", ErrIncompleteACS)
		}
	})
	return aip.AppendACS(nil, card, options), nil
}

// takesCertificates reports whether callers may prove who they are by a client certificate: those of AIP, where it is
// served.
func (m *cardMaker) takesCertificates() bool {
	ofAIP := func(name string) bool { return strings.HasPrefix(name, "aip") }
	served := slices.ContainsFunc(m.generations, ofAIP)
	return slices.ContainsFunc(m.generations, func(name string) bool {
		return m.schemes[name].MutualTLS && ofAIP(name) == served
	})
}

// cardFiles are the names of the public cards of A2A.
var cardFiles = []string{"agent.json", "agent-card.json"}

// render makes a card of the Partner from a card of the agent.
func (m *cardMaker) render(card *translate.Card, base string, form a2a.CardForm, extended bool) ([]byte, error) {
	if card.Signed && m.config.Signatures == a2a.RefuseSignatures {
		return nil, ErrCardSigned
	}
	return a2a.AppendCard(nil, card, a2a.CardOptions{
		Form: form, Base: base, GRPC: m.http2.address(base), Generations: m.generations, Schemes: m.schemes,
		Extended: extended, Push: true, Signatures: m.config.Signatures,
	}), nil
}

// address returns where gRPC is served, as host and port, for a mount point with a URL; empty if it is not. The paths
// of gRPC are fixed, and its clients know no mount point, so that it must be the root of a host.
func (h HTTP2) address(base string) string {
	u, err := url.Parse(base)
	if err != nil || strings.Trim(u.Path, "/") != "" {
		return ""
	}
	switch port := u.Port(); {
	case u.Scheme == "https" && h.TLS:
		return net.JoinHostPort(u.Hostname(), cmp.Or(port, "443"))
	case u.Scheme == "http" && h.Plain:
		return net.JoinHostPort(u.Hostname(), cmp.Or(port, "80"))
	}
	return ""
}

// extendedCard makes the extended card in a dialect, from that of the agent. It is nil if the agent has none.
func (m *cardMaker) extendedCard(ctx context.Context, base, dialect string) ([]byte, error) {
	if !m.identified {
		return nil, nil
	}
	public, _, err := m.public(ctx)
	if err != nil || !public.Extended {
		return nil, err
	}
	card, err := m.extended(ctx)
	if err != nil {
		return nil, err
	}
	form := a2a.CardV1
	if strings.HasPrefix(dialect, "a2a/0.3") {
		form = a2a.CardV03
	}
	return m.render(card, base, form, true)
}

// Card returns the public card of the agent, and when it has changed. It may wait for the agent.
func (g *Gateway) Card(ctx context.Context) (*translate.Card, time.Time, error) {
	return g.cards.public(ctx)
}
