// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// code returns the code of an *aun.Error.
func code(err error) int64 {
	if e, ok := errors.AsType[*aun.Error](err); ok {
		return e.Code
	}
	return 0
}

func params(v map[string]any) gjson.Result {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return gjson.ParseBytes(text)
}

func newAuthority(t *testing.T, config aun.AuthorityConfig) *aun.Authority {
	t.Helper()
	a, err := aun.NewAuthority(config)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// gateway is a Handler that serves the pre-login calls and auth.connect, as a gateway does.
func gateway(a *aun.Authority, nonce string) handler {
	return handler{request: func(_ context.Context, r *aun.Request) {
		var result []byte
		var err error
		switch r.Method {
		case "auth.aid_login1":
			result, err = a.Login1(r.Params)
		case "auth.aid_login2":
			result, err = a.Login2(r.Params)
		case "auth.refresh_token":
			result, _, err = a.Refresh(r.Params)
		case "auth.connect":
			var proof aun.Proof
			if proof, err = a.Authenticate(r.Params.Get("auth")); err == nil && r.Params.Get("nonce").String() == nonce {
				result = []byte(`{"status":"ok","identity":{"aid":"` + string(proof.AID) +
					`"},"capabilities":{"namespaces":["task","message"]},"heartbeat_interval":20}`)
			}
		default:
			err = aun.Errorf(codes.NotInitialized, "no login")
		}
		if err != nil {
			r.Fail(err)
			return
		}
		_ = r.Reply(result)
	}}
}

func TestLogin(t *testing.T) {
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384()} {
		t.Run(curve.Params().Name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				pki := auntest.NewPKI(t)
				year := 365 * 24 * time.Hour
				a := newAuthority(t, aun.AuthorityConfig{Identity: pki.IdentityFor("gw.aid.test", curve, year), Roots: pki.Roots()})
				id := pki.IdentityFor("alice.aid.test", curve, year)
				near, far := auntest.Pipe(t)
				serve(t, far, gateway(a, "the nonce"), aun.Limits{})
				c := serve(t, near, handler{}, aun.Limits{})

				tokens, err := aun.Login(t.Context(), c, id, pki.Roots(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if left := time.Until(tokens.Expires); left != time.Hour {
					t.Errorf("the token expires in %v", left)
				}
				hello, err := aun.Connect(t.Context(), c, "the nonce", tokens, "device", "")
				if err != nil || !hello.Has("task") || hello.Has("search") || hello.Heartbeat != 20*time.Second {
					t.Errorf("hello %+v, %v", hello, err)
				}
				bubble.Pass(time.Hour + time.Minute + time.Second) // clocks may differ by a minute
				if _, err := aun.Connect(t.Context(), c, "the nonce", tokens, "device", ""); code(err) != codes.TokenExpired {
					t.Errorf("an expired token: %v", err)
				}
				again, err := aun.Refresh(t.Context(), c, id, tokens)
				if err != nil || again.Access == tokens.Access {
					t.Fatal(err)
				}
				if _, err := aun.Connect(t.Context(), c, "the nonce", again, "device", ""); err != nil {
					t.Error(err)
				}
				again.Refresh = again.Access
				if _, err := aun.Refresh(t.Context(), c, id, again); err == nil {
					t.Error("an access token was taken for a refresh token")
				}
				again.Access = tokens.Refresh
				if _, err := aun.Connect(t.Context(), c, "the nonce", again, "device", ""); code(err) != codes.AuthFailed {
					t.Errorf("a refresh token as an access token: %v", err)
				}
			})
		})
	}
}

// TestLoginRefusesForeignServices: the client refuses an authentication service unable to prove itself.
func TestLoginRefusesForeignServices(t *testing.T) {
	for name, want := range map[string]int64{
		"certificate": codes.CertificateInvalid, "signature": codes.SignatureInvalid,
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				pki, other := auntest.NewPKI(t), auntest.NewPKI(t)
				service := other.Identity("gw.aid.test")
				if name == "signature" {
					service.Chain = pki.Identity("gw.aid.test").Chain
				}
				near, far := auntest.Pipe(t)
				a := newAuthority(t, aun.AuthorityConfig{Identity: service, Roots: pki.Roots()})
				serve(t, far, gateway(a, ""), aun.Limits{})
				c := serve(t, near, handler{}, aun.Limits{})
				if _, err := aun.Login(t.Context(), c, pki.Identity("alice.aid.test"), pki.Roots(), nil); code(err) != want {
					t.Error(err)
				}
			})
		})
	}
}

