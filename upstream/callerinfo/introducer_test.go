// SPDX-License-Identifier: Apache-2.0

package callerinfo

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpguts"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"

func ec(t testing.TB) crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ed(t testing.TB) crypto.Signer {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func issuer(t testing.TB, keys ...crypto.Signer) *Issuer {
	t.Helper()
	i, err := NewIssuer("https://gateway.example", keys)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func request(leader, proof string) *upstream.Request {
	return &upstream.Request{Caller: agent.Caller{Leader: leader, Proof: proof},
		Ref: agent.Ref{Task: "task-1", Session: "session-1"}}
}

// verify reads a token as an agent with the issuer's set of keys does.
func verify(t *testing.T, i *Issuer, token string) (claims map[string]any) {
	t.Helper()
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(i.JWKS(), &set); err != nil {
		t.Fatal(err)
	}
	parsed, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256, jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := parsed.Verify(&set)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestSubject: if the Leader acts for somebody, this one is the subject, and the Leader is one of the actors.
func TestSubject(t *testing.T) {
	i := issuer(t, ec(t))
	r := request(aic, "certificate")
	r.Caller.Subject = "user:alice"
	fields := New(Config{Fields: true, Issuer: i, Actor: "agent:me"}).Introduce(r)
	claims := verify(t, i, fields[len(fields)-1].Value)
	want := map[string]any{"sub": "agent:me", "act": map[string]any{"sub": "agent:" + aic}}
	if diff := cmp.Diff(want, claims["act"]); diff != "" || claims["sub"] != "user:alice" || claims["leader"] != aic {
		t.Errorf("claims %v (-want +got):\n%s", claims, diff)
	}
	if !slices.Contains(fields, translate.Field{Name: SubjectField, Value: "user:alice"}) {
		t.Errorf("fields %v", fields)
	}
}

func TestFields(t *testing.T) {
	for _, tt := range []struct {
		leader, proof string
		want          string
	}{
		{aic, "certificate", aic},
		{"aid:alice.aid.pub", "token", "aid:alice.aid.pub"},
		{"jwt:https://a.example|bob ß", "token", "jwt:https://a.example|bob%20%C3%9F"},
		{"x\r\nAip-Proof: certificate", "", "unverified:x%0D%0AAip-Proof:%20certificate"},
		{"unverified:10.0.0.1", "", "unverified:10.0.0.1"},
		{"100%", "key", "100%25"},
	} {
		got := New(Config{Fields: true}).Introduce(request(tt.leader, tt.proof))
		want := []translate.Field{{Name: LeaderField, Value: tt.want}}
		if tt.proof != "" {
			want = append(want, translate.Field{Name: ProofField, Value: tt.proof})
		}
		want = append(want, translate.Field{Name: TaskField, Value: "task-1"},
			translate.Field{Name: SessionField, Value: "session-1"})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.leader, diff)
		}
	}
	if fields := New(Config{Fields: true}).Introduce(new(upstream.Request)); fields != nil {
		t.Errorf("a request for nobody has the fields %v", fields)
	}
}

// FuzzEscape: whatever a Leader calls itself, it stands in one field, and can be read back.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", aic, "a b", "%", "\x00\r\n", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := escape(s)
		back, err := url.PathUnescape(got)
		if !httpguts.ValidHeaderFieldValue(got) || strings.ContainsAny(got, " \t") || err != nil || back != s {
			t.Errorf("%q becomes %q, and that %q, %v", s, got, back, err)
		}
	})
}

