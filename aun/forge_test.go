// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"context"
	"crypto/ecdsa"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// unsigned returns a token but for its signature of ES256.
func unsigned(aid, audience string) string {
	end := time.Now().Add(time.Hour).Unix()
	claims := fmt.Sprintf(`{"iss":"auth.aid.test","aud":%q,"aid":%q,"exp":%d,"cert_not_after":%d}`,
		audience, aid, end, end)
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(claims))
}

// withSignature returns a token of a text and its signature in DER.
func withSignature(t *testing.T, text, signature string) string {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	var rs struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &rs); err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 64)
	rs.R.FillBytes(raw[:32])
	rs.S.FillBytes(raw[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(raw)
}

// TestNothingSignedIsAToken: a signature by the key of an AID, for any other end, makes no token of its gateway.
//
// Promise: another party acts as a client of AUN
func TestNothingSignedIsAToken(t *testing.T) {
	pki := auntest.NewPKI(t)
	own := pki.Identity("gw.aid.test")
	a := newAuthority(t, aun.AuthorityConfig{Identity: own, Roots: pki.Roots()})
	for _, audience := range []string{"aun", "aun-refresh"} {
		text := unsigned("alice.aid.test", audience)
		signature, err := own.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		token := withSignature(t, text, signature)
		_, err = a.Authenticate(params(map[string]any{"method": "kite_token", "token": token}))
		if code(err) != codes.AuthFailed {
			t.Errorf("a token with the audience %s that the key of the AID has signed: %v", audience, err)
		}
		result, _, err := a.Refresh(params(map[string]any{"refresh_token": token}))
		if err != nil || gjson.GetBytes(result, "success").Bool() {
			t.Errorf("a refresh token with the audience %s that the key of the AID has signed: %s, %v", audience, result, err)
		}
	}
}

// TestOwnKeyIsNoIssuer: a configuration cannot have tokens accepted if they are signed by the key of the gateway's AID.
func TestOwnKeyIsNoIssuer(t *testing.T) {
	pki := auntest.NewPKI(t)
	own := pki.Identity("gw.aid.test")
	for name, c := range map[string]struct {
		key  *ecdsa.PublicKey
		fine bool
	}{
		"its own": {&own.Key.PublicKey, false}, "another": {&pki.Identity("auth.other.test").Key.PublicKey, true},
	} {
		_, err := aun.NewAuthority(aun.AuthorityConfig{Identity: own, Roots: pki.Roots(),
			ForeignKeys: map[string][]*ecdsa.PublicKey{"aid.test": {c.key}}})
		if (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNonces: nothing but a nonce is signed, in any of the places where the other end chooses it; the nonces of
// official clients are signed.
func TestNonces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pki := auntest.NewPKI(t)
		own, alice := pki.Identity("gw.aid.test"), pki.Identity("alice.aid.test")
		a := newAuthority(t, aun.AuthorityConfig{Identity: own, Roots: pki.Roots()})
		service := func(nonce string) error {
			_, err := a.Login1(params(map[string]any{"aid": alice.AID, "cert": alice.CertPEM(), "client_nonce": nonce}))
			return err
		}
		server := func(nonce string) error {
			_, err := aun.NewPeerLogin(own, pki.Roots()).Hello(params(map[string]any{
				"aid": alice.AID, "cert": alice.CertPEM(), "nonce": nonce, "protocol": "1.0"}))
			return err
		}
		// A peer asking this end, its client, to sign a nonce.
		client := func(nonce string) error { return confirm(t, pki, nonce) }
		for name, c := range map[string]struct {
			nonce                   string
			service, server, client bool // whether it is signed
		}{
			"12 bytes in base64, as the SDKs send":  {"q83vEjRWeJCrze8S", true, true, true},
			"base64 with all of its letters":        {"+/+/qrvM3d7/ABEi==", true, true, true},
			"a UUID, as the texts show":             {"550e8400-e29b-41d4-a716-446655440000", true, true, true},
			"32 bytes in base64url":                 {"Drmhze6EPcv0fN_81Bj-nA_FVmAY1xFPQ0D7NnWyLqs", true, true, true},
			"hex":                                   {"00ff00ff00ff00ff00ff00ff00ff00ff", true, true, true},
			"nothing":                               {"", false, false, false},
			"only padding":                          {"==", false, false, false},
			"a token":                               {unsigned("alice.aid.test", "aun"), false, false, false},
			"a dot":                                 {"abc.def", false, false, false},
			"the second step of a login":            {"Drmhze6EPcv0fN:1795203089.876438", false, false, false},
			"a colon":                               {"abc:1795203089", false, false, false},
			"a line":                                {"abc\ndef", false, false, false},
			"a space":                               {"abc def", false, false, false},
			"other letters":                         {"né", false, false, false},
			"padding inside":                        {"ab=cd", false, false, false},
			"too long":                              {strings.Repeat("a", 129), false, false, false},
			"as long as can be":                     {strings.Repeat("a", 128), true, true, true},
			"what proves a client, to a service":    {"peer-" + aun.NewNonce(), false, false, true},
			"what proves a service, to a client":    {"service-" + aun.NewNonce(), true, true, false},
			"what another gateway asks its clients": {aun.NewNonce(), true, true, true},
		} {
			for place, got := range map[string]struct {
				err  error
				want bool
			}{
				"auth.aid_login1": {service(c.nonce), c.service}, "peer.hello": {server(c.nonce), c.server},
				"peer.confirm": {client(c.nonce), c.client},
			} {
				if (got.err == nil) != got.want {
					t.Errorf("%s: %s: %v", name, place, got.err)
				}
			}
		}
	})
}

// confirm logs in at a peer with a nonce, and returns an error if the client does not sign it.
func confirm(t *testing.T, pki *auntest.PKI, nonce string) error {
	t.Helper()
	bob := pki.Identity("bob.aid.test")
	near, far := auntest.Pipe(t)
	serve(t, far, handler{request: func(_ context.Context, r *aun.Request) {
		switch r.Method {
		case "peer.hello":
			signature, err := bob.Sign(r.Params.Get("nonce").String())
			if err != nil {
				t.Error(err)
			}
			_ = r.Reply(fmt.Appendf(nil, `{"aid":"bob.aid.test","cert":%q,"nonce":%q,"nonce_signature":%q}`,
				bob.CertPEM(), nonce, signature))
		default:
			_ = r.Reply([]byte(`{"status":"ok","protocol":"1.0"}`))
		}
	}}, aun.Limits{})
	c := serve(t, near, handler{}, aun.Limits{})
	_, err := aun.ConnectPeer(t.Context(), c, pki.Identity("alice.aid.test"), pki.Roots(), "bob.aid.test")
	return err
}

// TestNonceOfService: the client signs no other text of a service in place of a nonce.
func TestNonceOfService(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pki := auntest.NewPKI(t)
		own := pki.Identity("gw.aid.test")
		near, far := auntest.Pipe(t)
		serve(t, far, handler{request: func(_ context.Context, r *aun.Request) {
			if r.Method != "auth.aid_login1" {
				t.Errorf("the client goes on with %s", r.Method)
			}
			signature, err := own.Sign(r.Params.Get("client_nonce").String())
			if err != nil {
				t.Error(err)
			}
			_ = r.Reply(fmt.Appendf(nil, `{"auth_cert":%q,"nonce":%q,"client_nonce_signature":%q,"request_id":"r"}`,
				own.CertPEM(), unsigned("alice.aid.test", "aun"), signature))
		}}, aun.Limits{})
		c := serve(t, near, handler{}, aun.Limits{})
		_, err := aun.Login(t.Context(), c, pki.Identity("alice.aid.test"), pki.Roots(), nil)
		if err == nil || !strings.Contains(err.Error(), "nonce") {
			t.Errorf("a token was signed: %v", err)
		}
	})
}