// login1 returns the params of the second step, with a right signature.
func login1(t *testing.T, a *aun.Authority, id *aun.Identity) map[string]any {
	t.Helper()
	result, err := a.Login1(params(map[string]any{"aid": id.AID, "cert": id.CertPEM(), "client_nonce": "n"}))
	if err != nil {
		t.Fatal(err)
	}
	got := gjson.ParseBytes(result)
	nonce := got.Get("nonce").String()
	signature, err := id.Sign(nonce + ":1795203089.876438")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"aid": id.AID, "request_id": got.Get("request_id").String(), "nonce": nonce,
		"client_time": "1795203089.876438", "signature": signature}
}

// TestLoginOfAnother: each step of a login may be taken at another process of the same AID, and the second one once.
func TestLoginOfAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pki, other := auntest.NewPKI(t), auntest.NewPKI(t)
		id := pki.Identity("gw.aid.test")
		first := newAuthority(t, aun.AuthorityConfig{Identity: id, Roots: pki.Roots()})
		second := newAuthority(t, aun.AuthorityConfig{Identity: id, Roots: pki.Roots()})
		stern := newAuthority(t, aun.AuthorityConfig{Identity: id, Roots: other.Roots()})
		second.Share(first.Take)
		stern.Share(first.Take)
		alice := pki.Identity("alice.aid.test")
		good := login1(t, first, alice)
		if result, err := second.Login2(params(good)); err != nil || !gjson.GetBytes(result, "access_token").Exists() {
			t.Errorf("the second step at another process: %s, %v", result, err)
		}
		for i, a := range []*aun.Authority{first, second} {
			if _, err := a.Login2(params(good)); code(err) != codes.CertificateInvalid {
				t.Errorf("once more at authority %d: %v", i, err)
			}
		}
		for _, change := range []string{"request_id", "aid", "nonce"} {
			bad := maps.Clone(login1(t, first, alice))
			bad[change] = "bob.aid.test"
			if _, err := second.Login2(params(bad)); code(err) != codes.CertificateInvalid {
				t.Errorf("another %s: %v", change, err)
			}
		}
		if _, err := stern.Login2(params(login1(t, first, alice))); code(err) != codes.CertificateInvalid {
			t.Errorf("by roots of which the certificate is not: %v", err)
		}
		late := login1(t, first, alice)
		bubble.Pass(2 * time.Minute)
		if _, err := second.Login2(params(late)); code(err) != codes.CertificateInvalid {
			t.Errorf("too late: %v", err)
		}
	})
}

func TestAuthorityRefuses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pki, other := auntest.NewPKI(t), auntest.NewPKI(t)
		a := newAuthority(t, aun.AuthorityConfig{Identity: pki.Identity("gw.aid.test"), Roots: pki.Roots()})
		alice := pki.Identity("alice.aid.test")

		for name, id := range map[string]*aun.Identity{
			"a foreign root":         other.Identity("alice.aid.test"),
			"another's certificate":  pki.Identity("bob.aid.test"),
			"an expired certificate": pki.IdentityFor("alice.aid.test", elliptic.P256(), -time.Minute),
			"a key of P-521":         pki.IdentityFor("alice.aid.test", elliptic.P521(), time.Hour),
		} {
			p := params(map[string]any{"aid": "alice.aid.test", "cert": id.CertPEM(), "client_nonce": "n"})
			if _, err := a.Login1(p); code(err) != codes.CertificateInvalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		p := params(map[string]any{"aid": "alice", "cert": alice.CertPEM(), "client_nonce": "n"})
		if _, err := a.Login1(p); code(err) != codes.InvalidParams {
			t.Errorf("an invalid AID: %v", err)
		}

		good := login1(t, a, alice)
		if _, err := a.Login2(params(good)); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Login2(params(good)); code(err) != codes.CertificateInvalid {
			t.Errorf("a nonce used twice: %v", err)
		}
		for name, change := range map[string]struct {
			member string
			value  any
			want   int64
		}{
			"another time":      {"client_time", "1795203089.87643", codes.SignatureInvalid},
			"another signature": {"signature", "AAAA", codes.SignatureInvalid},
			"another nonce":     {"nonce", "x", codes.CertificateInvalid},
			"another request":   {"request_id", "x", codes.CertificateInvalid},
			"another AID":       {"aid", "bob.aid.test", codes.CertificateInvalid},
		} {
			bad := maps.Clone(login1(t, a, alice))
			bad[change.member] = change.value
			if _, err := a.Login2(params(bad)); code(err) != change.want {
				t.Errorf("%s: %v", name, err)
			}
		}

		late := login1(t, a, alice)
		bubble.Pass(time.Minute + time.Second)
		if _, err := a.Login2(params(late)); code(err) != codes.CertificateInvalid {
			t.Errorf("an expired nonce: %v", err)
		}
	})
}

