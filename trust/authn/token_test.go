// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/trust/token"
	"github.com/aip-gateway/aip-gateway/trust/token/tokentest"
)

// TestWrongTokens: whatever is wrong with a token, the token is refused, and not the request (RFC 6750, §3.1).
func TestWrongTokens(t *testing.T) {
	issuer := tokentest.New(t)
	v, err := token.New(token.Config{Issuer: issuer.URL, JWKS: issuer.JWKS, Audiences: []string{"here"},
		Egress: egress.Policy{Allow: tokentest.Loopback}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	a := &Authenticator{Tokens: []*Token{{Verifier: v}}}
	exp := time.Now().Add(time.Hour).Unix()
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	good := issuer.Sign(t, map[string]any{"aud": "here", "sub": "billing", "exp": exp})
	invalid, malformed := who{Err: identity.ErrInvalid.Error()}, who{Err: identity.ErrMalformed.Error()}
	for name, tc := range map[string]struct {
		sent []string
		want who
	}{
		"good":              {[]string{good}, who{Proof: "token", Leader: "jwt:" + issuer.URL + "|billing"}},
		"another signature": {[]string{good[:len(good)-8] + "AAAAAAAA"}, invalid},
		"for others":        {[]string{issuer.Sign(t, map[string]any{"aud": "there", "sub": "x", "exp": exp})}, invalid},
		"without an end":    {[]string{issuer.Sign(t, map[string]any{"aud": "here", "sub": "x"})}, invalid},
		"no subject":        {[]string{issuer.Sign(t, map[string]any{"aud": "here", "exp": exp})}, invalid},
		"one word":          {[]string{"x"}, invalid},
		"two parts":         {[]string{"x.y"}, invalid},
		"no base64":         {[]string{"!.!.!"}, invalid},
		"no JSON":           {[]string{part("x") + "." + part("y") + "." + part("z")}, invalid},
		"not signed":        {[]string{part(`{"alg":"none"}`) + "." + part(`{}`) + "."}, invalid},
		"too long":          {[]string{strings.Repeat("x", token.MaxSize+1)}, invalid},
		"no token":          {[]string{""}, who{}},
		"two in a field":    {[]string{good + ", " + good}, malformed},
		"two fields":        {[]string{good, good}, malformed},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, token := range tc.sent {
				fields = append(fields, "Bearer "+token)
			}
			got := whoOf(a.Authenticate(request("10.0.0.1:1", map[string][]string{"Authorization": fields})))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
