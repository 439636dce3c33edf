// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/trust/authn"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// TestWebhooksOfWhoMayNotCall: nothing is sent to the webhooks of a Leader whose key, issuer or permission is gone.
//
// Promise: a Leader that is no longer allowed goes on
func TestWebhooksOfWhoMayNotCall(t *testing.T) {
	_, line, err := authn.MakeKey("billing")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := authn.ReadKeys(file, "")
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := token.New(token.Config{Issuer: "https://issuer.example", Audiences: []string{"here"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(verifier.Close)
	joined := new(identity.Identities)
	if err := joined.Join("1.2.3", "key:billing"); err != nil {
		t.Fatal(err)
	}
	all := &authn.Authenticator{Keys: keys, Tokens: []*authn.Token{{Verifier: verifier}}}
	for _, tc := range []struct {
		name    string
		mode    identity.Mode
		allow   []identity.AIC
		callers *authn.Authenticator
		leader  string
		stopped bool
	}{
		{"a key", identity.Required, nil, all, "key:billing", false},
		{"a key that is gone", identity.Required, nil, all, "key:library", true},
		{"no keys", identity.Required, nil, &authn.Authenticator{}, "key:billing", true},
		{"an issuer", identity.Required, nil, all, "jwt:https://issuer.example|x", false},
		{"an issuer that is gone", identity.Required, nil, all, "jwt:https://issuer.example.org|x", true},
		{"an AIC", identity.Required, nil, all, "1.2.3", false},
		{"an AIC that is listed", identity.Required, []identity.AIC{"1.2.3"}, all, "1.2.3", false},
		{"an AIC that is not listed any more", identity.Required, []identity.AIC{"1.2.4"}, all, "1.2.3", true},
		{"a key where AICs are listed", identity.Required, []identity.AIC{"1.2.4"}, all, "key:billing", true},
		{"one that has proven nothing", identity.Optional, nil, all, "unverified:x", false},
		{"proofs are needed now", identity.Required, nil, all, "unverified:x", true},
		{"no proofs count", identity.Off, nil, &authn.Authenticator{}, "anybody", false},
		{"no proofs count any more", identity.Off, nil, &authn.Authenticator{}, "key:billing", true},
		{"an operator", identity.Required, []identity.AIC{"1.2.4"}, all, "operator:root", false},
	} {
		g := &Gateway{Name: "agent", callers: tc.callers,
			leaders: &identity.Guard{Mode: tc.mode, Allow: tc.allow}, app: &App{identities: joined}}
		if got := !g.permits(tc.leader); got != tc.stopped {
			t.Errorf("%s: its webhooks are stopped: %t, want %t", tc.name, got, tc.stopped)
		}
	}
}
