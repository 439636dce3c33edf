// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strconv"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Policy says which calls of known callers are carried out.
type Policy struct {
	// A rule. The first with all its conditions decides; a call without a rule is denied.
	Rules []Rule `json:"rules,omitempty"`

	// A decision point, asked about calls allowed by the rules. See docs/policy.md#a-decision-point. Default: none.
	Decide *DecisionPoint `json:"decide,omitempty"`

	// Refuses nothing, but logs and counts. Default: false.
	DryRun bool `json:"dry_run,omitempty"`
}

// Rule allows or denies the calls for which its conditions hold.
type Rule struct {
	// Its name in logs and metrics. Default: its number.
	Name string `json:"name,omitempty"`

	// allow or deny.
	Effect string `json:"effect"`

	// Conditions; one stands in the line, several in a block.
	Match Match `json:"match,omitzero"`
}

// The values of effect.
const (
	effectAllow = "allow"
	effectDeny  = "deny"
)

// Match are conditions. All of them must hold, and each holds if one of its values does.
type Match struct {
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

// IsEmpty reports whether there are no conditions.
func (m *Match) IsEmpty() bool {
	for _, values := range m.lists() {
		if len(*values) > 0 {
			return false
		}
	}
	return len(m.Certificate) == 0 && len(m.Claim) == 0
}

// NeedsProof reports whether a condition holds only for who has proven something.
func (m *Match) NeedsProof() bool { return len(m.Certificate) > 0 || len(m.Claim) > 0 }

// Quota is how much of something callers may use over time.
type Quota struct {
	// Quotas of one name count together, in all handlers, and must be the same.
	Name string `json:"name"`

	// The calls under it, by a condition of policy. Default: all.
	Match Match `json:"match,omitzero"`

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
func (m *Match) lists() map[string]*[]string {
	return map[string]*[]string{
		"aic": &m.AIC, "registrar": &m.Registrar, "vendor": &m.Vendor, "ontology": &m.Ontology, "leader": &m.Leader,
		"dialect": &m.Dialect, "command": &m.Command, "method": &m.Method, "skill": &m.Skill, "mount": &m.Mount,
	}
}

// maps returns the conditions that have names of their own.
func (m *Match) maps() map[string]*map[string][]string {
	return map[string]*map[string][]string{"certificate": &m.Certificate, "claim": &m.Claim}
}

// conditionOptions are the options of a block that add conditions to a match.
func conditionOptions(p *conf.Parser, m *Match) conf.Options {
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
func readCondition(p *conf.Parser, m *Match, words []string) {
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
func ruleOption(p *conf.Parser, into *[]Rule) func() {
	return func() {
		r := Rule{Effect: p.Val()}
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

// PolicyOption returns what reads the option. Syntax:
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
func PolicyOption(p *conf.Parser, into **Policy) func() {
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

// QuotaOption returns what reads the option. Syntax:
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
func QuotaOption(p *conf.Parser, into *[]Quota) func() {
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

// Config returns the rule for the gateway.
func (r *Rule) Config() (policy.Rule, error) {
	if r.Effect != effectAllow && r.Effect != effectDeny {
		return policy.Rule{}, fmt.Errorf("the effect of a rule is %q, but must be allow or deny", r.Effect)
	}
	return policy.Rule{Name: r.Name, Deny: r.Effect == effectDeny, Match: policy.Match(r.Match)}, nil
}

// Config returns the quota for the gateway.
func (q *Quota) Config() (c policy.Quota, err error) {
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
