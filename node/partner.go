// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/trust/aac"
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

	AID       string // by which AUN clients reach it; empty if they do not
	PublicURL string // of the mount, for all; empty if it is not known
	Assignee  string // the AID under which its agent connects to the gateway; empty if the agent does not
	Confirm   bool   // its callers accept results
	MaxRuns   int    // at its agent at once
	Memory    limit.Limits

	Check    time.Duration // between two questions whether the agent can be reached; 0 for none
	Compared bool          // its ACS with the registered one

	Gateway *gateway.Gateway
	Policy  *policy.Policy  // nil for none
	AAC     *aac.Gate       // nil for none
	Issuers token.Verifiers // of its callers' tokens
	Group   *group.Config   // how it takes part in groups; nil if it does not

	// Permits reports whether a Leader could call, as far as the mount alone says it. Nil permits all.
	Permits func(leader string) bool

	member *group.Partner // set by prepare; nil if it takes no part in groups
}

// prepare readies the Partner to work with the engines of a node.
func (p *Partner) prepare(n *Node) (err error) {
	if p.AAC != nil {
		p.AAC.Open(n.Used)
	}
	if p.Policy != nil {
		p.Policy.Open(n.Book)
	}
	if p.Group == nil {
		return nil
	}
	if p.member, err = n.Groups.Prepare(*p.Group); err != nil {
		return fmt.Errorf("group: %w", err)
	}
	p.Gateway.TakePart(p.member)
	return nil
}

// register has the Partner work with the engines of a node.
func (p *Partner) register(n *Node) {
	p.Gateway.Register(n.Tasks)
	if p.member != nil {
		p.member.Register()
	}
}

// unregister leaves the tasks and the memberships to another configuration, if there is one.
func (p *Partner) unregister() {
	if p.member != nil {
		p.member.Unregister()
	}
	p.Gateway.Unregister()
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

// stopped returns what reports whether nothing is sent to the webhooks of a Leader of a Partner now: it has lost its
// standing, or by this configuration it could not call. The webhooks of a Partner that is gone go on, as its tasks do.
func (all Partners) stopped(lost func(leader string) bool) func(partner, leader string) bool {
	mounts := make(map[string][]*Partner)
	for _, p := range all {
		mounts[p.Name] = append(mounts[p.Name], p)
	}
	return func(partner, leader string) bool {
		may := func(p *Partner) bool { return p.Permits == nil || p.Permits(leader) }
		return lost(leader) || len(mounts[partner]) > 0 && !slices.ContainsFunc(mounts[partner], may)
	}
}
