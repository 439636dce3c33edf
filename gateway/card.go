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
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// Cards are the settings of the Partner's cards.
type Cards struct {
	Signatures string // the treatment of a card signed by the agent: a2a.DropSignatures and others
	ACS        string // the version of the ACS. Default: the AIC's

	// Version is the Partner's own, in the ACS. Default: the version in the agent's card.
	Version string

	// The provider of the Partner, in the ACS. Default: the provider named by the agent's card; CN for the country.
	Organization    string
	OrganizationURL string
	Department      string
	Country         string

	License        string // of the provider, required by ACS 01.00
	CAChallengeURL string // the CA finds the answers to its challenges there (ACS 01.00)

	// RequestedValidity is the wanted validity of the Partner's certificates, in days (ACS 02.x); 0 leaves it to the CA.
	RequestedValidity int
	// Groups is true if the Partner takes part in groups, as its ACS has it, also before it has the AIC it needs there.
	Groups bool
	// Inbox is the URL of the broker and virtual host of the Partner's inbox of groups, as its ACS has it (02.x); empty
	// for none.
	Inbox string
	// Dates keeps when the ACS has changed. Default: it is known only while the process lives.
	Dates Dates
	// Registered returns the ACS as a registry has it, for a comparison with the served one; nil for none, as is its
	// result while nothing is registered.
	Registered func(context.Context) ([]byte, error)
}

// cardMaker makes the Partner's cards.
type cardMaker struct {
	described
	config      Cards
	aic         string
	publicURL   string                 // empty if the URL of callers is taken
	document    string                 // the name of the ACS for Dates
	generations []string               // the names of the callers' dialects
	schemes     map[string]a2a.Schemes // by the name of a dialect
	identified  bool                   // callers can prove their identities; otherwise there is no extended card
	http2       HTTP2
	inactive    func() error // of Config
	log         *slog.Logger

	lacks atomic.Pointer[lack] // the reason of the last failure to get the agent's card; nil after a success

	acsMu    sync.Mutex
	acsShown acsContent // the last one made
}

// Errors in Cards, for the operator to mend.
var (
	ErrCardSigned = errors.New("the agent has signed its card, so that no card may be made of it")
	ErrInvalidACS = errors.New("the ACS has mistakes")
	ErrOtherACS   = errors.New("another ACS is registered")
	ErrAtMount    = errors.New("what is beside the registered endpoint is not the Partner's")
)

// A Document makes one of the Partner's public cards. base is the public URL of the mount point, version is the version
// of A2A named by the caller. A nil body means no such card for this version.
type Document func(ctx context.Context, base, version string) (body []byte, err error)

// Document returns the document at a path below the mount point; nil for none.
func (g *Gateway) Document(path string) Document { return g.documents[path] }

// Documents returns the paths of all documents, in order.
func (g *Gateway) Documents() []string { return slices.Sorted(maps.Keys(g.documents)) }

// ACS makes the Partner's ACS. It is a Document.
func (g *Gateway) ACS(ctx context.Context, base, version string) ([]byte, error) {
	return g.cards.acs(ctx, base, version)
}

// documents returns the public cards, by path.
func (m *cardMaker) documents() map[string]Document {
	docs := map[string]Document{".well-known/acs.json": m.acs, "agent_spec.json": m.acs}
	if !slices.ContainsFunc(m.generations, isA2A) {
		return docs
	}
	for _, file := range cardFiles {
		docs[".well-known/"+file] = func(ctx context.Context, base, version string) ([]byte, error) {
			form, ok := a2a.CardFormOf(file, version, m.generations)
			if !ok {
				return nil, nil
			}
			card, _, err := m.shown(ctx)
			if card == nil {
				return nil, err
			}
			return m.render(card, base, form, card.Extended && m.identified)
		}
	}
	return docs
}

// shown returns the public card of the agent, and when it has changed. If it cannot be had now, an error says so, and
// the card is another one in its place: clients looking for the card first get to the gateway, and the gateway reports
// the fault. It is nil for a caller that has left. A fault is logged when it changes: everyone may ask for cards.
func (m *cardMaker) shown(ctx context.Context) (card *translate.Card, changed time.Time, err error) {
	if card, changed, err = m.public(ctx); err == nil {
		m.lacks.Store(nil)
		return card, changed, nil
	}
	if ctx.Err() != nil {
		return nil, changed, err
	}
	why := &lack{task.KindOf(err), upstream.ReasonOf(err)}
	if before := m.lacks.Swap(why); before == nil || *before != *why {
		// What to do: start the agent, or set `agent { card }`.
		m.log.WarnContext(ctx, "the agent's card is not available; the one that is shown is made of the configuration",
			"error", err)
	}
	return m.made(), changed, err
}

// lack is the reason why the agent's card cannot be had.
type lack struct {
	kind   task.Kind
	reason upstream.Reason
}

// takesCertificates reports whether callers may prove their identities by a client certificate: those of AIP, if it is
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

// address returns the address of gRPC, as host and port, for a mount point with a URL; empty if gRPC is not served. The
// paths of gRPC are fixed, and its clients know no mount point, so the mount point must be the root of a host.
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

// extendedCard makes the extended card in a dialect, from the agent's. It is nil if the agent has none.
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
