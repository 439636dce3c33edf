// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
)

// registeredAIC in place of an AIC stands for the one that the registry has assigned.
const registeredAIC = "registered"

// checkRegistered checks the settings of a Partner whose AIC a registry assigns.
func (g *Gateway) checkRegistered() error {
	if g.AIC != registeredAIC {
		return nil
	}
	g.registered, g.AIC = true, ""
	switch {
	case g.PublicURL == "":
		return errors.New("aic registered needs public_url, at which the Partner is registered")
	case g.Card.ACS == acs.V0100:
		return errors.New("aic registered needs a registry of ACPs 2; leave acs out of card, or set it to 02.01 or 02.02")
	}
	conf.OrDefault(&g.Card.ACS, acs.V0201)
	return nil
}

// registration names the Partner at a registry: by its public URL, which is the same before it has an AIC.
func (g *Gateway) registration() string { return strings.TrimSuffix(g.PublicURL, "/") }

// findAIC sets the AIC that the registry has assigned to the Partner, if it has.
func (g *Gateway) findAIC(ctx context.Context, app *App) error {
	if !g.registered {
		return nil
	}
	if app.account == nil {
		return errors.New("aic registered needs a registry; set registry in the global option aip")
	}
	record, err := app.account.Record(ctx, g.registration())
	if err != nil {
		return fmt.Errorf("aic: which one is registered cannot be read: %w", err)
	}
	if record.AIC() == "" {
		return nil
	}
	aic, err := identity.ParseAIC(record.AIC())
	if err != nil {
		return fmt.Errorf("aic: the registry has assigned %q: %w", record.AIC(), err)
	}
	g.AIC = string(aic)
	return nil
}

// cards returns the settings of the Partner's cards, with where the ACS is registered.
func (g *Gateway) cards() (gateway.Cards, error) {
	cards, err := g.Card.cards()
	account := g.app.account
	if err == nil && cards.Registered == nil && account != nil && g.PublicURL != "" {
		switch {
		case g.registered:
			cards.Registered = func(ctx context.Context) ([]byte, error) {
				record, err := account.Record(ctx, g.registration())
				if err != nil || record.Current == nil || record.Current.Ontology != "" { // an entity's is not its own
					return nil, err
				}
				return record.Current.ACS, nil
			}
		case strings.Contains(g.AIC, "."): // the registry has no others
			cards.Registered = func(ctx context.Context) ([]byte, error) { return account.Client().ACS(ctx, g.AIC) }
		}
	}
	g.compared, cards.Groups = cards.Registered != nil, g.Group != nil
	if g.Group != nil && g.Group.inbox != nil {
		cards.Inbox = g.Group.inbox.URL()
	}
	return cards, err
}

// order returns what is to be registered of a Partner. It may wait for the agent.
func (g *Gateway) order(ctx context.Context) (o registry.Order, err error) {
	body, mistakes, err := g.gateway.DraftACS(ctx, g.registration())
	if err != nil {
		return o, fmt.Errorf("the ACS cannot be made: %w", err)
	}
	if len(mistakes) > 0 {
		texts := make([]string, len(mistakes))
		for i, m := range mistakes {
			texts[i] = m.String()
		}
		return o, fmt.Errorf("the registry would refuse the ACS: %s", strings.Join(texts, "; "))
	}
	return registry.Order{Partner: g.registration(), ACS: body, Differs: func(registered json.RawMessage) (bool, error) {
		if len(registered) == 0 {
			return true, nil
		}
		found, err := acs.Diff(body, registered)
		return slices.ContainsFunc(found, func(d acs.Difference) bool { return !d.AtMount() }), err
	}}, nil
}

// followRegistrations asks the registry what has become of submissions, until the configuration ends.
func (a *App) followRegistrations() {
	seen := make(map[string]bool)
	for _, g := range a.members {
		if g.registered && !seen[g.registration()] { // mounts of a Partner may share a URL
			seen[g.registration()] = true
			a.configuration.Go(func(ctx context.Context) { g.followRegistration(ctx) })
		}
	}
}

// followRegistration asks what has become of the submission of a Partner while one waits for a person.
func (g *Gateway) followRegistration(ctx context.Context) {
	every := time.Duration(g.app.Registry.Poll)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var before registry.Record
	for begun := false; ; begun = true {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(every)
		now, err := g.app.account.Record(ctx, g.registration())
		if err == nil && now.Next != nil && now.Next.Status == registry.Pending {
			now, err = g.app.account.Poll(ctx, g.registration(), every/2)
		}
		switch {
		case ctx.Err() != nil:
			return
		case now == nil || errors.Is(err, registry.ErrNotStored): // a reload would not find it
			g.log.Warn("what is registered cannot be read or stored", "error", err)
		default:
			g.reportRegistration(&before, now, !begun)
			before = *now
			if aic := now.AIC(); g.isUsedAtOnce(aic) {
				g.useAIC(ctx, aic)
			}
		}
	}
}

// isUsedAtOnce reports whether the configuration is loaded again for an AIC that the registry has assigned. That of
// a new version needs other certificates: where the gateway does not obtain them, an operator says when they are there.
func (g *Gateway) isUsedAtOnce(aic string) bool {
	return aic != "" && aic != g.AIC && g.app.canReload() && (g.AIC == "" || g.app.Certificates.Obtains(aic))
}

// reportRegistration logs what has become of a registration, if that is something else than before.
func (g *Gateway) reportRegistration(before, now *registry.Record, first bool) {
	log := g.log
	if now.Trouble != "" && now.Trouble != before.Trouble {
		log.Warn("the registry cannot be asked about the registration", "error", now.Trouble)
	}
	if next := now.Next; next != nil && (before.Next == nil || before.Next.Status != next.Status) {
		switch next.Status {
		case registry.Pending:
			log.Info("the registration waits for a person of the registry", "version", next.Version)
		case registry.Rejected:
			// What to do: correct it, and register it again.
			log.Warn("the registry has rejected the registration", "version", next.Version, "comments", next.Comments)
		}
	}
	switch {
	case g.isUsedAtOnce(now.AIC()): // see useAIC
	case now.AIC() != "" && now.AIC() != g.AIC && now.AIC() != before.AIC() && g.app.canReload():
		log.Warn("the registry has assigned an AIC: get certificates for it, and run caddy reload --force",
			"aic", now.AIC(), "used", g.AIC)
	case now.AIC() != "" && now.AIC() != g.AIC && now.AIC() != before.AIC():
		log.Warn("the registry has assigned an AIC, which is used when Caddy is started again: its admin API is off",
			"aic", now.AIC(), "used", cmp.Or(g.AIC, "none"))
	case first && g.entityAtMount(now):
		log.Warn("the Partner is registered with its mount point as its endpoint", "error", gateway.ErrAtMount)
	case first && now.Current == nil && now.Next == nil:
		log.Warn("the Partner is not registered, and has no AIC; run caddy aip acs register")
	}
}

// entityAtMount reports whether a Partner is an entity that is registered with its mount point as its endpoint. The ACS
// of an entity is not its own, and is not compared.
func (g *Gateway) entityAtMount(r *registry.Record) bool {
	return r.Current != nil && r.Current.Ontology != "" && r.Current.Endpoint() == g.registration()
}
