// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"slices"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/identity"
)

// policy says which rules and quotas of a Partner do not do what they seem to do.
func (e *examination) policy(ctx context.Context, g *Gateway) {
	if g.policy == nil {
		return
	}
	before := len(e.findings)
	warn := func(format string, args ...any) {
		e.add(doctor.CheckPolicy, doctor.Warning, g.title(), fmt.Sprintf(format, args...))
	}
	if p := g.Policy; p != nil {
		if p.DryRun {
			warn("dry_run is set, so the policy refuses nothing; remove it when the log has no line that surprises you")
		}
		all := slices.IndexFunc(p.Rules, func(r PolicyRule) bool { return r.Match.isEmpty() })
		if all >= 0 && all < len(p.Rules)-1 {
			warn("the rule %s has every call, so the rules after it decide nothing; move it to the end",
				ruleName(p.Rules, all))
		}
		for i := range p.Rules {
			if g.Identity.Mode == string(identity.Off) && p.Rules[i].Match.needsProof() {
				warn("identity is off, so no caller proves anything, and the condition certificate or claim of the rule %s "+
					"never holds; set identity to required or optional", ruleName(p.Rules, i))
			}
		}
	}
	for i := range g.Quotas {
		q := &g.Quotas[i]
		if q.DryRun {
			warn("dry_run is set in the quota %s, so it refuses nothing", q.Name)
		}
		if driverName(g.app.store) == "memory" && (q.Starts != "" || q.Bytes != "") {
			warn("the store is in memory, so what the quota %s has counted of a day is lost with the process; "+
				"use store pebble", q.Name)
		}
	}
	if g.point != nil {
		if err := g.point.Reach(ctx); err != nil {
			e.add(doctor.CheckPolicy, doctor.Broken, g.title(), fmt.Sprintf("the decision point cannot be reached (%v), so "+
				"that all calls that it is asked about are denied; start it, or check decide", err))
		}
	}
	if len(e.findings) == before {
		e.add(doctor.CheckPolicy, doctor.OK, g.title(), "every rule can decide, and every quota is kept")
	}
}

// ruleName returns the name that a rule has in the log.
func ruleName(rules []PolicyRule, i int) string {
	if name := rules[i].Name; name != "" {
		return name
	}
	return fmt.Sprint(i + 1)
}

// isEmpty reports whether there are no conditions.
func (m *PolicyMatch) isEmpty() bool {
	for _, values := range m.lists() {
		if len(*values) > 0 {
			return false
		}
	}
	return len(m.Certificate) == 0 && len(m.Claim) == 0
}

// needsProof reports whether a condition holds only for who has proven something.
func (m *PolicyMatch) needsProof() bool { return len(m.Certificate) > 0 || len(m.Claim) > 0 }
