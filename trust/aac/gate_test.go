// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/trust/token"
	"github.com/aip-gateway/aip-gateway/trust/token/tokentest"
)

const (
	partner = "10001000011K912345E789ABCDEF2353"
	caller  = "10001000011K94ZH3VDXLP4S5EB63614"
	other   = "10001000011K96TFZ2B9H9I1J85AUF77"
	first   = "10001000011K9DX1GW14X1VSP2QQNG44"
	alias   = "https://partner.example.com"
)

var certificate = &x509.Certificate{Raw: []byte("the certificate of the caller")}

type members = map[string]any

// peer returns a caller by its certificate.
func peer(aic string) *identity.Peer {
	return &identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: aic,
		Chains: [][]*x509.Certificate{{certificate}}}
}

// claims returns the claims of a good token, with changes; nil takes a claim out.
func claims(changes members) members {
	now := time.Now()
	c := members{"sub": "user-123", "aud": "acps:agent:" + partner, "exp": now.Add(time.Hour).Unix(),
		"iat": now.Add(-time.Minute).Unix(), "jti": "j", "scope": "acps.skill.invoke:data.export",
		"act": members{"sub": "agent:" + caller, "aic": caller}}
	for name, value := range changes {
		c[name] = value
	}
	return c
}

// newGate returns a gate for the tokens of an issuer.
func newGate(t testing.TB, i *tokentest.Issuer, c Config) *Gate {
	t.Helper()
	v, err := token.New(token.Config{Issuer: i.URL, JWKS: i.JWKS, Audiences: []string{Audience(partner), alias},
		Egress: egress.Policy{Allow: tokentest.Loopback}})
	if err != nil {
		t.Fatal(err)
	}
	c.AIC, c.Tokens, c.Partner = partner, token.Verifiers{v}, partner
	if c.Meter == nil {
		c.Meter = new(Meter)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	g := New(c)
	t.Cleanup(g.Close)
	return g
}

// bearer returns the values of a header with a token.
func bearer(token string) []string { return []string{"Bearer " + token} }

// outcome is what became of a call: the kind of its error and why, or that it is let in.
func outcome(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var r *Refusal
	if !errors.As(err, &r) {
		t.Fatalf("the error has no reason: %v", err)
	}
	return task.KindOf(err).String() + " " + string(r.Reason)
}

// TestCheck has a call for each way in which a token may be wrong, with the error that AAC §12 has for it.
func TestCheck(t *testing.T) {
	issuer := tokentest.New(t)
	stranger := tokentest.New(t)
	const invalid, failed, none = "access-token-invalid ", "authorization-failed ", "authentication-required "
	start := &task.Message{Command: task.Start}
	skilled := &task.Message{Command: task.Start, Params: []byte(`{"skillId":"data.export"}`)}
	unskilled := &task.Message{Command: task.Start, Params: []byte(`{"skillId":"data.import"}`)}
	agents := func(all ...string) (route []string) {
		for _, aic := range all {
			route = append(route, "agent:"+aic)
		}
		return route
	}
	act := func(aics ...string) members { // the last actor first
		var a members
		for i := len(aics) - 1; i >= 0; i-- {
			outer := members{"sub": "agent:" + aics[i]}
			if a != nil {
				outer["act"] = a
			}
			a = outer
		}
		return a
	}
	fixed := func(chain members, route ...string) members {
		return members{"act": chain, "acps_delegation_mode": "fixed", "acps_allowed_route": agents(route...)}
	}
	for _, tt := range []struct {
		name    string
		claims  members
		message *task.Message
		want    string
	}{
		{"good", nil, start, ""},
		{"an alias of the Partner", members{"aud": []string{"x", alias}}, start, ""},
		{"the audience of another Partner", members{"aud": "acps:agent:" + other}, start, invalid + "audience"},
		{"the URL of the Partner that is no alias", members{"aud": alias + "/"}, start, invalid + "audience"},
		{"expired", members{"exp": time.Now().Add(-2 * time.Minute).Unix()}, start, invalid + "expired"},
		{"not yet valid", members{"nbf": time.Now().Add(2 * time.Minute).Unix()}, start, invalid + "not-yet-valid"},
		{"of a foreign issuer", members{"iss": stranger.URL}, start, invalid + "issuer"},
		{"sub missing", members{"sub": nil}, start, invalid + "malformed"},
		{"exp missing", members{"exp": nil}, start, invalid + "malformed"},
		{"iat missing", members{"iat": nil}, start, invalid + "malformed"},
		{"scope missing", members{"scope": nil}, start, invalid + "malformed"},
		{"act missing", members{"act": nil}, start, invalid + "malformed"},
		{"jti missing, and tokens may be used again", members{"jti": nil}, start, ""},
		{"with obligations", members{"obligations": []string{"watermark"}}, start, failed + "obligation"},
		{"with an obligation of AAC's name", members{"acps_obligations": members{"log": 1}}, start, failed + "obligation"},
		{"with obligations that are none", members{"obligations": []string{}, "acps_obligations": members{}}, start, ""},
		{"act a number", members{"act": 7}, start, invalid + "malformed"},
		{"act without an agent", members{"act": members{"sub": "human:x#y"}}, start, invalid + "malformed"},
		{"act with two agents", members{"act": members{"sub": "agent:" + caller, "aic": other}}, start,
			invalid + "malformed"},
		{"act of another", members{"act": act(other)}, start, failed + "act"},
		{"act of another around the caller", members{"act": act(other, caller)}, start, failed + "act"},
		{"act of the caller for another", members{"act": act(caller, other)}, start, ""},
		{"act in lower case", members{"act": act(strings.ToLower(caller))}, start, ""},
		{"act as a string", members{"act": "agent:" + caller}, start, ""},
		{"act as a string, of another", members{"act": "agent:" + other}, start, failed + "act"},
		{"bound to the certificate", members{"cnf": members{"x5t#S256": tokentest.Thumbprint(certificate)}}, start, ""},
		{"bound to another certificate", members{"cnf": members{"x5t#S256": tokentest.Thumbprint(
			&x509.Certificate{Raw: []byte("of another")})}}, start, failed + "cnf"},
		{"bound to a key", members{"cnf": members{"jkt": "x"}}, start, failed + "cnf"},
		{"bound to nothing", members{"cnf": members{}}, start, failed + "cnf"},
		{"cnf no object", members{"cnf": "x"}, start, invalid + "malformed"},
		{"for this Partner", members{"acps_target_aic": strings.ToLower(partner)}, start, ""},
		{"for another Partner", members{"acps_target_aic": other}, start, invalid + "audience"},
		{"a mode that is not known", members{"acps_delegation_mode": "free"}, start, invalid + "malformed"},
		{"along the route", fixed(act(caller, first), first, caller, partner), start, ""},
		{"along the route, which goes on", fixed(act(caller, first), first, caller, partner, other), start, ""},
		{"a step of the route is left out", fixed(act(caller), first, caller, partner), start, failed + "route"},
		{"a long chain with an id", members{"act": act(caller), "acps_delegation_mode": "fixed",
			"acps_delegation_id": "d", "acps_allowed_route": agents(first, caller, partner)}, start, ""},
		{"beside the route", fixed(act(caller, other), first, caller, partner), start, failed + "route"},
		{"a route to another Partner", fixed(act(caller), caller, other), start, failed + "route"},
		{"a node is skipped", fixed(act(caller), caller, other, partner), start, failed + "route"},
		{"fixed without a route", members{"acps_delegation_mode": "fixed"}, start, failed + "route"},
		{"as deep as allowed", members{"acps_delegation_mode": "dynamic", "acps_chain_depth": 2,
			"acps_max_chain_depth": 2}, start, ""},
		{"too deep", members{"acps_delegation_mode": "dynamic", "acps_chain_depth": 3, "acps_max_chain_depth": 2}, start,
			failed + "route"},
		{"to be delegated no further, by nobody", members{"acps_chain_depth": 0, "acps_max_chain_depth": 0}, start, ""},
		{"to be delegated no further", members{"acps_chain_depth": 1, "acps_max_chain_depth": 0}, start, failed + "route"},
		{"for the skill", members{"acps_skill_id": "data.export"}, skilled, ""},
		{"for another skill", members{"acps_skill_id": "data.export"}, unskilled, failed + "skill"},
		{"for the skill, and the metadata name another", members{"acps_skill_id": "data.export"}, &task.Message{
			Command: task.Start, Params: skilled.Params, Extensions: []byte(`{"skillId":"data.import"}`)}, failed + "skill"},
		{"for a skill that the start does not name", members{"acps_skill_id": "data.export"}, start, failed + "skill"},
		{"for a skill, of a task that runs", members{"acps_skill_id": "data.export"}, &task.Message{Command: task.Get}, ""},
	} {
		g := newGate(t, issuer, Config{})
		c := &policy.Call{Peer: peer(caller), Leader: caller, Message: tt.message}
		signed := issuer.Sign(t, claims(tt.claims))
		for range 2 { // replay is off
			got, err := g.Check(t.Context(), c, bearer(signed))
			if diff := cmp.Diff(tt.want, outcome(t, err)); diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
			}
			if (got == nil) != (err != nil) {
				t.Errorf("%s: claims %v beside the error %v", tt.name, got, err)
			}
			if err != nil && (strings.Contains(err.Error(), signed) || strings.Contains(err.Error(), "user-123")) {
				t.Errorf("%s: the error holds the token or its subject: %v", tt.name, err)
			}
		}
	}
	c := &policy.Call{Peer: peer(caller), Leader: caller, Message: start}
	_, err := newGate(t, issuer, Config{}).Check(t.Context(), c,
		bearer(stranger.Sign(t, claims(members{"iss": issuer.URL}))))
	if got := outcome(t, err); got != invalid+"signature" {
		t.Errorf("signed by another: %v", err)
	}
}

