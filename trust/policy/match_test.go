// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net/url"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	aicV1 = "10001000011K912345E789ABCDEF2353"
	aicV2 = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
)

var known = Names{
	Commands: []string{"get", "start", "cancel", "list", "set-webhook"},
	Dialects: []string{"aip", "aip/2", "a2a/1.0", "a2a/0.3", "agentapi"},
}

// byCertificate is a peer with a certificate.
func byCertificate(aic string) *identity.Peer {
	cert := &x509.Certificate{
		Subject:      pkix.Name{CommonName: aic, Organization: []string{"ACME"}, Country: []string{"CN"}},
		Issuer:       pkix.Name{CommonName: "Agent CA"},
		SerialNumber: big.NewInt(0x1f2e),
		DNSNames:     []string{"leader.example"},
		URIs:         []*url.URL{{Scheme: "acps", Host: aic}},
	}
	return &identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: aic,
		Chains: [][]*x509.Certificate{{cert}}}
}

// callOf is a call of a peer, changed by some functions.
func callOf(p *identity.Peer, change ...func(*Call)) *Call {
	c := &Call{Peer: p, Leader: p.Leader(), Mount: "/agent", Dialect: "aip", Command: "start", Method: "rpc",
		Message: new(task.Message)}
	for _, f := range change {
		f(c)
	}
	return c
}

func withClaims(claims string) *identity.Peer {
	return &identity.Peer{Proof: identity.ByToken, Kind: "jwt", ID: "https://idp|alice",
		Claims: &identity.Claims{JSON: claims}}
}

