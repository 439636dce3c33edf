// SPDX-License-Identifier: Apache-2.0

package doctor

import "testing"

// TestDecisions: a decision, as people read it.
func TestDecisions(t *testing.T) {
	for want, d := range map[string]Decision{
		"denied: the list allow does not have the Leader": {Rule: "all", Allowed: true, Asks: true},
		"allowed: there are no rules":                     {Listed: true, Allowed: true},
		"allowed by the rule all":                         {Listed: true, Allowed: true, Rule: "all"},
		"denied by the rule guests":                       {Listed: true, Rule: "guests", Asks: true, Quotas: []string{"a"}},
		"allowed, since the policy is only tried: the rule guests would deny it": {Listed: true, Allowed: true,
			DryRun: true, Rule: "guests"},
		"allowed by the rule all, if the decision point allows it; counted by a, b": {Listed: true, Allowed: true,
			Rule: "all", Asks: true, Quotas: []string{"a", "b"}},
	} {
		if got := d.String(); got != want {
			t.Errorf("%+v is read as %q, want %q", d, got, want)
		}
	}
}