// TestCallers has callers of all kinds, with tokens and without.
func TestCallers(t *testing.T) {
	issuer := tokentest.New(t)
	good := issuer.Sign(t, claims(nil))
	aun := &identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: "alice.example.com", Login: true}
	operator := &identity.Peer{Proof: identity.ByHost, Kind: identity.OperatorKind}
	const none = "authentication-required "
	for _, tt := range []struct {
		name            string
		peer            *identity.Peer
		authorization   []string
		want, wantIfReq string // with require
	}{
		{"with a token", peer(caller), bearer(good), "", ""},
		{"in lower case", peer(caller), []string{"bearer  " + good}, "", ""},
		{"without one", peer(caller), nil, "", none + "missing"},
		{"with Basic, for others", peer(caller), []string{"Basic eDp5"}, "", none + "missing"},
		{"with Basic and a token", peer(caller), []string{"Basic eDp5", "Bearer " + good}, "", ""},
		{"with an empty token", peer(caller), []string{"Bearer "}, "access-token-invalid malformed",
			"access-token-invalid malformed"},
		{"with two tokens", peer(caller), append(bearer(good), bearer(good)...), "access-token-invalid malformed",
			"access-token-invalid malformed"},
		{"with the token of another", peer(other), bearer(good), "authorization-failed act", "authorization-failed act"},
		{"no certificate", new(identity.Peer), bearer(good), "", none + "certificate"},
		{"AUN", aun, nil, "", none + "certificate"},
		{"a member of a group", &identity.Peer{Proof: identity.ByBroker, Kind: identity.AICKind, ID: caller}, nil, "",
			none + "certificate"},
		{"the operator", operator, nil, "", ""},
	} {
		for require, want := range map[bool]string{false: tt.want, true: tt.wantIfReq} {
			g := newGate(t, issuer, Config{Require: require})
			_, err := g.Check(t.Context(), &policy.Call{Peer: tt.peer}, tt.authorization)
			if got := outcome(t, err); got != want {
				t.Errorf("%s, require %t: %q (%v), want %q", tt.name, require, got, err, want)
			}
		}
	}
}

