// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Of the program's grammar, the options that may stand more than once.
func init() { conf.Register(conf.Grammar{Repeatable: []string{"allow", "deny", "claim"}}) }

// readPolicy reads a policy as in a Caddyfile.
func readPolicy(options string) (got *Policy, err error) {
	p := conftest.Parser("policy {\n" + options + "\n}")
	PolicyOption(p, &got)()
	return got, p.Failed()
}

// readQuota reads a quota as in a Caddyfile, for the gateway.
func readQuota(text string) (policy.Quota, error) {
	p := conftest.Parser(text)
	var all []Quota
	if QuotaOption(p, &all)(); p.Failed() != nil {
		return policy.Quota{}, p.Failed()
	}
	return all[0].Config()
}

// TestPolicy: what each option sets. A rule has a name or none, and its conditions in the line, in a block or in both.
func TestPolicy(t *testing.T) {
	allow := func(m Match) *Policy { return &Policy{Rules: []Rule{{Effect: "allow", Match: m}}} }
	claims := func(all map[string][]string) Match { return Match{Claim: all} }
	conftest.Reads(t, map[string]*Policy{
		"allow":      allow(Match{}),
		"allow {\n}": allow(Match{}),
		"dry_run":    {DryRun: true},
		"deny strangers claim role guest\nallow ours\ndeny": {Rules: []Rule{
			{Name: "strangers", Effect: "deny", Match: claims(map[string][]string{"role": {"guest"}})},
			{Name: "ours", Effect: "allow"}, {Effect: "deny"},
		}},
		"allow command get list":               allow(Match{Command: []string{"get", "list"}}),
		"allow command get {\ncommand list\n}": allow(Match{Command: []string{"get", "list"}}),
		"allow command get {\nmount /a /b\n}":  allow(Match{Command: []string{"get"}, Mount: []string{"/a", "/b"}}),
		"allow claim role a b":                 allow(claims(map[string][]string{"role": {"a", "b"}})),
		"allow claim role a {\nclaim role b\nclaim team c\n}": allow(claims(map[string][]string{
			"role": {"a", "b"}, "team": {"c"}})),
		// The first value, and the last one, may be the name of a condition.
		"allow skill mount":        allow(Match{Skill: []string{"mount"}}),
		"allow skill export mount": allow(Match{Skill: []string{"export", "mount"}}),
		"allow claim skill mount":  allow(claims(map[string][]string{"skill": {"mount"}})),
		"decide http://a.example/v1/data/aip {\nallow_networks 10.0.0.0/8 ::1/128\nca a.pem b.pem\n" +
			"client_cert c.pem k.pem\n}": {Decide: &DecisionPoint{URL: "http://a.example/v1/data/aip",
			AllowNetworks: []string{"10.0.0.0/8", "::1/128"}, CA: []string{"a.pem", "b.pem"}, Cert: "c.pem", Key: "k.pem"}},
	}, readPolicy)
}

// TestConditions: each condition is one option, under its name in JSON, of a rule as of a quota.
func TestConditions(t *testing.T) {
	block, want := "", make(map[string]any)
	for _, name := range []string{"aic", "registrar", "vendor", "ontology", "leader", "dialect", "command", "method",
		"skill", "mount"} {
		block += name + " a-" + name + " b\n"
		want[name] = []any{"a-" + name, "b"}
	}
	for _, name := range []string{"certificate", "claim"} {
		block += name + " of-" + name + " c d\n"
		want[name] = map[string]any{"of-" + name: []any{"c", "d"}}
	}
	rule, err := readPolicy("deny {\n" + block + "}")
	if err != nil {
		t.Fatal(err)
	}
	p := conftest.Parser("quota free {\n" + block + "}")
	var quotas []Quota
	if QuotaOption(p, &quotas)(); p.Failed() != nil {
		t.Fatal(p.Failed())
	}
	for of, match := range map[string]Match{"a rule": rule.Rules[0].Match, "a quota": quotas[0].Match} {
		text, err := json.Marshal(match)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", of, diff)
		}
	}
	if known := conditionOptions(p, new(Match)); len(known) != len(want) {
		t.Errorf("there are %d conditions, and %d of them were read", len(known), len(want))
	}
}

// TestPolicyMistakes: what is said about each mistake in a Caddyfile.
func TestPolicyMistakes(t *testing.T) {
	conftest.Refuses(t, map[string]string{
		"allow ours comand get":     `there is no condition "comand"; did you mean "command"?, at Testfile:2`,
		"allow ours theirs":         `there is no condition "theirs", at Testfile:2`,
		"allow command":             "the condition command has too few values, at Testfile:2",
		"allow ours claim role":     "the condition claim has too few values, at Testfile:2",
		"deny ours certificate dns": "the condition certificate has too few values, at Testfile:2",
		"allow command get mount /a": "the condition command is followed by the condition mount; write them in a block, " +
			"each in a line of its own, at Testfile:2",
		"allow claim role a claim team b": "the condition claim is followed by the condition claim; write them in a block, " +
			"each in a line of its own, at Testfile:2",
		"allow {\ncommands get\n}":      `there is no "commands" in allow; did you mean "command"?, at Testfile:3`,
		"deny {\nmount\n}":              "mount needs at least one value, at Testfile:3",
		"deny {\nclaim role\n}":         "claim needs a name, and at least one value, at Testfile:3",
		"deny {\nmount /a\nmount /b\n}": "mount is given twice in deny, at Testfile:4",
		"permit":                        `there is no "permit" in policy, at Testfile:2`,
		"dry_run yes":                   "dry_run takes no value, at Testfile:2",
		"decide":                        "decide needs exactly one value, at Testfile:2",
		"decide http://a http://b":      "decide needs exactly one value, at Testfile:2",
		"decide http://a {\nclient_cert c.pem\n}": "client_cert needs a certificate and a key, both PEM files, at " +
			"Testfile:3",
		"decide http://a {\ntimeout 1s\n}": `there is no "timeout" in decide, at Testfile:3`,
	}, func(text string) error {
		_, err := readPolicy(text)
		return err
	})
	// JSON may leave the effect out.
	for _, effect := range []string{"", "Allow", "refuse"} {
		r := Rule{Effect: effect}
		want := `the effect of a rule is "` + effect + `", but must be allow or deny`
		if _, err := r.Config(); err == nil || err.Error() != want {
			t.Errorf("of the effect %q is said %v, want %s", effect, err, want)
		}
	}
}

