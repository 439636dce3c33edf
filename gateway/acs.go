// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
)

// Dates keeps when documents have changed. It outlives the process.
type Dates interface {
	// Date returns the time at which a document got the content of a digest. If its content was another one so far, the
	// time is changed, which is kept.
	Date(ctx context.Context, document, digest string, changed time.Time) (time.Time, error)
}

// acsContent is the content of an ACS: all of it but its time.
type acsContent struct {
	digest   string
	modified time.Time
}

// acs makes the ACS.
func (m *cardMaker) acs(ctx context.Context, base, _ string) ([]byte, error) {
	card, changed, err := m.shown(ctx)
	if card == nil {
		return nil, err
	}
	modified, isNew := m.since, false
	if err == nil { // the content of a card shown instead is not kept: the agent's has not changed
		if m.since.After(changed) {
			changed = m.since
		}
		modified, isNew = m.dated(ctx, card, changed)
	}
	doc := m.makeACS(card, base, m.aic)
	doc.At(modified)
	doc.Active = m.inactive() == nil
	body := doc.Encode()
	if isNew {
		m.warnOfACS(ctx, body)
	}
	return body, nil
}

func (m *cardMaker) makeACS(card *translate.Card, base, aic string) *acs.Document {
	c := &m.config
	return acs.Make(card, acs.Options{
		AIC: aic, Version: c.ACS, AgentVersion: c.Version, Base: base, Named: m.publicURL != "",
		MutualTLS: m.takesCertificates(), Notification: true, Groups: c.Groups, Inbox: c.Inbox,
		Validity: c.RequestedValidity, CAChallengeBaseURL: c.CAChallengeURL,
		Organization: c.Organization, Department: c.Department, ProviderURL: c.OrganizationURL,
		License: c.License, CountryCode: c.Country,
	})
}

// dated returns the time of the last change of the ACS's content, and whether the content is seen for the first time.
// The host used by a caller is no part of the content, since callers choose it.
func (m *cardMaker) dated(ctx context.Context, card *translate.Card, changed time.Time) (at time.Time, isNew bool) {
	sum := sha256.Sum256(m.makeACS(card, m.publicURL, m.aic).Encode())
	digest := hex.EncodeToString(sum[:])
	m.acsMu.Lock()
	defer m.acsMu.Unlock()
	if m.acsShown.digest == digest {
		return m.acsShown.modified, false
	}
	if m.config.Dates != nil {
		kept, err := m.config.Dates.Date(ctx, m.document, digest, changed)
		switch {
		case err == nil:
			changed = kept
		case ctx.Err() != nil:
			return changed, false // the caller has left; the next one finds it out
		default:
			m.log.WarnContext(ctx, "when the ACS has changed cannot be kept", "error", err)
		}
	}
	m.acsShown = acsContent{digest, changed}
	return changed, true
}

// warnOfACS logs a registry's possible objections to an ACS, and its differences from a registered one.
func (m *cardMaker) warnOfACS(ctx context.Context, body []byte) {
	if mistakes := acs.Check(body); len(mistakes) > 0 {
		texts := make([]string, len(mistakes))
		for i, mistake := range mistakes {
			texts[i] = mistake.String()
		}
		m.log.WarnContext(ctx, "a registry would refuse the ACS", "mistakes", texts, "error", ErrInvalidACS)
	}
	compared, err := m.compareACS(ctx, body)
	if err != nil {
		m.log.WarnContext(ctx, "the ACS that is served cannot be compared with the one that is registered", "error", err)
	}
	if len(compared.Differences) > 0 {
		// What to do: see docs/discovery.md#after-it-is-registered.
		m.log.WarnContext(ctx, "the ACS that is served is not the one that is registered",
			"differences", compared.Differences, "error", ErrOtherACS)
	}
	if compared.AtMount {
		m.log.WarnContext(ctx, "the Partner is registered with its mount point as its endpoint", "error", ErrAtMount)
	}
}

// Comparison has the differences of an ACS from the registered one, as far as known.
type Comparison struct {
	Differences []string // the places
	AtMount     bool     // the registered one has the mount point for the endpoint, as ACS had it before
}

func (m *cardMaker) compareACS(ctx context.Context, body []byte) (c Comparison, err error) {
	if m.config.Registered == nil {
		return c, nil
	}
	registered, err := m.config.Registered(ctx)
	if err != nil || registered == nil {
		return c, err
	}
	found, err := acs.Diff(body, registered)
	for i := range found {
		if found[i].AtMount() {
			c.AtMount = true
			continue
		}
		c.Differences = append(c.Differences, found[i].Path)
	}
	return c, err
}

// ExamineACS returns a registry's possible objections to the ACS at the public URL, and its differences from a
// registered one. It may wait for the agent, and keeps and logs nothing.
func (g *Gateway) ExamineACS(ctx context.Context) ([]acs.Mistake, Comparison, error) {
	card, changed, err := g.cards.public(ctx)
	if err != nil {
		return nil, Comparison{}, err
	}
	doc := g.cards.makeACS(card, g.config.PublicURL, g.cards.aic)
	doc.At(changed)
	body := doc.Encode()
	compared, err := g.cards.compareACS(ctx, body)
	return acs.Check(body), compared, err
}

// DraftACS returns the ACS for a Partner's registration at a public URL, with the placeholder of the AIC, and a
// registry's possible objections to it. It has no AIC: the registry assigns it. It may wait for the agent.
func (g *Gateway) DraftACS(ctx context.Context, base string) ([]byte, []acs.Mistake, error) {
	card, changed, err := g.cards.public(ctx)
	if err != nil {
		return nil, nil, err
	}
	doc := g.cards.makeACS(card, base, "")
	doc.At(changed)
	doc.AIC = acs.Unassigned
	body := doc.Encode()
	return body, acs.Check(body), nil
}

// CheckACS logs the findings of ExamineACS, once for each content of the ACS. An unreachable agent is no concern of it:
// the check is made when the ACS is served.
func (g *Gateway) CheckACS(ctx context.Context) {
	_, _ = g.cards.acs(ctx, g.config.PublicURL, "")
}
