// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// TestTokensEndWithTheirCertificates: a token is as good as the certificates of its AID's login, by the roots and the
// revocations of the present configuration.
func TestTokensEndWithTheirCertificates(t *testing.T) {
	pki, other := auntest.NewPKI(t), auntest.NewPKI(t)
	own, alice := pki.Identity("gw.aid.test"), pki.Identity("alice.aid.test")
	before := newAuthority(t, aun.AuthorityConfig{Identity: own, Roots: pki.Roots()})
	result, err := before.Login2(params(login1(t, before, alice)))
	if err != nil {
		t.Fatal(err)
	}
	access := params(map[string]any{"method": "kite_token", "token": gjson.GetBytes(result, "access_token").String()})
	refresh := params(map[string]any{"refresh_token": gjson.GetBytes(result, "refresh_token").String()})
	proof, err := before.Authenticate(access)
	if err != nil {
		t.Fatal(err)
	}
	revoked, another := pki.Roots(), pki.Roots()
	if err := revoked.Revoke(pki.Revoke(alice)); err != nil {
		t.Fatal(err)
	}
	if err := another.Revoke(pki.Revoke(pki.Identity("bob.aid.test"))); err != nil {
		t.Fatal(err)
	}
	onlyRoot, err := aun.NewRoots(pki.RootPEM()) // the issuer was known when the token was made, so it is not in it
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		roots *aun.Roots
		want  int64
	}{
		"the same roots":                 {pki.Roots(), 0},
		"another certificate is revoked": {another, 0},
		"it is revoked":                  {revoked, codes.CertificateInvalid},
		"other roots":                    {other.Roots(), codes.CertificateInvalid},
		"no issuer":                      {onlyRoot, codes.CertificateInvalid},
	} {
		now := newAuthority(t, aun.AuthorityConfig{Identity: own, Roots: c.roots})
		if _, err := now.Authenticate(access); code(err) != c.want {
			t.Errorf("%s: an access token: %v", name, err)
		}
		result, _, err := now.Refresh(refresh)
		if err != nil || gjson.GetBytes(result, "success").Bool() != (c.want == 0) {
			t.Errorf("%s: a refresh token: %s, %v", name, result, err)
		}
		if err := now.Check(proof); code(err) != c.want {
			t.Errorf("%s: an open connection: %v", name, err)
		}
	}
	// A chain unknown to the roots is in the token.
	brief := newAuthority(t, aun.AuthorityConfig{Identity: own, Roots: onlyRoot})
	if result, err = brief.Login2(params(login1(t, brief, alice))); err != nil {
		t.Fatal(err)
	}
	access = params(map[string]any{"method": "kite_token", "token": gjson.GetBytes(result, "access_token").String()})
	if _, err := brief.Authenticate(access); err != nil {
		t.Errorf("a token of a chain with an issuer that the roots lack: %v", err)
	}
}
