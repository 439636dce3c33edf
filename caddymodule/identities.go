// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/identity"
)

// identities reads a block whose lines are pairs of an AIC and an AID.
func (p *parser) identities(into *map[string]string) {
	pairs := make(map[string]string)
	for nesting := p.Nesting(); p.err == nil && p.NextBlock(nesting); {
		aic, aids := p.Val(), p.RemainingArgs()
		switch _, twice := pairs[aic]; {
		case len(aids) != 1:
			p.fail("each line of identities needs an AIC and its AID")
		case twice:
			p.fail(aic + " is given twice in identities")
		default:
			pairs[aic] = aids[0]
		}
	}
	*into = pairs
}

// readIdentities reads the pairs of the configuration.
func readIdentities(pairs map[string]string) (*identity.Identities, error) {
	all := new(identity.Identities)
	for _, name := range slices.Sorted(maps.Keys(pairs)) { // so that an error is always the same
		aic, err := identity.ParseAIC(name)
		if err != nil {
			return nil, fmt.Errorf("identities: %w", err)
		}
		aid, err := aun.ParseAID(pairs[name])
		if err != nil {
			return nil, fmt.Errorf("identities: %w", err)
		}
		if err := all.Add(aic, string(aid)); err != nil {
			return nil, fmt.Errorf("identities: %w", err)
		}
	}
	return all, nil
}

// checkAID checks the setting aid, which is then in its canonical form.
func (g *Gateway) checkAID() error {
	if g.AID == "" {
		return nil
	}
	if err := literal("aid", g.AID); err != nil {
		return err
	}
	aid, err := aun.ParseAID(g.AID)
	if err != nil {
		return fmt.Errorf("aid: %w", err)
	}
	g.AID = string(aid)
	return nil
}

// aid returns the AID of the Partner; empty for none.
func (g *Gateway) aid() string { return cmp.Or(g.AID, g.app.identities.AID(identity.AIC(g.AIC))) }