func TestToken(t *testing.T) {
	for name, key := range map[string]crypto.Signer{"ES256": ec(t), "EdDSA": ed(t)} {
		for _, tt := range []struct {
			leader, proof, sub, as string
		}{
			{aic, "certificate", "agent:" + aic, aic},
			{"jwt:https://a.example|bob", "token", "jwt:https://a.example|bob", "jwt:https://a.example|bob"},
			{aic, "", "unverified:" + aic, "unverified:" + aic},
		} {
			bubble.Test(t, func(t *testing.T) {
				i := issuer(t, key, ec(t))
				x := New(Config{Issuer: i, Audience: "https://agent.example", Actor: "agent:me"})
				fields := x.Introduce(request(tt.leader, tt.proof))
				if len(fields) != 1 || fields[0].Name != TokenField {
					t.Fatalf("fields %v", fields)
				}
				now := float64(time.Now().Unix())
				want := map[string]any{"iss": "https://gateway.example", "sub": tt.sub, "act": map[string]any{"sub": "agent:me"},
					"aud": "https://agent.example", "iat": now, "exp": now + 60, "leader": tt.as, "task": "task-1",
					"session": "session-1"}
				if tt.proof != "" {
					want["proof"] = tt.proof
				}
				if diff := cmp.Diff(want, verify(t, i, fields[0].Value)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			})
		}
	}
}

// TestForm reads a token without a library of JSON Web Tokens.
func TestForm(t *testing.T) {
	for _, key := range []crypto.Signer{ec(t), ed(t)} {
		fields := New(Config{Issuer: issuer(t, key)}).Introduce(request(aic, "certificate"))
		parts := strings.Split(fields[0].Value, ".")
		if len(parts) != 3 {
			t.Fatalf("the token has %d parts", len(parts))
		}
		var decoded [3][]byte
		for i := range parts {
			var err error
			if decoded[i], err = base64.RawURLEncoding.DecodeString(parts[i]); err != nil {
				t.Fatal(err)
			}
		}
		var header struct{ Alg, Typ, Kid string }
		if err := json.Unmarshal(decoded[0], &header); err != nil || header.Typ != "JWT" || header.Kid == "" {
			t.Errorf("header %s, %v", decoded[0], err)
		}
		signed, signature := []byte(parts[0]+"."+parts[1]), decoded[2]
		good := len(signature) == 64
		switch public := key.Public().(type) {
		case *ecdsa.PublicKey:
			sum := sha256.Sum256(signed)
			r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
			good = good && header.Alg == "ES256" && ecdsa.Verify(public, sum[:], r, s)
		case ed25519.PublicKey:
			good = good && header.Alg == "EdDSA" && ed25519.Verify(public, signed, signature)
		}
		if !good {
			t.Errorf("%s: the signature is wrong", header.Alg)
		}
	}
}

// TestTokenIsUsedAgain: a token is sent for half of its life, about one task, one Leader and one proof.
func TestTokenIsUsedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x := New(Config{Issuer: issuer(t, ec(t)), TokenField: "Authorization"})
		token := func(r *upstream.Request) string {
			fields := x.Introduce(r)
			value, ok := strings.CutPrefix(fields[0].Value, "Bearer ")
			if !ok {
				t.Fatalf("fields %v", fields)
			}
			return value
		}
		first := token(request(aic, "certificate"))
		bubble.Pass(reuse - time.Nanosecond)
		if token(request(aic, "certificate")) != first {
			t.Error("another token within half of its life")
		}
		bubble.Pass(time.Nanosecond)
		second := token(request(aic, "certificate"))
		if second == first {
			t.Error("the same token after half of its life")
		}
		other := request(aic, "certificate")
		other.Ref.Task = "task-2"
		for _, r := range []*upstream.Request{request(aic, "token"), request("other", "certificate"), other} {
			if token(r) == second {
				t.Errorf("the same token for %+v", r)
			}
		}
	})
}

// TestRotation: a token of the next key is verified with the set of before, and the other way round.
func TestRotation(t *testing.T) {
	old, next := ec(t), ed(t)
	before, after := issuer(t, old, next), issuer(t, next, old)
	for _, from := range []*Issuer{before, after} {
		fields := New(Config{Issuer: from}).Introduce(request(aic, "certificate"))
		for _, by := range []*Issuer{before, after} {
			verify(t, by, fields[0].Value)
		}
	}
	if strings.Contains(string(before.JWKS()), `"d"`) {
		t.Error("the set has a private key")
	}
}

func TestKeys(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	in := func(kind string, key any) []byte {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if k, ok := key.(*ecdsa.PrivateKey); ok && kind == "EC PRIVATE KEY" {
			der, err = x509.MarshalECPrivateKey(k)
		}
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	for name, tt := range map[string]struct {
		pem  []byte
		good bool
	}{
		"P-256": {in("PRIVATE KEY", ec(t)), true}, "Ed25519": {in("PRIVATE KEY", ed(t)), true},
		"as openssl ecparam writes it": {append([]byte("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n"+
			"-----END EC PARAMETERS-----\n"), in("EC PRIVATE KEY", ec(t))...), true},
		"several":                {append(in("PRIVATE KEY", ec(t)), in("PRIVATE KEY", ed(t))...), true},
		"one of several is none": {append(in("PRIVATE KEY", ec(t)), in("PRIVATE KEY", weak)...), false},
		"RSA":                    {in("PRIVATE KEY", weak), false}, "P-384": {in("PRIVATE KEY", p384), false},
		"nothing": {nil, false}, "no PEM": {[]byte("x"), false},
		"garbage": {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), false},
	} {
		keys, err := ParseKeys(tt.pem)
		if err == nil {
			_, err = NewIssuer("x", keys)
		}
		if (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	key := ec(t)
	if _, err := NewIssuer("x", []crypto.Signer{key, key}); err == nil {
		t.Error("one key was taken twice")
	}
	if _, err := NewIssuer("", []crypto.Signer{key}); err == nil {
		t.Error("an issuer without a name")
	}
	if _, err := NewIssuer("x", nil); err == nil {
		t.Error("an issuer without a key")
	}
}

// BenchmarkIntroduce measures the cost of a request with a new token, and of one with a token used again.
func BenchmarkIntroduce(b *testing.B) {
	for _, key := range []crypto.Signer{ec(b), ed(b)} {
		x := New(Config{Fields: true, Issuer: issuer(b, key)})
		name := "ES256"
		if _, ok := key.(ed25519.PrivateKey); ok {
			name = "EdDSA"
		}
		b.Run(name+"/new", func(b *testing.B) {
			r := request(aic, "certificate")
			for n := 0; b.Loop(); n++ {
				r.Ref.Task = strconv.Itoa(n)
				x.Introduce(r)
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			r := request(aic, "certificate")
			for b.Loop() {
				x.Introduce(r)
			}
		})
	}
}
