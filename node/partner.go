// SPDX-License-Identifier: Apache-2.0

package node

import (
	"iter"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// Partner is a Partner at one of its mounts, in a configuration that has started. All but its configuration knows it by
// this, which does not change.
type Partner struct {
	Name  string // under which its tasks are stored: its AIC, or its agent's URL
	Title string // its name for people
	AIC   string // empty for none
	Agent string // the URL of its agent, or its AID; several Partners may have one agent
	URL   string // of the mount, for callers on this machine; empty if it is not known

	Gateway *gateway.Gateway
	Policy  *policy.Policy  // nil for none
	Issuers token.Verifiers // of its callers' tokens
}

// Partners are those of a configuration, with each of their mounts.
type Partners []*Partner

// Named returns the first mount of a Partner, by its name; nil if there is none.
func (all Partners) Named(name string) *Partner {
	for _, p := range all {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Each yields the first mount of each Partner.
func (all Partners) Each() iter.Seq[*Partner] {
	return func(yield func(*Partner) bool) {
		seen := make(map[string]bool, len(all))
		for _, p := range all {
			if seen[p.Name] {
				continue
			}
			if seen[p.Name] = true; !yield(p) {
				return
			}
		}
	}
}

// Agents yields a Partner of each agent: the one whose Title is the least.
func (all Partners) Agents() iter.Seq[*Partner] {
	first := make(map[string]*Partner)
	for _, p := range all {
		if other := first[p.Agent]; other == nil || p.Title < other.Title {
			first[p.Agent] = p
		}
	}
	return func(yield func(*Partner) bool) {
		for _, p := range first {
			if !yield(p) {
				return
			}
		}
	}
}

// Resolve returns the name of the Partner that a person has typed by its name or its title; what was typed, if there is
// none.
func (all Partners) Resolve(typed string) string {
	if all.Named(typed) != nil {
		return typed
	}
	for _, p := range all {
		if p.Title == typed {
			return p.Name
		}
	}
	return typed
}