// TestRule: the gateway has the effect, the name and the conditions of a rule.
func TestRule(t *testing.T) {
	got, err := readPolicy("deny guests {\ncommand start\ncertificate dns a.example\n}\nallow")
	if err != nil {
		t.Fatal(err)
	}
	var rules []policy.Rule
	for i := range got.Rules {
		r, err := got.Rules[i].Config()
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	want := []policy.Rule{{Name: "guests", Deny: true, Match: policy.Match{Command: []string{"start"},
		Certificate: map[string][]string{"dns": {"a.example"}}}}, {}}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMatch: a match is empty without any condition, and two conditions need a proof.
func TestMatch(t *testing.T) {
	of := map[string][]string{"a": {"b"}}
	for _, tc := range []struct {
		match        Match
		empty, needs bool
	}{
		{Match{}, true, false},
		{Match{AIC: []string{}, Claim: map[string][]string{}}, true, false},
		{Match{Mount: []string{"/a"}}, false, false},
		{Match{Leader: []string{"a"}}, false, false},
		{Match{Certificate: of}, false, true},
		{Match{Claim: of}, false, true},
	} {
		if empty, needs := tc.match.IsEmpty(), tc.match.NeedsProof(); empty != tc.empty || needs != tc.needs {
			t.Errorf("%+v: empty %t, needs a proof %t", tc.match, empty, needs)
		}
	}
}

// TestQuota: what each option sets, and nothing where it is left out.
func TestQuota(t *testing.T) {
	conftest.Reads(t, map[string]policy.Quota{
		"quota free":                      {Name: "free"},
		"quota free {\ncalls \"\"\n}":     {Name: "free"},
		"quota free {\ncalls 600/m\n}":    {Name: "free", Calls: policy.Rate{N: 600, Per: time.Minute, Burst: 10}},
		"quota free {\nbytes 2KiB/day\n}": {Name: "free", Bytes: 2048},
		"quota free {\nclaim plan free\ncommand start\nof agent\ncalls 50/s burst 100\nstarts 7/day\ntasks 3\nstreams 4\n" +
			"bytes 1MB/day\ndry_run\n}": {
			Name: "free", Of: policy.OfAgent, Calls: policy.Rate{N: 50, Per: time.Second, Burst: 100}, Starts: 7, Tasks: 3,
			Streams: 4, Bytes: 1_000_000, DryRun: true,
			Match: policy.Match{Command: []string{"start"}, Claim: map[string][]string{"plan": {"free"}}},
		},
	}, readQuota)
}

// TestQuotaMistakes: what is said about each mistake. Of several limits, the first wrong one is named.
func TestQuotaMistakes(t *testing.T) {
	with := func(options string) string { return "quota free {\n" + options + "\n}" }
	conftest.Refuses(t, map[string]string{
		"quota":                      "quota needs exactly one value, at Testfile:1",
		"quota free paid":            "quota needs exactly one value, at Testfile:1",
		with("call 5/s"):             `there is no "call" in quota; did you mean "calls"?, at Testfile:2`,
		with("calls"):                "calls needs at least one value, at Testfile:2",
		with("of"):                   "of needs exactly one value, at Testfile:2",
		with("tasks many"):           `tasks is "many", but must be a whole number, at Testfile:2`,
		with("streams 1.5"):          `streams is "1.5", but must be a whole number, at Testfile:2`,
		with("starts 7 day"):         "starts needs exactly one value, at Testfile:2",
		with("dry_run no"):           "dry_run takes no value, at Testfile:2",
		with("calls 5/s\ncalls 6/s"): "calls is given twice in quota, at Testfile:3",
		with("calls 5/d"): `quota free: calls: "5/d" is no rate; write for example 50/s, 600/m or ` +
			"50/s burst 100",
		with("calls 5/s burst none"):         `quota free: calls: "none" is no whole number above 0`,
		with("starts 7"):                     `quota free: starts: "7" is no count of a day; write for example 1000/day`,
		with("bytes 1GiB"):                   `quota free: bytes: "1GiB" is no size of a day; write for example 1GiB/day`,
		with("bytes 1\nstarts 2\ncalls 5/s"): `quota free: starts: "2" is no count of a day; write for example 1000/day`,
	}, func(text string) error {
		_, err := readQuota(text)
		return err
	})
}
