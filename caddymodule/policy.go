// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Policy says which calls of known callers are carried out.
type Policy struct {
	// A rule. The first with all its conditions decides; a call without a rule is denied.
	Rules []PolicyRule `json:"rules,omitempty"`

	// A decision point, asked about calls allowed by the rules. See docs/policy.md#a-decision-point. Default: none.
	Decide *DecisionPoint `json:"decide,omitempty"`

	// Refuses nothing, but logs and counts. Default: false.
	DryRun bool `json:"dry_run,omitempty"`
}

// PolicyRule allows or denies the calls for which its conditions hold.
type PolicyRule struct {
	// Its name in logs and metrics. Default: its number.
	Name string `json:"name,omitempty"`

	// allow or deny.
	Effect string `json:"effect"`

	// Conditions; one stands in the line, several in a block.
	Match PolicyMatch `json:"match,omitzero"`
}

// The values of effect.
const (
	effectAllow = "allow"
	effectDeny  = "deny"
)

// PolicyMatch are conditions. All of them must hold, and each holds if one of its values does.
type PolicyMatch struct {
	// AICs of Leaders.
	AIC []string `json:"aic,omitempty"`

	// The beginning of the AIC up to its registrar.
	Registrar []string `json:"registrar,omitempty"`

	// The same, up to its vendor.
	Vendor []string `json:"vendor,omitempty"`

	// The same, up to its ontology.
	Ontology []string `json:"ontology,omitempty"`

	// Whole names of Leaders, as in logs.
	Leader []string `json:"leader,omitempty"`

	// Attributes of the certificate: common_name, organization, organizational_unit, country, province, locality, issuer,
	// dns, email, uri, serial.
	Certificate map[string][]string `json:"certificate,omitempty"`

	// A claim of the token.
	Claim map[string][]string `json:"claim,omitempty"`

	// Dialects, or a2a for all its versions.
	Dialect []string `json:"dialect,omitempty"`

	// Commands in all dialects, as {aip.command} in aip_identify.
	Command []string `json:"command,omitempty"`

	// The dialect's names, such as message/send.
	Method []string `json:"method,omitempty"`

	// Skills of the call; a rule to allow lists all of them.
	Skill []string `json:"skill,omitempty"`

	// Mount points.
	Mount []string `json:"mount,omitempty"`
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

// Quota is how much of something callers may use over time.
type Quota struct {
	// Quotas of one name count together, in all handlers, and must be the same.
	Name string `json:"name"`

	// The calls under it, by a condition of policy. Default: all.
	Match PolicyMatch `json:"match,omitzero"`

	// Calls counted together: leader (of each Leader), set (of all under it) or agent (to each Partner). Default: leader.
	Of string `json:"of,omitempty"`

	// Calls, evenly, such as 50/s, 600/m or 5000/h, and at once. Default: any number.
	Calls string `json:"calls,omitempty"`

	// Starts on a day of UTC. Default: any number.
	Starts string `json:"starts,omitempty"`

	// Unfinished tasks; not of a set. Default: as limits.
	Tasks int `json:"tasks,omitempty"`

	// Open streams. Default: as limits.
	Streams int64 `json:"streams,omitempty"`

	// Bytes to callers and to the agent on a day of UTC. Default: any number.
	Bytes string `json:"bytes,omitempty"`

	// Refuses nothing, but logs and counts. Default: false.
	DryRun bool `json:"dry_run,omitempty"`
}

// lists returns the values of a condition that has no name of its own; nil for other conditions.
func (m *PolicyMatch) lists() map[string]*[]string {
	return map[string]*[]string{
		"aic": &m.AIC, "registrar": &m.Registrar, "vendor": &m.Vendor, "ontology": &m.Ontology, "leader": &m.Leader,
		"dialect": &m.Dialect, "command": &m.Command, "method": &m.Method, "skill": &m.Skill, "mount": &m.Mount,
	}
}

// maps returns the conditions that have names of their own.
func (m *PolicyMatch) maps() map[string]*map[string][]string {
	return map[string]*map[string][]string{"certificate": &m.Certificate, "claim": &m.Claim}
}

// conditionOptions are the options of a block that add conditions to a match.
func conditionOptions(p *conf.Parser, m *PolicyMatch) conf.Options {
	all := make(conf.Options)
	for name, into := range m.lists() {
		all[name] = p.Words(into)
	}
	for name, into := range m.maps() {
		all[name] = p.WordsOf(into, "a name, and at least one value")
	}
	return all
}

// readCondition adds a condition that stands in a line with other words.
func readCondition(p *conf.Parser, m *PolicyMatch, words []string) {
	name, values := words[0], words[1:]
	known := conditionOptions(p, m)
	for i := 1; i < len(values)-1; i++ {
		if known[values[i]] != nil {
			p.Fail("the condition " + name + " is followed by the condition " + values[i] + "; write them in a block, each in " +
				"a line of its own")
			return
		}
	}
	if into := m.lists()[name]; into != nil && len(values) > 0 {
		*into = values
		return
	}
	if into := m.maps()[name]; into != nil && len(values) > 1 {
		*into = map[string][]string{values[0]: values[1:]}
		return
	}
	if known[name] == nil {
		p.Fail("there is no condition " + strconv.Quote(name) + conf.Nearest(name, known))
		return
	}
	p.Fail("the condition " + name + " has too few values")
}

// ruleOption returns what reads a rule: its name, if it has one, and a condition, in a line or in a block.
func ruleOption(p *conf.Parser, into *[]PolicyRule) func() {
	return func() {
		r := PolicyRule{Effect: p.Val()}
		words := p.RemainingArgs()
		if known := conditionOptions(p, &r.Match); len(words) > 0 && known[words[0]] == nil {
			r.Name, words = words[0], words[1:]
		}
		if len(words) > 0 {
			readCondition(p, &r.Match, words)
		}
		p.Block(r.Effect, conditionOptions(p, &r.Match))
		*into = append(*into, r)
	}
}

// policyOption returns what reads the option. Syntax:
//
//	policy {
//		allow|deny [<name>] [<condition> <value>...] {
//			aic         <aic>...
//			registrar   <aic>...
//			vendor      <aic>...
//			ontology    <aic>...
//			leader      <leader>...
//			certificate <attribute> <value>...
//			claim       <name> <value>...
//			dialect     <dialect>...
//			command     <command>...
//			method      <method>...
//			skill       <skill>...
//			mount       <path>...
//		}
//		decide <url> {
//			allow_networks <cidr>...
//			ca             <file>...
//			client_cert    <cert> <key>
//		}
//		dry_run
//	}
func policyOption(p *conf.Parser, into **Policy) func() {
	return func() {
		*into = new(Policy)
		p.Section(conf.Options{
			effectAllow: ruleOption(p, &(*into).Rules),
			effectDeny:  ruleOption(p, &(*into).Rules),
			"decide":    decisionPointOption(p, &(*into).Decide),
			"dry_run":   p.Flag(&(*into).DryRun),
		})()
	}
}

// quotaOption returns what reads the option. Syntax:
//
//	quota <name> {
//		<condition> <value>...
//		of      leader|set|agent
//		calls   <rate> [burst <n>]
//		starts  <n>/day
//		tasks   <n>
//		streams <n>
//		bytes   <size>/day
//		dry_run
//	}
func quotaOption(p *conf.Parser, into *[]Quota) func() {
	return func() {
		*into = append(*into, Quota{})
		q := &(*into)[len(*into)-1]
		p.Word(&q.Name)()
		known := conditionOptions(p, &q.Match)
		known["of"] = p.Word(&q.Of)
		known["calls"] = p.Joined(&q.Calls)
		known["starts"] = p.Word(&q.Starts)
		known["tasks"] = p.Number(&q.Tasks)
		known["streams"] = func() {
			var n int
			p.Number(&n)()
			q.Streams = int64(n)
		}
		known["bytes"] = p.Word(&q.Bytes)
		known["dry_run"] = p.Flag(&q.DryRun)
		p.Block("quota", known)
	}
}

// config returns the rule for the gateway.
func (r *PolicyRule) config() (policy.Rule, error) {
	if r.Effect != effectAllow && r.Effect != effectDeny {
		return policy.Rule{}, fmt.Errorf("the effect of a rule is %q, but must be allow or deny", r.Effect)
	}
	return policy.Rule{Name: r.Name, Deny: r.Effect == effectDeny, Match: policy.Match(r.Match)}, nil
}

// config returns the quota for the gateway.
func (q *Quota) config() (c policy.Quota, err error) {
	c = policy.Quota{Name: q.Name, Match: policy.Match(q.Match), Of: policy.Scope(q.Of), Tasks: q.Tasks,
		Streams: q.Streams, DryRun: q.DryRun}
	read := func(limit, s string, parse func(string) error) {
		if err != nil || s == "" {
			return
		}
		if err = parse(s); err != nil {
			err = fmt.Errorf("quota %s: %s: %w", q.Name, limit, err)
		}
	}
	read("calls", q.Calls, func(s string) (err error) { c.Calls, err = policy.ParseRate(s); return err })
	read("starts", q.Starts, func(s string) (err error) { c.Starts, err = policy.ParseDaily(s); return err })
	read("bytes", q.Bytes, func(s string) (err error) { c.Bytes, err = policy.ParseDailyBytes(s); return err })
	return c, err
}

// newPolicy returns the policy of the handler; nil if it has none.
func (g *Gateway) newPolicy() (*policy.Policy, error) {
	if g.Policy == nil && len(g.Quotas) == 0 {
		return nil, nil
	}
	c := policy.Config{Ready: g.app.configuration.Ready, Meter: process.PolicyMeter(g.name()), Log: g.log}
	if g.Policy != nil && g.Policy.Decide != nil {
		var err error
		if g.point, err = g.Policy.Decide.open(g.AIC); err != nil {
			return nil, fmt.Errorf("policy: decide: %w", err)
		}
		c.Further = g.point.Decide
	}
	return g.compilePolicy(c)
}

// checkPolicy checks the rules and the quotas.
func (g *Gateway) checkPolicy() error {
	if g.Policy != nil && len(g.Policy.Rules) == 0 && g.Policy.Decide == nil {
		return errors.New("policy: it has no rules")
	}
	_, err := g.compilePolicy(policy.Config{Meter: new(policy.Meter)})
	return err
}

// compilePolicy returns the policy of the rules and the quotas. c says how it works.
func (g *Gateway) compilePolicy(c policy.Config) (*policy.Policy, error) {
	c.Partner = g.name()
	c.Names = policy.Names{Commands: gateway.Commands(), Dialects: gateway.CallerDialects()}
	if g.Policy != nil {
		c.DryRun = g.Policy.DryRun
		for i := range g.Policy.Rules {
			r, err := g.Policy.Rules[i].config()
			if err != nil {
				return nil, fmt.Errorf("policy: %w", err)
			}
			c.Rules = append(c.Rules, r)
		}
	}
	for i := range g.Quotas {
		q, err := g.Quotas[i].config()
		if err != nil {
			return nil, err
		}
		c.Quotas = append(c.Quotas, q)
	}
	p, err := policy.New(c)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// checkQuotas refuses quotas of one name that differ: they count together.
func checkQuotas(one, two *Gateway) error {
	for i := range one.Quotas {
		a := &one.Quotas[i]
		j := slices.IndexFunc(two.Quotas, func(b Quota) bool { return b.Name == a.Name })
		if j >= 0 && fmt.Sprint(*a) != fmt.Sprint(two.Quotas[j]) {
			return fmt.Errorf("the quota %s is not the same in two aip_gateway handlers, although they count together; "+
				"write it once, as a snippet that both import, or give them two names", a.Name)
		}
	}
	return nil
}