// TestFixedSentences: what a caller is told depends on the kind of the error alone.
func TestFixedSentences(t *testing.T) {
	sentences := make(map[task.Kind]string)
	for _, r := range []Reason{token.Malformed, token.Algorithm, token.Issuer, token.UnknownKey, token.NoKeys,
		token.Signature, token.Audience, token.Expired, token.NotYetValid, Missing, Certificate, Actor, Binding, Route, Skill,
		Replayed} {
		var e *task.Error
		if !errors.As(refused(&Refusal{Reason: r, Detail: "secret", Issuer: "secret"}), &e) {
			t.Fatalf("%s is no error with a kind", r)
		}
		if before, known := sentences[e.Kind]; known && before != e.Detail || e.Field != "" || e.Data != nil ||
			strings.Contains(e.Detail, "secret") {
			t.Errorf("%s: callers are told %q at %q with %v, and %q for another reason", r, e.Detail, e.Field, e.Data, before)
		}
		sentences[e.Kind] = e.Detail
	}
	denied := policy.Denied(nil)
	var e *task.Error
	if errors.As(denied, &e); e.Detail != sentences[task.AuthorizationFailed] {
		t.Errorf("a policy says %q, and a token %q", e.Detail, sentences[task.AuthorizationFailed])
	}
}

