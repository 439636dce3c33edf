// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/aip-gateway/aip-gateway/identity"
)

// policy says which rules and quotas of a Partner do not do what they seem to do.
func (e *examination) policy(ctx context.Context, m *Mount, inMemory bool) {
	p := m.Policy
	if p == nil {
		return
	}
	before := len(e.findings)
	warn := func(format string, args ...any) {
		e.add(CheckPolicy, Warning, m.Title, fmt.Sprintf(format, args...))
	}
	if p.DryRun {
		warn("dry_run is set, so the policy refuses nothing; remove it when the log has no line that surprises you")
	}
	all := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.HasAll })
	if all >= 0 && all < len(p.Rules)-1 {
		warn("the rule %s has every call, so the rules after it decide nothing; move it to the end", p.ruleName(all))
	}
	for i := range p.Rules {
		if m.Mode == string(identity.Off) && p.Rules[i].NeedsProof {
			warn("identity is off, so no caller proves anything, and the condition certificate or claim of the rule %s "+
				"never holds; set identity to required or optional", p.ruleName(i))
		}
	}
	for _, q := range p.Quotas {
		if q.DryRun {
			warn("dry_run is set in the quota %s, so it refuses nothing", q.Name)
		}
		if inMemory && q.OfDay {
			warn("the store is in memory, so what the quota %s has counted of a day is lost with the process; "+
				"use store pebble", q.Name)
		}
	}
	if p.Point != nil {
		if err := p.Point.Reach(ctx); err != nil {
			e.add(CheckPolicy, Broken, m.Title, fmt.Sprintf("the decision point cannot be reached (%v), so "+
				"that all calls that it is asked about are denied; start it, or check decide", err))
		}
	}
	if len(e.findings) == before {
		e.add(CheckPolicy, OK, m.Title, "every rule can decide, and every quota is kept")
	}
}

// ruleName returns the name that a rule has in the log.
func (p *Policy) ruleName(i int) string {
	if name := p.Rules[i].Name; name != "" {
		return name
	}
	return fmt.Sprint(i + 1)
}
