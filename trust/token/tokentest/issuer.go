// SPDX-License-Identifier: Apache-2.0

// Package tokentest has an issuer of tokens for tests.
package tokentest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Issuer signs tokens with ES256, and publishes its key by plain http at a loopback address, until the test ends.
type Issuer struct {
	URL  string // it is the issuer, too, and has an OpenID configuration
	JWKS string // the URL of its keys

	signer jose.Signer
}

// Loopback are the networks of an Issuer.
var Loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// New returns an issuer.
func New(t testing.TB) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{signer: signer}
	mux := http.NewServeMux()
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(keys) })
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.JWKS)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.URL, i.JWKS = server.URL, server.URL+"/jwks"
	return i
}

// Sign returns a token with claims. The claim iss is added if there is none; a claim that is nil is left out.
func (i *Issuer) Sign(t testing.TB, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": i.URL}
	for name, value := range claims {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := i.signer.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Thumbprint returns x5t#S256 of a certificate (RFC 8705 §3.1).
func Thumbprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