// TestConditions: each condition holds for the values it names, and for nothing else.
func TestConditions(t *testing.T) {
	v1, v2, none := byCertificate(aicV1), byCertificate(aicV2), new(identity.Peer)
	params := func(s string) func(*Call) { return func(c *Call) { c.Message.Params = json.RawMessage(s) } }
	extensions := func(s string) func(*Call) { return func(c *Call) { c.Message.Extensions = json.RawMessage(s) } }
	for name, tc := range map[string]struct {
		match Match
		call  *Call
		want  bool
	}{
		"nothing":     {Match{}, callOf(v1), true},
		"aic":         {Match{AIC: []string{aicV2, strings.ToLower(aicV1)}}, callOf(v1), true},
		"another aic": {Match{AIC: []string{aicV2}}, callOf(v1), false},
		"aic of a claimed Leader": {
			Match{AIC: []string{aicV1}},
			callOf(none, func(c *Call) { c.Leader = strings.ToLower(aicV1) }), true,
		},
		"aic of an unverified one": {
			Match{AIC: []string{aicV1}},
			callOf(none, func(c *Call) { c.Leader = "unverified:" + aicV1 }), false,
		},
		"aic and no Leader":       {Match{AIC: []string{aicV1}}, callOf(none, func(c *Call) { c.Leader = "" }), false},
		"registrar, v1":           {Match{Registrar: []string{"10001"}}, callOf(v1), true},
		"vendor, v1":              {Match{Vendor: []string{"1000100001"}}, callOf(v1), true},
		"ontology, v1":            {Match{Ontology: []string{aicV1[:22]}}, callOf(v1), true},
		"another vendor, v1":      {Match{Vendor: []string{"1000100002"}}, callOf(v1), false},
		"vendor of v1, Leader v2": {Match{Vendor: []string{"1000100001"}}, callOf(v2), false},
		"registrar, v2":           {Match{Registrar: []string{"1.2.156.3088.1.1"}}, callOf(v2), true},
		"vendor, v2":              {Match{Vendor: []string{"1.2.156.3088.1.1.34c2"}}, callOf(v2), true},
		"ontology, v2":            {Match{Ontology: []string{"1.2.156.3088.1.1.34C2.478BDF"}}, callOf(v2), true},
		"a part of a level, v2":   {Match{Ontology: []string{"1.2.156.3088.1.1.34C2.478BD"}}, callOf(v2), false},
		"leader": {
			Match{Leader: []string{"aid:a.example"}},
			callOf(&identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: "a.example"}), true,
		},
		"aic of an aid": {
			Match{AIC: []string{aicV1}},
			callOf(&identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: "a.example"}), false,
		},
		"organization": {
			Match{Certificate: map[string][]string{"organization": {"X", "ACME"}}},
			callOf(v1), true,
		},
		"two attributes": {
			Match{Certificate: map[string][]string{"organization": {"ACME"}, "country": {"DE"}}},
			callOf(v1), false,
		},
		"serial": {Match{Certificate: map[string][]string{"serial": {"00:1F:2E"}}}, callOf(v1), true},
		"uri": {
			Match{Certificate: map[string][]string{"uri": {"acps://" + aicV1}}},
			callOf(v1), true,
		},
		"issuer": {Match{Certificate: map[string][]string{"issuer": {"Agent CA"}}}, callOf(v1), true},
		"dns":    {Match{Certificate: map[string][]string{"dns": {"leader.example"}}}, callOf(v1), true},
		"no certificate": {
			Match{Certificate: map[string][]string{"organization": {"ACME"}}},
			callOf(none), false,
		},
		"claim": {
			Match{Claim: map[string][]string{"tenant": {"blue"}}},
			callOf(withClaims(`{"tenant":"blue"}`)), true,
		},
		"claim in a list": {
			Match{Claim: map[string][]string{"groups": {"ops"}}},
			callOf(withClaims(`{"groups":["dev","ops"]}`)), true,
		},
		"claim in an object": {
			Match{Claim: map[string][]string{"realm_access.roles": {"ops"}}},
			callOf(withClaims(`{"realm_access":{"roles":["ops"]}}`)), true,
		},
		"claim with a dot": {
			Match{Claim: map[string][]string{"https://x.example/t": {"1"}}},
			callOf(withClaims(`{"https://x.example/t":1}`)), true,
		},
		"scope": {
			Match{Claim: map[string][]string{"scope": {"b"}}},
			callOf(withClaims(`{"scope":"a b"}`)), true,
		},
		"a part of a scope": {
			Match{Claim: map[string][]string{"scope": {"task"}}},
			callOf(withClaims(`{"scope":"task:read"}`)), false,
		},
		"a claim that is no text": {
			Match{Claim: map[string][]string{"tenant": {"null"}}},
			callOf(withClaims(`{"tenant":null}`)), false,
		},
		"no claims": {Match{Claim: map[string][]string{"tenant": {"blue"}}}, callOf(v1), false},
		"dialect":   {Match{Dialect: []string{"aip"}}, callOf(v1), true},
		"family of dialects": {
			Match{Dialect: []string{"a2a"}},
			callOf(v1, func(c *Call) { c.Dialect = "a2a/1.0-rest" }), true,
		},
		"one version":         {Match{Dialect: []string{"aip/2"}}, callOf(v1), false},
		"command":             {Match{Command: []string{"get", "start"}}, callOf(v1), true},
		"another command":     {Match{Command: []string{"get"}}, callOf(v1), false},
		"method":              {Match{Method: []string{"rpc"}}, callOf(v1), true},
		"another method":      {Match{Method: []string{"stream"}}, callOf(v1), false},
		"mount":               {Match{Mount: []string{"/agent/"}}, callOf(v1), true},
		"another mount":       {Match{Mount: []string{"/"}}, callOf(v1), false},
		"mounted at the root": {Match{Mount: []string{"/"}}, callOf(v1, func(c *Call) { c.Mount = "" }), true},
		"skill in the params": {Match{Skill: []string{"export"}}, callOf(v1, params(`{"skillId":"export"}`)), true},
		"another skill":       {Match{Skill: []string{"export"}}, callOf(v1, params(`{"skillId":"import"}`)), false},
		"skill in metadata": {
			Match{Skill: []string{"export"}},
			callOf(v1, extensions(`{"a2a":{"metadata":{"skillId":"export"}}}`)), true,
		},
		"skill in the metadata of the message": {
			Match{Skill: []string{"export"}},
			callOf(v1, extensions(`{"a2a":{"message":{"metadata":{"skillId":"export"}},"metadata":{"x":1}}}`)), true,
		},
		"skill of an invitation": {
			Match{Skill: []string{"export"}},
			callOf(v1, func(c *Call) { c.Skills = []string{"export"} }), true,
		},
		"no skill": {Match{Skill: []string{"export"}}, callOf(v1), false},
		"all conditions": {
			Match{AIC: []string{aicV1}, Command: []string{"start"}, Dialect: []string{"aip"}},
			callOf(v1), true,
		},
		"all conditions but one": {
			Match{AIC: []string{aicV1}, Command: []string{"get"}, Dialect: []string{"aip"}},
			callOf(v1), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := tc.match.compile(known, false)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.holds(tc.call); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestBadConditions: a mistake is found when the configuration is read, and the error names the remedy.
func TestBadConditions(t *testing.T) {
	for want, m := range map[string]Match{
		"aic: the AIC has 3 characters":          {AIC: []string{"abc"}},
		"registrar: \"1000\" is neither":         {Registrar: []string{"1000"}},
		"vendor: \"1.2.156.3088.1.1\" is not":    {Vendor: []string{"1.2.156.3088.1.1"}},
		"ontology: \"1.2.3\" is not the first 8": {Ontology: []string{"1.2.3"}},
		"certificate colour: there is no such":   {Certificate: map[string][]string{"colour": {"red"}}},
		"claim : it has no name":                 {Claim: map[string][]string{"": {"x"}}},
		"dialect: there is no dialect \"a2\"":    {Dialect: []string{"a2"}},
		"command: there is no command \"stop\"":  {Command: []string{"stop"}},
		"mount: \"agent\" does not begin":        {Mount: []string{"agent"}},
		"method has an empty value":              {Method: []string{""}},
		"leader has an empty value":              {Leader: []string{}},
	} {
		if _, err := m.compile(known, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", m, err, want)
		}
	}
}

func newPolicy(t testing.TB, c Config) *Policy {
	t.Helper()
	c.Names, c.Meter = known, new(Meter)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ruleOf returns the name of the rule refusing a call; empty for none.
func ruleOf(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Rule
	}
	return ""
}

// TestRules: the first rule with a call decides, and a call without a rule is denied. The caller learns the same.
func TestRules(t *testing.T) {
	c := Config{Rules: []Rule{
		{Name: "blocked", Deny: true, Match: Match{AIC: []string{aicV2}}},
		{Name: "readers", Match: Match{Command: []string{"get", "list"}}},
		{Name: "one", Match: Match{AIC: []string{aicV1}}},
	}}
	p := newPolicy(t, c)
	reads := func(c *Call) { c.Command = "get" }
	for _, tc := range []struct {
		call *Call
		want string
	}{
		{callOf(byCertificate(aicV1)), ""},
		{callOf(byCertificate(aicV2)), "blocked"},
		{callOf(byCertificate(aicV2), reads), "blocked"},
		{callOf(new(identity.Peer), reads), ""},
		{callOf(new(identity.Peer)), NoRule},
		{callOf(&identity.Peer{Proof: identity.ByHost, Kind: identity.OperatorKind, ID: "console"}), ""},
	} {
		err := p.Decide(t.Context(), tc.call, new(Use))
		if got := ruleOf(err); got != tc.want {
			t.Errorf("%s: %q has decided, want %q", tc.call.Leader, got, tc.want)
		}
		if err != nil && (task.KindOf(err) != task.AuthorizationFailed ||
			errors.Unwrap(err) == nil || err.(*task.Error).Detail != Denied(nil).(*task.Error).Detail) {
			t.Errorf("the error is %v", err)
		}
	}
	c.DryRun = true
	p = newPolicy(t, c)
	if err := p.Decide(t.Context(), callOf(byCertificate(aicV2)), new(Use)); err != nil {
		t.Errorf("in a dry run: %v", err)
	}
	var counted []Count
	for one := range p.config.Meter.Rules() {
		counted = append(counted, one)
	}
	if len(counted) != 4 || counted[1] != (Count{Name: "blocked", DryRun: 1}) {
		t.Errorf("counted %+v", counted)
	}
}

// TestFurther: a decision point is asked about calls allowed by the rules, and about nothing else.
func TestFurther(t *testing.T) {
	asked := 0
	c := Config{
		Rules:   []Rule{{Match: Match{Command: []string{"get"}}}},
		Further: func(context.Context, *Call) error { asked++; return Denied(nil) },
	}
	p := newPolicy(t, c)
	reads := func(c *Call) { c.Command = "get" }
	if err := p.Decide(t.Context(), callOf(byCertificate(aicV1), reads), new(Use)); asked != 1 || err == nil {
		t.Errorf("asked %d times, %v", asked, err)
	}
	if err := p.Decide(t.Context(), callOf(byCertificate(aicV1)), new(Use)); asked != 1 || ruleOf(err) != NoRule {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

// TestBadRules: rules letting in nothing, or with one name twice, are a mistake.
func TestBadRules(t *testing.T) {
	for want, c := range map[string]Config{
		"no rule allows a call":      {Rules: []Rule{{Deny: true}}},
		"two rules have the name a":  {Rules: []Rule{{Name: "a"}, {Name: "a"}}},
		"the name \"a b\" is":        {Rules: []Rule{{Name: "a b"}}},
		"rule 1: command":            {Rules: []Rule{{Match: Match{Command: []string{"x"}}}}},
		"quota q: it limits nothing": {Quotas: []Quota{{Name: "q"}}},
		"quota : it has no name":     {Quotas: []Quota{{Starts: 1}}},
		"quota q: another one":       {Quotas: []Quota{{Name: "q", Starts: 1}, {Name: "q", Starts: 1}}},
		"quota q: of is \"x\"":       {Quotas: []Quota{{Name: "q", Starts: 1, Of: "x"}}},
		"quota q: a limit must not":  {Quotas: []Quota{{Name: "q", Starts: 1, Bytes: -1}}},
		"quota q: unfinished tasks":  {Quotas: []Quota{{Name: "q", Tasks: 1, Of: OfSet}}},
		"quota q: aic":               {Quotas: []Quota{{Name: "q", Tasks: 1, Match: Match{AIC: []string{"x"}}}}},
		"at most 8 may apply to one Partner": {Quotas: []Quota{
			{Name: "1", Tasks: 1}, {Name: "2", Tasks: 1}, {Name: "3", Tasks: 1}, {Name: "4", Tasks: 1}, {Name: "5", Tasks: 1},
			{Name: "6", Tasks: 1}, {Name: "7", Tasks: 1}, {Name: "8", Tasks: 1}, {Name: "9", Tasks: 1}}},
	} {
		c.Names, c.Meter = known, new(Meter)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// FuzzMatch: whatever conditions say, reading and asking them does no harm, and an accepted AIC, or its accepted
// beginning, has its own Leader.
func FuzzMatch(f *testing.F) {
	f.Add(aicV1, "10001", "organization", "ACME", "scope", `{"scope":"a b"}`, `{"skillId":"x"}`)
	f.Add(aicV2, "1.2.156.3088.1.1", "serial", "0:1", "a.b", `{"a":{"b":[1]}}`, `[]`)
	f.Fuzz(func(t *testing.T, aic, registrar, attribute, value, claim, claims, params string) {
		call := callOf(byCertificate(aicV1), func(c *Call) {
			c.Message.Params = json.RawMessage(params)
			c.Message.Extensions = json.RawMessage(claims)
		})
		call.Peer.Claims = &identity.Claims{JSON: claims}
		for _, m := range []Match{
			{Registrar: []string{registrar}}, {Vendor: []string{registrar}}, {Ontology: []string{registrar}},
			{Certificate: map[string][]string{attribute: {value}}}, {Claim: map[string][]string{claim: {value}}},
			{Skill: []string{value}}, {Dialect: []string{value}}, {Mount: []string{value}},
		} {
			if compiled, err := m.compile(known, false); err == nil {
				compiled.holds(call)
			}
		}
		m := Match{AIC: []string{aic}}
		if compiled, err := m.compile(known, false); err == nil {
			if call := callOf(new(identity.Peer), func(c *Call) { c.Leader = aic }); !compiled.holds(call) {
				t.Errorf("%q does not match itself", aic)
			}
		}
	})
}