// TestUnprovenLoginsLockNobodyOut: logins begun with the public certificate of another client keep no client from
// logging in, not even with the same request_id. Their number is bounded all the same.
func TestUnprovenLoginsLockNobodyOut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pki := auntest.NewPKI(t)
		a := newAuthority(t, aun.AuthorityConfig{Identity: pki.Identity("gw.aid.test"), Roots: pki.Roots()})
		alice := pki.Identity("alice.aid.test")
		stranger := params(map[string]any{"aid": alice.AID, "cert": alice.CertPEM(), "client_nonce": "n", "request_id": "r"})
		first := login1(t, a, alice)
		for range 100 {
			if _, err := a.Login1(stranger); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Login2(params(first)); err != nil {
			t.Errorf("a login that began before: %v", err)
		}
		if _, err := a.Login2(params(login1(t, a, alice))); err != nil {
			t.Errorf("a login after them: %v", err)
		}
	})
}

// TestForeignTokens: a token of another issuer is for an AID of the same issuer, and signed with a key of the same
// issuer.
func TestForeignTokens(t *testing.T) {
	pki := auntest.NewPKI(t)
	other, third := pki.Identity("auth.other.test"), pki.Identity("auth.third.test")
	ours := newAuthority(t, aun.AuthorityConfig{Identity: pki.Identity("gw.aid.test"), Roots: pki.Roots(),
		ForeignKeys: map[string][]*ecdsa.PublicKey{
			"other.test": {&third.Key.PublicKey, &other.Key.PublicKey}, "third.test": {&third.Key.PublicKey}}})
	for name, c := range map[string]struct {
		signer      *aun.Identity
		issuer, aid string
		audience    string
		want        int64
	}{
		"of its issuer":                   {other, "other.test", "bob.other.test", "aun", 0},
		"of another key of its issuer":    {third, "other.test", "bob.other.test", "aun", 0},
		"of the gateway's issuer":         {other, "aid.test", "alice.aid.test", "aun", codes.AuthFailed},
		"for an AID of the gateway's":     {other, "other.test", "alice.aid.test", "aun", codes.AuthFailed},
		"for the gateway's, by no name":   {other, "aid.test", "bob.other.test", "aun", codes.AuthFailed},
		"of a third issuer":               {other, "third.test", "eve.third.test", "aun", codes.AuthFailed},
		"for an AID of a third issuer":    {other, "other.test", "eve.third.test", "aun", codes.AuthFailed},
		"of an issuer without a key":      {other, "fourth.test", "eve.fourth.test", "aun", codes.AuthFailed},
		"of no audience of ours":          {other, "other.test", "bob.other.test", "else", codes.AuthFailed},
		"a refresh token as access token": {other, "other.test", "bob.other.test", "aun-refresh", codes.AuthFailed},
	} {
		token, err := aunpeer.JWT(c.signer.Key, c.issuer, c.aid, map[string]any{"aud": c.audience})
		if err != nil {
			t.Fatal(err)
		}
		proof, err := ours.Authenticate(params(map[string]any{"method": "kite_token", "token": token}))
		if code(err) != c.want || c.want == 0 && proof.AID != aun.AID(c.aid) {
			t.Errorf("%s: %v, %v", name, proof, err)
		}
		if result, _, err := ours.Refresh(params(map[string]any{"refresh_token": token})); err != nil ||
			gjson.GetBytes(result, "success").Bool() {
			t.Errorf("%s: it is refreshed: %s, %v", name, result, err)
		}
	}
	if _, err := ours.Authenticate(params(map[string]any{"method": "pairing_code"})); code(err) != codes.AuthFailed {
		t.Error(err)
	}
	proof, err := ours.Authenticate(params(withMethod(login1(t, ours, pki.Identity("bob.aid.test")))))
	if err != nil || proof.AID != "bob.aid.test" {
		t.Errorf("by AID: %v, %v", proof, err)
	}
}

func withMethod(p map[string]any) map[string]any {
	p["method"] = "aid"
	return p
}

func TestRevoked(t *testing.T) {
	pki := auntest.NewPKI(t)
	roots, alice := pki.Roots(), pki.Identity("alice.aid.test")
	if _, err := roots.Verify("alice.aid.test", alice.Chain[:1]); err != nil {
		t.Fatal(err)
	}
	if err := roots.Revoke(auntest.NewPKI(t).Revoke(alice)); err == nil {
		t.Error("a list of another issuer was accepted")
	}
	if err := roots.Revoke(pki.Revoke(alice)); err != nil {
		t.Fatal(err)
	}
	_, err := roots.Verify("alice.aid.test", alice.Chain[:1])
	if code(err) != codes.CertificateInvalid || !strings.Contains(err.Error(), "revoked") {
		t.Error(err)
	}
}

