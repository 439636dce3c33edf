// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/identity"
)

// Names are other ids of an agent. In JSON, a text may stand for one.
type Names []string

// UnmarshalJSON reads one name, or a list.
func (n *Names) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		*n = make(Names, 1)
		return json.Unmarshal(b, &(*n)[0])
	}
	return json.Unmarshal(b, (*[]string)(n))
}

// MarshalJSON writes one name as a text.
func (n Names) MarshalJSON() ([]byte, error) {
	if len(n) == 1 {
		return json.Marshal(n[0])
	}
	return json.Marshal([]string(n))
}

// readIdentitySets reads a block whose lines are the ids of an agent each.
func readIdentitySets(p *conf.Parser, into *map[string]Names) {
	sets := make(map[string]Names)
	for nesting := p.Nesting(); p.Failed() == nil && p.NextBlock(nesting); {
		first, others := p.Val(), p.RemainingArgs()
		switch _, twice := sets[first]; {
		case len(others) == 0:
			p.Fail("each line of identities needs an AIC and its AID, or other ids of the same agent")
		case twice:
			p.Fail(first + " is given twice in identities")
		default:
			sets[first] = others
		}
	}
	*into = sets
}

// readIdentities reads the sets of ids of the configuration.
func readIdentities(sets map[string]Names) (*identity.Identities, error) {
	all := new(identity.Identities)
	for _, name := range slices.Sorted(maps.Keys(sets)) { // so that an error is always the same
		leader, err := leaderOf(name, true)
		if err != nil {
			return nil, fmt.Errorf("identities: %q: %w", name, err)
		}
		for _, other := range sets[name] {
			joined, err := leaderOf(other, false)
			if err == nil {
				err = all.Join(leader, joined)
			}
			if err != nil {
				return nil, fmt.Errorf("identities: %q: %w", other, err)
			}
		}
	}
	return all, nil
}

// leaderOf reads a name of a Leader. Without a prefix it is an AIC where it comes first, and else an AID.
func leaderOf(name string, first bool) (string, error) {
	kind, id := identity.SplitLeader(name)
	switch kind {
	case identity.KeyKind:
		if id == "" {
			return "", fmt.Errorf("%q names no key", name)
		}
		return name, nil
	case identity.JWTKind:
		issuer, subject, _ := strings.Cut(id, "|")
		if issuer == "" || identity.CheckSubject(subject) != nil {
			return "", fmt.Errorf("%q is not jwt:<issuer>|<name>, with a name of 1 to 255 bytes", name)
		}
		return name, nil
	case identity.AICKind:
		aic, err := identity.ParseAIC(id)
		if err == nil || first {
			return string(aic), err
		}
	}
	aid, err := aun.ParseAID(id)
	return identity.Peer{Kind: identity.AIDKind, ID: string(aid)}.Leader(), err
}

// checkAID checks the setting aid, which is then in its canonical form.
func (g *Gateway) checkAID() error {
	if g.AID == "" {
		return nil
	}
	if err := conf.Literal("aid", g.AID); err != nil {
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
