// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

func TestVerify(t *testing.T) {
	keys := testKeys()
	v := newVerifier(t, Config{}, with(t, keys["RS256"], keys["ES256"], keys["EdDSA"]))
	for _, algorithm := range Algorithms {
		c := claims(members{"scp": []string{"c"}, "aud": []string{"x", testAudience}, "nested": members{"a": 1}})
		token := keys[algorithm].sign(t, c, members{"typ": "at+jwt"})
		for range 2 { // the second time it is remembered
			got, err := v.Verify(t.Context(), token)
			if err != nil {
				t.Fatalf("%s: %v", algorithm, err)
			}
			want := &identity.Claims{Issuer: testIssuer, Subject: "user-123", Audience: []string{"x", testAudience},
				ID: "j1", Scopes: got.Scopes, Issued: time.Unix(c["iat"].(int64), 0),
				Expires: time.Unix(c["exp"].(int64), 0).Add(DefaultLeeway), JSON: got.JSON}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", algorithm, diff)
			}
			if len(got.Scopes) != 3 || !strings.Contains(got.JSON, `"nested":{"a":1}`) {
				t.Errorf("%s: scopes %q, claims %s", algorithm, got.Scopes, got.JSON)
			}
		}
	}
}

// TestRefused has a token for each way in which one may be wrong.
func TestRefused(t *testing.T) {
	keys := testKeys()
	ec, rs := keys["ES256"], keys["RS256"]
	now := time.Now()
	sign := func(changes, header members) string { return ec.sign(t, claims(changes), header) }
	encode := base64.RawURLEncoding.EncodeToString
	good := sign(nil, nil)
	header, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")

	// A token with HS256 whose secret is the public key of the issuer, in the forms in which libraries were given it.
	der, err := x509.MarshalPKIXPublicKey(rs.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	confused := func(secret []byte) string {
		input := encode([]byte(`{"alg":"HS256","kid":"rsa"}`)) + "." + payload
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(input))
		return input + "." + encode(mac.Sum(nil))
	}
	raw := func(body string) string { return ec.signBytes(t, []byte(body), nil) }

	for _, tt := range []struct {
		name, token string
		want        Reason
	}{
		{"good", good, ""},
		{"not a token", "hello", Malformed},
		{"empty", "", Malformed},
		{"two parts", header + "." + payload, Malformed},
		{"four parts", good + ".x", Malformed},
		{"JSON serialization", `{"payload":"` + payload + `","protected":"` + header + `","signature":"` + signature + `"}`,
			Malformed},
		{"too long", good + strings.Repeat("A", MaxSize), Malformed},
		{"no base64url", header + "." + payload + "=." + signature, Malformed},
		{"bits behind the end", header + "." + encode([]byte(`{}`))[:2] + "B." + signature, Malformed},
		{"alg none", encode([]byte(`{"alg":"none"}`)) + "." + payload + ".", Malformed},
		{"alg none with a signature", encode([]byte(`{"alg":"none"}`)) + "." + payload + ".AAAA", Algorithm},
		{"alg None", encode([]byte(`{"alg":"nOnE","kid":"ec"}`)) + "." + payload + "." + signature, Algorithm},
		{"alg missing", sign(nil, members{"alg": nil}), Malformed},
		{"alg a number", sign(nil, members{"alg": 1}), Malformed},
		{"the public key as a secret, PEM", confused(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
			Algorithm},
		{"the public key as a secret, DER", confused(der), Algorithm},
		{"ES512", sign(nil, members{"alg": "ES512"}), Algorithm},
		{"RS256 with the key of ES256", sign(nil, members{"alg": "RS256"}), UnknownKey},
		{"RS256 named PS256", rs.sign(t, claims(nil), members{"alg": "PS256"}), Signature},
		{"another key under the same id", keys["other"].sign(t, claims(nil), members{"kid": "ec"}), Signature},
		{"an unknown key", keys["other"].sign(t, claims(nil), nil), UnknownKey},
		{"kid a path", sign(nil, members{"kid": "../../etc/passwd"}), UnknownKey},
		{"kid too long", sign(nil, members{"kid": strings.Repeat("k", 257)}), Malformed},
		{"kid a number", sign(nil, members{"kid": 7}), Malformed},
		{"its own key in the header", keys["other"].sign(t, claims(nil), members{"kid": "ec", "jwk": keys["other"].public()}),
			Signature},
		{"a key by URL in the header", keys["other"].sign(t, claims(nil), members{"kid": "ec", "jku": "https://a.example/"}),
			Signature},
		{"no kid, one key for the algorithm", sign(nil, members{"kid": nil}), ""},
		{"crit", sign(nil, members{"crit": []string{"x"}, "x": true}), Malformed},
		{"crit empty", sign(nil, members{"crit": []string{}}), Malformed},
		{"crit b64", sign(nil, members{"crit": []string{"b64"}, "b64": false}), Malformed},
		{"typ of a logout token", sign(nil, members{"typ": "logout+jwt"}), Malformed},
		{"typ JWT", sign(nil, members{"typ": "jwt"}), ""},
		{"typ of an access token", sign(nil, members{"typ": "application/at+jwt"}), ""},
		{"a member twice in the header", encode([]byte(`{"alg":"ES256","kid":"ec","alg":"ES256"}`)) + "." + payload + "." +
			signature, Malformed},
		{"a claim twice", raw(`{"iss":"` + testIssuer + `","iss":"x"}`), Malformed},
		{"a claim twice, escaped", raw(`{"iss":"` + testIssuer + `","i\u0073s":"x"}`), Malformed},
		{"a claim twice inside", raw(`{"a":{"b":1,"b":2}}`), Malformed},
		{"claims no object", raw(`[1]`), Malformed},
		{"claims no UTF-8", raw("{\"sub\":\"\xff\"}"), Malformed},
		{"claims too deep", raw(strings.Repeat(`{"act":`, 40) + "1" + strings.Repeat("}", 40)), Malformed},
		{"iss missing", sign(members{"iss": nil}, nil), Issuer},
		{"iss of another", sign(members{"iss": testIssuer + "/"}, nil), Issuer},
		{"iss in upper case", sign(members{"iss": strings.ToUpper(testIssuer)}, nil), Issuer},
		{"iss an array", sign(members{"iss": []string{testIssuer}}, nil), Malformed},
		{"aud missing", sign(members{"aud": nil}, nil), Audience},
		{"aud of another", sign(members{"aud": "acps:agent:other"}, nil), Audience},
		{"aud longer", sign(members{"aud": testAudience + "X"}, nil), Audience},
		{"aud empty", sign(members{"aud": []string{}}, nil), Audience},
		{"aud a number", sign(members{"aud": 1}, nil), Malformed},
		{"exp missing", sign(members{"exp": nil}, nil), Malformed},
		{"exp null", raw(`{"exp":null}`), Malformed},
		{"exp a string", sign(members{"exp": "9999999999"}, nil), Malformed},
		{"exp without end", raw(`{"exp":1e300}`), Malformed},
		{"exp negative", sign(members{"exp": -1}, nil), Malformed},
		{"exp past", sign(members{"exp": now.Add(-61 * time.Second).Unix()}, nil), Expired},
		{"exp past within the leeway", sign(members{"exp": now.Add(-30 * time.Second).Unix()}, nil), ""},
		{"nbf to come", sign(members{"nbf": now.Add(90 * time.Second).Unix()}, nil), NotYetValid},
		{"nbf to come within the leeway", sign(members{"nbf": now.Add(30 * time.Second).Unix()}, nil), ""},
		{"iat to come", sign(members{"iat": now.Add(time.Hour).Unix()}, nil), NotYetValid},
		{"sub too long", sign(members{"sub": strings.Repeat("s", 256)}, nil), Malformed},
		{"sub as long as it may be", sign(members{"sub": strings.Repeat("s", 255)}, nil), ""},
		{"sub with a control character", sign(members{"sub": "a\nb"}, nil), Malformed},
		{"sub with a control character of Latin-1", sign(members{"sub": "a\u0085b"}, nil), Malformed},
		{"sub empty", sign(members{"sub": ""}, nil), Malformed},
		{"sub missing", sign(members{"sub": nil}, nil), ""},
		{"too many scopes", sign(members{"scope": strings.Repeat("s ", maxScopes+1)}, nil), Malformed},
		{"another payload under the signature", header + "." + encode([]byte(`{"iss":"`+testIssuer+`","aud":"`+testAudience+
			`","exp":9999999999}`)) + "." + signature, Signature},
	} {
		v := newVerifier(t, Config{}, with(t, ec, rs, keys["EdDSA"]))
		for range 2 {
			claims, err := v.Verify(t.Context(), tt.token)
			if got := reasonOf(t, err); got != tt.want {
				t.Errorf("%s: refused with %q (%v), want %q", tt.name, got, err, tt.want)
			}
			if err != nil && claims != nil {
				t.Errorf("%s: claims beside the error", tt.name)
			}
			if err != nil && tt.token != "" && (strings.Contains(err.Error(), signature) ||
				strings.Contains(err.Error(), payload)) {
				t.Errorf("%s: the error holds the token: %v", tt.name, err)
			}
		}
	}
}

// TestAllowedAlgorithms: an algorithm that the configuration does not name is refused, though there is a key for it.
func TestAllowedAlgorithms(t *testing.T) {
	keys := testKeys()
	v := newVerifier(t, Config{Algorithms: []string{"PS256"}}, with(t, keys["RS256"]))
	for algorithm, want := range map[string]Reason{"PS256": "", "RS256": Algorithm} {
		_, err := v.Verify(t.Context(), keys[algorithm].sign(t, claims(nil), nil))
		if got := reasonOf(t, err); got != want {
			t.Errorf("%s is refused with %q, want %q", algorithm, got, want)
		}
	}
}

// TestTimes verifies one token while time passes: it is remembered, and yet it expires.
func TestTimes(t *testing.T) {
	ec := testKeys()["ES256"]
	for _, tt := range []struct{ leeway, is time.Duration }{
		{0, time.Minute}, {-1, 0}, {5 * time.Second, 5 * time.Second},
	} {
		bubble.Test(t, func(t *testing.T) {
			v := newVerifier(t, Config{Leeway: tt.leeway}, with(t, ec))
			begun := time.Now()
			token := ec.sign(t, claims(members{"nbf": begun.Add(5 * time.Minute).Unix(),
				"exp": begun.Add(time.Hour).Unix(), "iat": begun.Unix()}), nil)
			for _, at := range []struct {
				time time.Duration
				want Reason
			}{
				{0, NotYetValid},
				{5*time.Minute - tt.is - time.Nanosecond, NotYetValid},
				{5*time.Minute - tt.is, ""},
				{time.Hour + tt.is - time.Nanosecond, ""},
				{time.Hour + tt.is, Expired},
			} {
				bubble.Pass(time.Until(begun.Add(at.time)))
				c, err := v.Verify(t.Context(), token)
				if got := reasonOf(t, err); got != at.want {
					t.Errorf("leeway %s, after %s: refused with %q, want %q", tt.is, at.time, got, at.want)
				}
				if err == nil && !c.Expires.Equal(begun.Add(time.Hour+tt.is)) {
					t.Errorf("leeway %s: it expires at %s", tt.is, c.Expires)
				}
			}
		})
	}
}

func TestConfig(t *testing.T) {
	good := func() Config {
		return Config{Issuer: testIssuer, JWKS: "https://sts.example.com/jwks", Audiences: []string{"a"}}
	}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"good", func(*Config) {}, ""},
		{"no issuer", func(c *Config) { c.Issuer = "" }, "the issuer of tokens is missing"},
		{"an issuer with a bar", func(c *Config) { c.Issuer = "https://a.example|b" },
			`the issuer "https://a.example|b" holds a bar, and names of Leaders end an issuer with it`},
		{"no audience", func(c *Config) { c.Audiences = nil },
			"the audience of tokens of https://sts.example.com is missing: without it, tokens for others would be accepted"},
		{"HS256", func(c *Config) { c.Algorithms = []string{"HS256"} },
			`the algorithm "HS256" is not supported; use RS256, PS256, ES256, EdDSA`},
		{"plain http", func(c *Config) { c.JWKS = "http://sts.example.com/jwks" },
			"the URL of the keys cannot be used: http://sts.example.com/jwks: the URL must begin with https://"},
		{"a private address", func(c *Config) { c.JWKS = "https://169.254.169.254/jwks" },
			"the URL of the keys cannot be used: https://169.254.169.254/jwks: " +
				"the address is not public: it is in 169.254.0.0/16, Link Local"},
		{"an issuer without a URL", func(c *Config) { c.Issuer, c.JWKS = "sts", "" },
			"the issuer, whose OpenID configuration says where its keys are, cannot be used: sts: " +
				"the URL must be absolute: https:// and a host"},
	} {
		c := good()
		tt.change(&c)
		v, err := New(c)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			v.Close()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestVerifiers chooses the verifier by the issuer.
func TestVerifiers(t *testing.T) {
	ec := testKeys()["ES256"]
	all := Verifiers{newVerifier(t, Config{}, with(t, ec))}
	other, err := New(Config{Issuer: "https://b.example", JWKS: "https://b.example/jwks", Audiences: []string{"b"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	other.keys.load = func(context.Context) (*keySet, error) { return nil, errors.New("away") }
	for _, all := range []Verifiers{append(all, other), {other, all[0]}} {
		for want, changes := range map[Reason]members{
			"": nil, Issuer: {"iss": "https://c.example"}, NoKeys: {"iss": "https://b.example"}, Audience: {"aud": "x"},
		} {
			_, err := all.Verify(t.Context(), ec.sign(t, claims(changes), nil))
			if got := reasonOf(t, err); got != want {
				t.Errorf("%v: refused with %q, want %q", changes, got, want)
			}
		}
	}
}

func FuzzVerify(f *testing.F) {
	keys := testKeys()
	ec := keys["ES256"]
	v := newVerifier(f, Config{}, with(f, ec))
	good := ec.sign(f, claims(nil), nil)
	f.Add(good)
	f.Add(ec.sign(f, claims(members{"aud": []string{"a", "b"}, "act": members{"sub": "agent:a"}}), members{"typ": "JWT"}))
	f.Add(keys["RS256"].sign(f, claims(nil), nil))
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		c, err := v.Verify(t.Context(), token)
		if err == nil && token != good && !strings.HasPrefix(good, token[:strings.LastIndexByte(token, '.')]) {
			t.Errorf("a token that nobody has signed is accepted: %q, %+v", token, c)
		}
		if (c == nil) != (err != nil) {
			t.Errorf("claims %v beside the error %v", c, err)
		}
	})
}

// FuzzClaims reads claims that are signed by the issuer: what is accepted holds to the bounds.
func FuzzClaims(f *testing.F) {
	ec := testKeys()["ES256"]
	v := newVerifier(f, Config{}, with(f, ec))
	f.Add(`{"iss":"https://sts.example.com","aud":["` + testAudience + `"],"exp":4102444800,"sub":"a"}`)
	f.Add(`{"exp":1e3,"scope":"a b","scp":["c"],"jti":"j"}`)
	f.Fuzz(func(t *testing.T, body string) {
		c, err := v.Verify(t.Context(), ec.signBytes(t, []byte(body), nil))
		if err != nil {
			return
		}
		if c.Issuer != testIssuer || c.Expires.Before(time.Now()) || len(c.Scopes) > maxScopes ||
			c.Subject != "" && identity.CheckSubject(c.Subject) != nil {
			t.Errorf("%q gives %+v", body, c)
		}
	})
}
