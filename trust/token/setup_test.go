// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	testIssuer   = "https://sts.example.com"
	testAudience = "acps:agent:10001000011K912345E789ABCDEF2353"
)

// signer is a private key of an issuer.
type signer struct {
	id        string
	algorithm jose.SignatureAlgorithm
	key       crypto.Signer
}

// public returns the key as it is published.
func (s *signer) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.key.Public(), KeyID: s.id, Use: "sig"}
}

// testKeys are keys that are made once: RSA takes long.
var testKeys = sync.OnceValue(func() map[string]*signer {
	must := func(key crypto.Signer, err error) crypto.Signer {
		if err != nil {
			panic(err)
		}
		return key
	}
	r := must(rsa.GenerateKey(rand.Reader, 2048))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	return map[string]*signer{
		"RS256": {"rsa", jose.RS256, r},
		"PS256": {"rsa", jose.PS256, r},
		"ES256": {"ec", jose.ES256, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))},
		"EdDSA": {"ed", jose.EdDSA, must(ed, err)},
		"other": {"other", jose.ES256, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))},
	}
})

// jwks returns keys as an issuer publishes them.
func jwks(t testing.TB, keys ...*signer) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, k.public())
	}
	body, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

type members = map[string]any

// claims returns the claims of a good token, with changes; nil takes a claim out.
func claims(changes members) members {
	c := members{"iss": testIssuer, "sub": "user-123", "aud": testAudience, "exp": time.Now().Add(time.Hour).Unix(),
		"iat": time.Now().Unix(), "jti": "j1", "scope": "a b"}
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// sign returns a token with claims and a header, in which nil takes a member out.
func (s *signer) sign(t testing.TB, c, header members) string {
	t.Helper()
	body, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.signBytes(t, body, header)
}

func (s *signer) signBytes(t testing.TB, body []byte, header members) string {
	t.Helper()
	h := members{"alg": string(s.algorithm), "kid": s.id}
	maps.Copy(h, header)
	maps.DeleteFunc(h, func(_ string, v any) bool { return v == nil })
	head, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	input := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	return input + "." + base64.RawURLEncoding.EncodeToString(s.signature(t, []byte(input)))
}

// signature signs the input of a signature (RFC 7515 §5.1), whatever it is.
func (s *signer) signature(t testing.TB, input []byte) []byte {
	t.Helper()
	sum := crypto.SHA256.New()
	sum.Write(input)
	digest := sum.Sum(nil)
	var out []byte
	var err error
	switch key := s.key.(type) {
	case *ecdsa.PrivateKey:
		r, v, err2 := ecdsa.Sign(rand.Reader, key, digest)
		out, err = make([]byte, 64), err2
		if err == nil {
			r.FillBytes(out[:32])
			v.FillBytes(out[32:])
		}
	case ed25519.PrivateKey:
		out = ed25519.Sign(key, input)
	case *rsa.PrivateKey:
		var options crypto.SignerOpts = crypto.SHA256
		if s.algorithm == jose.PS256 {
			options = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
		}
		out, err = key.Sign(rand.Reader, digest, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// newVerifier returns a verifier with the keys of an issuer, which load returns.
func newVerifier(t testing.TB, c Config, load func(context.Context) (*keySet, error)) *Verifier {
	t.Helper()
	c.Issuer, c.JWKS, c.Audiences = testIssuer, "https://sts.example.com/jwks", []string{testAudience}
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	v.keys.load = load
	return v
}

// with returns a function that loads keys.
func with(t testing.TB, keys ...*signer) func(context.Context) (*keySet, error) {
	body := jwks(t, keys...)
	return func(context.Context) (*keySet, error) { return readKeys(body) }
}

// reasonOf returns why a token is refused; empty for no error.
func reasonOf(t testing.TB, err error) Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("the error is %v, without a reason", err)
	}
	return e.Reason
}
