// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

var ofCallers metric.Set

// The metrics of what is decided about callers.
var (
	metricTokens = ofCallers.Counter("access_tokens_total",
		"Calls whose access token was checked, or that lack one which is required, by the result.", "partner", "result")
	metricPolicy = ofCallers.Counter("policy_calls_total",
		"Calls about which a rule has decided; the decision dry-run is a denial by a policy that is only tried.",
		"partner", "rule", "decision")
	metricQuota = ofCallers.Counter("quota_refusals_total",
		"Calls that a quota has refused; with dry_run, those that it would refuse.", "partner", "quota", "dry_run")
)

// callers adds what was decided about the callers of Partners.
func (s samples) callers(process *node.Process, partners node.Partners) {
	for p := range partners.Each() {
		s.policy(p.Name, process.PolicyMeter(p.Name))
		for result, n := range process.TokenMeter(p.Name).Results() {
			s.Add(metricTokens, float64(n), p.Name, result)
		}
	}
}

// policy adds what the policies of a Partner have decided.
func (s samples) policy(name string, m *policy.Meter) {
	for r := range m.Rules() {
		s.Add(metricPolicy, float64(r.Allowed), name, r.Name, "allow")
		s.Add(metricPolicy, float64(r.Denied), name, r.Name, "deny")
		s.Add(metricPolicy, float64(r.DryRun), name, r.Name, "dry-run")
	}
	for q := range m.Quotas() {
		s.Add(metricQuota, float64(q.Denied), name, q.Name, "false")
		s.Add(metricQuota, float64(q.DryRun), name, q.Name, "true")
	}
}