// TestRevokedBySeveralLists has two roots with a list each, in one file and in two: both lists count.
//
// Promise: a Leader whose certificate was revoked goes on
func TestRevokedBySeveralLists(t *testing.T) {
	one, two := auntest.NewPKI(t), auntest.NewPKI(t)
	alice, bob := one.Identity("alice.aid.test"), two.Identity("bob.aid.test")
	first := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: one.Revoke(alice)})
	second := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: two.Revoke(bob)})
	both := slices.Concat([]byte("text\n"), bytes.TrimSpace(first), second)
	for name, files := range map[string][][]byte{"one file": {both}, "two files": {first, two.Revoke(bob)}} {
		roots, err := aun.NewRoots(slices.Concat(one.RootsPEM(), []byte("\n"), two.RootsPEM()))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := roots.Revoke(file); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []*aun.Identity{alice, bob} {
			if _, err := roots.Verify(id.AID, id.Chain); err == nil || !strings.Contains(err.Error(), "revoked") {
				t.Errorf("%s: %s: %v", name, id.AID, err)
			}
		}
		if got := strings.Count(string(roots.Lists(alice)), "BEGIN X509 CRL"); got != 2 {
			t.Errorf("%s: %d lists are shown", name, got)
		}
	}
	for name, list := range map[string][]byte{
		"of another issuer": slices.Concat(first, second), "damaged": slices.Concat(first, second[:len(second)-20]),
	} {
		roots := one.Roots()
		if err := roots.Revoke(list); err == nil {
			t.Errorf("a second list that is %s was accepted", name)
		}
		if _, err := roots.Verify(alice.AID, alice.Chain); err != nil {
			t.Errorf("%s: the first list is in use: %v", name, err)
		}
	}
}

func TestPeerLogin(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pki := auntest.NewPKI(t)
		alice, bob := pki.Identity("alice.aid.test"), pki.Identity("bob.aid.test")
		near, far := auntest.Pipe(t)
		login := aun.NewPeerLogin(bob, pki.Roots())
		confirmed := make(chan aun.Proof, 1)
		serve(t, far, handler{request: func(_ context.Context, r *aun.Request) {
			var result []byte
			var err error
			switch r.Method {
			case "initialize":
				result, err = login.Initialize(r.Params)
			case "peer.hello":
				result, err = login.Hello(r.Params)
			case "peer.confirm":
				var proof aun.Proof
				if result, proof, err = login.Confirm(r.Params); err == nil {
					confirmed <- proof
				}
			}
			if err != nil {
				r.Fail(err)
				return
			}
			_ = r.Reply(result)
		}}, aun.Limits{})
		c := serve(t, near, handler{}, aun.Limits{})
		proof, err := aun.ConnectPeer(t.Context(), c, alice, pki.Roots(), "bob.aid.test")
		if err != nil || proof.AID != "bob.aid.test" {
			t.Fatal(proof, err)
		}
		if p := <-confirmed; p.AID != "alice.aid.test" {
			t.Errorf("the server knows %v", p)
		}
		if _, _, err := login.Confirm(params(nil)); code(err) != codes.CertificateInvalid {
			t.Errorf("a nonce used twice: %v", err)
		}
		_, err = aun.ConnectPeer(t.Context(), c, alice, pki.Roots(), "carol.aid.test")
		if code(err) != codes.CertificateInvalid {
			t.Errorf("another peer than wanted: %v", err)
		}
	})
}

func TestIdentityFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id.pem")
	id, err := aun.NewIdentity("alice.aid.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Save(path, false); err != nil {
		t.Fatal(err)
	}
	if err := id.Save(path, false); err == nil {
		t.Error("a file was replaced")
	}
	back, err := aun.LoadIdentity(path)
	if err != nil || back.AID != "alice.aid.test" || !back.Key.Equal(id.Key) || len(back.Chain) != 0 {
		t.Fatalf("%+v, %v", back, err)
	}
	full := auntest.NewPKI(t).IdentityFor("bob.aid.test", elliptic.P384(), time.Hour)
	if err := full.Save(path, true); err != nil {
		t.Fatal(err)
	}
	back, err = aun.LoadIdentity(path)
	if err != nil || back.AID != "bob.aid.test" || back.CertPEM() != full.CertPEM() || back.Curve() != "P-384" {
		t.Fatalf("%+v, %v", back, err)
	}
}

func TestParseAID(t *testing.T) {
	for text, want := range map[string]aun.AID{"alice.aid.pub": "alice.aid.pub", "Alice.AID.pub": "alice.aid.pub",
		"a_b-1.x": "a_b-1.x", "alice": "", "": "", ".pub": "", "a..b": "", "a b.c": "", "é.pub": "",
		strings.Repeat("a", 64) + ".pub": "", "a/b.pub": ""} {
		got, err := aun.ParseAID(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if got := aun.AID("alice.aid.pub").Issuer(); got != "aid.pub" {
		t.Error(got)
	}
}
