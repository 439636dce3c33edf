// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/upstream/callerinfo"
)

// TestConnectionErrors: what is said where the files or placeholders of an agent cannot be had. No value is quoted.
func TestConnectionErrors(t *testing.T) {
	dir := t.TempDir()
	pki := auntest.NewPKI(t)
	full, bare := filepath.Join(dir, "full.pem"), filepath.Join(dir, "bare.pem")
	id := pki.Identity("gateway.aid.test")
	if err := id.Save(full, false); err != nil {
		t.Fatal(err)
	}
	if err := (&aun.Identity{AID: id.AID, Key: id.Key}).Save(bare, false); err != nil {
		t.Fatal(err)
	}
	roots, none := filepath.Join(dir, "roots.pem"), filepath.Join(dir, "none")
	if err := os.WriteFile(roots, pki.RootsPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(options string) string { return "agent a2a https://a.example {\n" + options + "\n}" }
	ofAUN := func(options string) string { return "agent aun agent.aid.test {\n" + options + "\n}" }
	for _, tc := range []struct {
		text string
		own  aun.ClientConfig
		want string // of the error
	}{
		{with(`header_up Authorization "Bearer hunter2 {env.NO_SUCH_KEY}"`), aun.ClientConfig{},
			"header_up Authorization has a placeholder without a value: {env.NO_SUCH_KEY}"},
		{with("card " + none), aun.ClientConfig{}, "card: stat " + none + ": no such file or directory"},
		{with("card {env.NO_SUCH_DIR}/card.json"), aun.ClientConfig{},
			"card: the name of a file has a placeholder without a value: {env.NO_SUCH_DIR}"},
		{with("tls {\nverify name\naic " + aic + "\n}"), aun.ClientConfig{},
			"tls: verify name looks at no AIC: leave the AIC out, or use verify both"},
		{ofAUN(""), aun.ClientConfig{}, "identity: it is missing; caddy aip aun-id makes the file that it needs"},
		{ofAUN("identity " + none), aun.ClientConfig{}, "identity: open " + none + ": no such file or directory"},
		{ofAUN("identity {env.NO_SUCH_DIR}/a.pem"), aun.ClientConfig{},
			"identity: the name of a file has a placeholder without a value: {env.NO_SUCH_DIR}"},
		{ofAUN("identity " + bare), aun.ClientConfig{Roots: pki.Roots()},
			"identity: " + bare + " has no certificate yet; caddy aip aun-id adds it"},
		{ofAUN("identity " + full), aun.ClientConfig{},
			"roots: none are given; they need a PEM file with the roots of AUN's certificates"},
		{ofAUN("identity " + full + "\nroots {env.NO_SUCH_DIR}/a.pem"), aun.ClientConfig{},
			"roots: the name of a file has a placeholder without a value: {env.NO_SUCH_DIR}"},
		{ofAUN("identity " + full + "\nroots " + none), aun.ClientConfig{},
			"roots: open " + none + ": no such file or directory"},
	} {
		a, err := read(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		_, err = a.Connection(tc.own, nil, nil)
		if err == nil {
			t.Errorf("%s makes a connection", tc.text)
			continue
		}
		if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.text, diff)
		}
	}
	// The agent's own files count before the gateway's.
	own := aun.ClientConfig{Identity: pki.Identity("own.aid.test"), Roots: auntest.NewPKI(t).Roots()}
	for options, want := range map[string]aun.AID{"": "own.aid.test",
		"identity " + full + "\nroots " + roots: "gateway.aid.test"} {
		a, err := read(ofAUN(options + "\nidle_window 1m"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.Connection(own, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := []any{c.AUN.Identity.AID, c.AUN.Peer, c.AUN.Roots == own.Roots, c.IdleWindow}
		if diff := cmp.Diff([]any{want, aun.AID("agent.aid.test"), options == "", time.Minute}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", options, diff)
		}
	}
}

// TestConnection: the settings are those of the connection, with the values of placeholders.
func TestConnection(t *testing.T) {
	t.Setenv("AGENT_KEY", "hunter2")
	card := filepath.Join(t.TempDir(), "card.json")
	if err := os.WriteFile(card, []byte(`{"name":"one"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := read("agent a2a https://a.example {\nheader_up Authorization \"Bearer {env.AGENT_KEY}\"\ncard " + card +
		"\nmax_runs 7\nmax_runs_per_leader 3\ntimeout 2m\nretry_for 0s\nstreams off\n}")
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Connection(aun.ClientConfig{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.HTTP.Header, c.HTTP.URL, c.HTTP.TLS == (*tls.Config)(nil), c.CardURL, c.MaxRequests, c.MaxPerLeader,
		c.Turns.IdleTimeout, c.Turns.RetryFor, c.Turns.ResendAfter}
	want := []any{http.Header{"Authorization": {"Bearer hunter2"}}, "https://a.example", true, "", 7, 3, 2 * time.Minute,
		time.Duration(0), 10 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The card is read again each time.
	for _, text := range []string{`{"name":"one"}`, `{"name":"two"}`} {
		if err := os.WriteFile(card, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.ReadCard(); err != nil || string(got) != text {
			t.Errorf("the card is %s, %v, want %s", got, err, text)
		}
	}
	a.Card = "https://cards.example/card"
	if c, err = a.Connection(aun.ClientConfig{}, nil, nil); err != nil || c.ReadCard != nil || c.CardURL != a.Card {
		t.Errorf("of a card at a URL: %q, %v", c.CardURL, err)
	}
}

// TestIntroducer: a token needs keys, and names the agent by its AIC before its URL.
func TestIntroducer(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := callerinfo.NewIssuer("https://gateway.example", []crypto.Signer{key})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	a := &Config{URL: "https://a.example:8443/rpc?x=1"}
	if i, err := a.Introducer(issuer, "", log); i != nil || err != nil {
		t.Errorf("an agent that is to learn nothing: %v, %v", i, err)
	}
	a.Caller.JWT = new(CallerJWT)
	const want = "agent: caller: jwt needs keys to sign with; set issuer in the global option aip"
	if _, err := a.Introducer(nil, "", log); err == nil || err.Error() != want {
		t.Errorf("without keys: %v, want %s", err, want)
	}
	if i, err := a.Introducer(issuer, "", log); i == nil || err != nil {
		t.Errorf("with keys: %v, %v", i, err)
	}
	if got := a.audience(); got != "https://a.example:8443" {
		t.Errorf("by its URL, the audience is %s", got)
	}
	a.TLS.AIC = []string{aic, strings.ToLower(otherAIC)}
	if got := a.audience(); got != "acps:agent:"+aic {
		t.Errorf("by its AIC, the audience is %s", got)
	}
}