// TestNobodyIsTheGateway: no login is one of the gateway's own AID, in any mode, by its certificate or by a token.
func TestNobodyIsTheGateway(t *testing.T) {
	pki := auntest.NewPKI(t)
	own := pki.Identity("gw.aid.test")
	other := newAuthority(t, aun.AuthorityConfig{Identity: pki.Identity("auth.aid.test"), Roots: pki.Roots()})
	a := newAuthority(t, aun.AuthorityConfig{Identity: own, Roots: pki.Roots()})
	hello := params(map[string]any{"aid": own.AID, "cert": own.CertPEM(), "client_nonce": "n", "nonce": "n"})
	if _, err := a.Login1(hello); code(err) != codes.AuthFailed {
		t.Errorf("by certificate: %v", err)
	}
	if _, err := a.Login2(params(login1(t, other, own))); code(err) != codes.AuthFailed {
		t.Errorf("the second step: %v", err)
	}
	if _, err := aun.NewPeerLogin(own, pki.Roots()).Hello(hello); code(err) != codes.AuthFailed {
		t.Errorf("in peer mode: %v", err)
	}
	key, err := own.TokenKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, audience := range []string{"aun", "aun-refresh"} {
		text := unsigned(string(own.AID), audience)
		signature, err := aun.Sign(key, text)
		if err != nil {
			t.Fatal(err)
		}
		token := withSignature(t, text, signature)
		_, err = a.Authenticate(params(map[string]any{"method": "kite_token", "token": token}))
		if code(err) != codes.AuthFailed {
			t.Errorf("by a token: %v", err)
		}
		result, _, err := a.Refresh(params(map[string]any{"refresh_token": token}))
		if err != nil || gjson.GetBytes(result, "success").Bool() {
			t.Errorf("by a refresh token: %s, %v", result, err)
		}
	}
}

// TestTokensOutliveTheProcess: the key of the tokens depends on nothing but the private key, and is another one.
func TestTokensOutliveTheProcess(t *testing.T) {
	pki := auntest.NewPKI(t)
	own := pki.Identity("gw.aid.test")
	before := newAuthority(t, aun.AuthorityConfig{Identity: own, Roots: pki.Roots()})
	result, err := before.Login2(params(login1(t, before, pki.Identity("alice.aid.test"))))
	if err != nil {
		t.Fatal(err)
	}
	token := gjson.GetBytes(result, "access_token").String()
	after := newAuthority(t, aun.AuthorityConfig{Identity: own, Roots: pki.Roots()})
	if _, err := after.Authenticate(params(map[string]any{"method": "kite_token", "token": token})); err != nil {
		t.Error(err)
	}
	key, err := own.TokenKey()
	if err != nil || key.Equal(own.Key) {
		t.Errorf("the key of the tokens is that of the AID, or there is none: %v", err)
	}
}