// TestReplay: with refuse, a token is used once, whichever process or configuration has seen it, until it has expired.
func TestReplay(t *testing.T) {
	issuer := tokentest.New(t)
	store := replay.NewMemory(replay.Settings{})
	defer store.Close()
	log := slog.New(slog.DiscardHandler)
	open := func() (*Gate, *Used) {
		g, u := newGate(t, issuer, Config{Refuse: true}), OpenUsed(shard.One(store), log)
		g.Open(u)
		return g, u
	}
	check := func(g *Gate, changes members) string {
		_, err := g.Check(t.Context(), &policy.Call{Peer: peer(caller)}, bearer(issuer.Sign(t, claims(changes))))
		return outcome(t, err)
	}
	one, used := open()
	for _, tt := range []struct {
		name    string
		changes members
		want    string
	}{
		{"the first time", nil, ""},
		{"the second time", nil, "access-token-invalid replayed"},
		{"another token with the same id", members{"scope": "x"}, "access-token-invalid replayed"},
		{"another id", members{"jti": "k"}, ""},
		{"no id", members{"jti": nil}, "access-token-invalid malformed"},
		{"one that is refused", members{"jti": "l", "act": "agent:" + other}, "authorization-failed act"},
		{"is not used up by it", members{"jti": "l"}, ""},
	} {
		if got := check(one, tt.changes); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	two, other := open()
	if got := check(two, members{"jti": "k"}); got != "access-token-invalid replayed" {
		t.Errorf("another process: %q", got)
	}
	used.Close()
	other.Close()
	three, again := open()
	defer again.Close()
	if got := check(three, nil); got != "access-token-invalid replayed" {
		t.Errorf("after a restart: %q", got)
	}
	calls := make(chan string)
	for range 20 {
		go func() { calls <- check(three, members{"jti": "at once"}) }()
	}
	accepted := 0
	for range 20 {
		if <-calls == "" {
			accepted++
		}
	}
	if accepted != 1 {
		t.Errorf("%d of 20 calls at once with one token are accepted", accepted)
	}
}

// TestStoreUnavailable: a call whose token cannot be stored is not carried out.
func TestStoreUnavailable(t *testing.T) {
	issuer := tokentest.New(t)
	store := replay.NewMemory(replay.Settings{})
	g, used := newGate(t, issuer, Config{Refuse: true}), OpenUsed(shard.One(store), slog.New(slog.DiscardHandler))
	defer used.Close()
	g.Open(used)
	_ = store.Close()
	c, err := g.Check(t.Context(), &policy.Call{Peer: peer(caller)}, bearer(issuer.Sign(t, claims(nil))))
	if c != nil || task.KindOf(err) != task.StoreUnavailable {
		t.Errorf("got %v, %v", c, err)
	}
	g.config.Ready = func(context.Context) error { return context.DeadlineExceeded }
	if _, err := g.Check(t.Context(), &policy.Call{Peer: peer(caller)},
		bearer(issuer.Sign(t, claims(nil)))); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the store is open: %v", err)
	}
}

