// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// untestable says why a test cannot be tested with this profile, and nothing if it can.
func (r *Runner) untestable(test *acts.Test, p *acts.Protocol) string {
	transport := "jsonrpc"
	if r.options.Transport != "" {
		transport = r.options.Transport
	}
	if len(test.Transport) > 0 && !slices.Contains(test.Transport, transport) {
		return fmt.Sprintf("it is for %s", strings.Join(test.Transport, ", "))
	}
	for _, name := range test.Needs {
		if _, has := r.profile.Behaviors[name]; !has {
			return fmt.Sprintf("the profile has no behavior %s", name)
		}
	}
	identities := slices.Clone(test.Identities)
	for i := range test.Steps {
		for s := &test.Steps[i]; s != nil; {
			identities = append(identities, s.As)
			if s.ClientResponse != nil {
				return "it tests a client"
			}
			if s.Parallel == nil {
				break
			}
			s = s.Parallel.Step
		}
	}
	for _, name := range identities {
		if name != "" && r.identities[name] == nil {
			return fmt.Sprintf("the profile has no identity %s", name)
		}
	}
	if test.Preconditions != nil {
		return r.unmet(test.Preconditions, transport)
	}
	return ""
}

// unmet compares the preconditions with the agent's card.
func (r *Runner) unmet(p *acts.Preconditions, transport string) string {
	if len(p.Transport) > 0 && !slices.Contains(p.Transport, transport) {
		return fmt.Sprintf("it is for %s", strings.Join(p.Transport, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Capabilities)) {
		has, _ := at(r.card, "capabilities."+name)
		if has == nil {
			has = false // an absent capability is one that the agent has not
		}
		if len(acts.Match(p.Capabilities[name], has)) > 0 {
			return fmt.Sprintf("the card's capabilities.%s is %s", name, brief(has))
		}
	}
	for _, skill := range p.Skills {
		ids, _ := acts.ParsePath("skills[*].id")
		if !slices.Contains(ids.Of(r.card), any(skill.ID)) {
			return fmt.Sprintf("the card has no skill %s", skill.ID)
		}
	}
	for _, uri := range p.Extensions {
		uris, _ := acts.ParsePath("capabilities.extensions[*].uri")
		if !slices.Contains(uris.Of(r.card), any(uri)) {
			return fmt.Sprintf("the card has no extension %s", uri)
		}
	}
	return ""
}