// TestLogged: a token that is accepted is logged without itself, and its subject is hashed.
func TestLogged(t *testing.T) {
	issuer := tokentest.New(t)
	var log bytes.Buffer
	meter := new(Meter)
	g := newGate(t, issuer, Config{Meter: meter,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	signed := issuer.Sign(t, claims(members{"acps_delegation_id": "dlg-1"}))
	_, err := g.Check(t.Context(), &policy.Call{Peer: peer(caller), Leader: caller, Command: "start"}, bearer(signed))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"jti=j", "delegation=dlg-1", "command=start", "subject=hash:", "actors=[" + caller + "]",
		"issuer=" + issuer.URL} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is missing in %s", want, log.String())
		}
	}
	if strings.Contains(log.String(), signed) || strings.Contains(log.String(), "user-123") {
		t.Errorf("the log holds a secret: %s", log.String())
	}
	for result, n := range meter.Results() {
		if result != "accepted" || n != 1 {
			t.Errorf("%d calls are counted as %s", n, result)
		}
	}
}

// TestDelegationIsReadOnce: of a token that comes again, the claims are not read again, and what they say is the same.
func TestDelegationIsReadOnce(t *testing.T) {
	issuer := tokentest.New(t)
	g := newGate(t, issuer, Config{})
	c := &policy.Call{Peer: peer(caller), Leader: caller, Message: &task.Message{Command: task.Start}}
	good := bearer(issuer.Sign(t, claims(members{"cnf": members{"x5t#S256": tokentest.Thumbprint(certificate)}})))
	wrong := bearer(issuer.Sign(t, claims(members{"act": members{"sub": "agent:" + other}})))
	for range 3 {
		_, err := g.Check(t.Context(), c, good)
		if got := outcome(t, err); got != "" {
			t.Errorf("a good token: %s", got)
		}
		_, err = g.Check(t.Context(), c, wrong)
		if got := outcome(t, err); got != "authorization-failed "+string(Actor) {
			t.Errorf("a token for another caller: %q", got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = g.Check(t.Context(), c, good) }); n > 0 {
		t.Errorf("a token that is known is checked with %v allocations", n)
	}
}

// BenchmarkCheck measures the check of a call whose token is known.
func BenchmarkCheck(b *testing.B) {
	issuer := tokentest.New(b)
	g := newGate(b, issuer, Config{})
	c := &policy.Call{Peer: peer(caller), Leader: caller, Message: &task.Message{Command: task.Start}}
	header := bearer(issuer.Sign(b, claims(members{"cnf": members{"x5t#S256": tokentest.Thumbprint(certificate)}})))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Check(b.Context(), c, header); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzDelegation reads claims: what is accepted has an actor, and none of it makes the gateway fail.
func FuzzDelegation(f *testing.F) {
	f.Add(`{"act":{"sub":"agent:`+caller+`","act":{"aic":"`+first+`"}},"scope":"a"}`, "", "agent:"+caller)
	f.Add(`{"act":"agent:`+caller+`","scope":"","cnf":{"x5t#S256":"AA"},"acps_allowed_route":["agent:`+caller+`"]}`,
		"fixed", "")
	f.Fuzz(func(t *testing.T, json, mode, hop string) {
		d, err := readDelegation(&identity.Claims{Subject: "s", Issued: time.Now(), JSON: json})
		if err != nil {
			return
		}
		if len(d.chain) == 0 {
			t.Errorf("%s has no actor", json)
		}
		for _, aic := range d.chain {
			if _, err := identity.ParseAIC(string(aic)); err != nil {
				t.Errorf("%s has the actor %q", json, aic)
			}
		}
		d.mode = mode
		_ = d.checkRoute(identity.AIC(hop))
		_ = d.isBoundTo(certificate)
	})
}
