// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// TestKeysRotate: an unknown key id causes a fetch, at most once in 10 s, and the key that is gone verifies nothing any
// more, not even a token that is remembered.
func TestKeysRotate(t *testing.T) {
	keys := testKeys()
	before, after := keys["ES256"], keys["other"]
	bubble.Test(t, func(t *testing.T) {
		published, fetches := with(t, before), 0
		v := newVerifier(t, Config{}, func(ctx context.Context) (*keySet, error) {
			fetches++
			return published(ctx)
		})
		old, fresh := before.sign(t, claims(members{"exp": 9e9}), nil), after.sign(t, claims(members{"exp": 9e9}), nil)
		try := func(what, token string, want Reason, wantFetches int) {
			t.Helper()
			_, err := v.Verify(t.Context(), token)
			if got := reasonOf(t, err); got != want || fetches != wantFetches {
				t.Errorf("%s: refused with %q after %d fetches, want %q after %d", what, got, fetches, want, wantFetches)
			}
		}
		try("the first token", old, "", 1)
		published = with(t, after)
		for range 100 {
			try("a new key, a moment later", fresh, UnknownKey, 1)
		}
		bubble.Pass(fetchEvery)
		try("a new key, 10 s later", fresh, "", 2)
		try("the old key, remembered", old, UnknownKey, 2)

		published = with(t, before)
		bubble.Pass(refreshAfter)
		try("a known key, a moment before keys are old", fresh, "", 2)
		bubble.Pass(time.Second)
		try("a known key does not wait for the fetch", fresh, "", 2)
		synctest.Wait()
		try("the key is gone", fresh, UnknownKey, 3)
	})
}

// TestKeyTakenBack: a key that the issuer has taken back while no token came verifies none, not even one that is
// remembered, and not for those who come while the keys are fetched.
//
// Promise: another party acts as a Leader
func TestKeyTakenBack(t *testing.T) {
	keys := testKeys()
	stolen, next := keys["ES256"], keys["other"]
	bubble.Test(t, func(t *testing.T) {
		published := with(t, stolen)
		v := newVerifier(t, Config{}, func(ctx context.Context) (*keySet, error) {
			time.Sleep(fetchTimeout / 2) // of the bubble
			return published(ctx)
		})
		remembered := stolen.sign(t, claims(members{"exp": 9e9}), nil)
		if _, err := v.Verify(t.Context(), remembered); err != nil {
			t.Fatal(err)
		}
		published = with(t, next)
		bubble.Pass(72 * time.Hour)
		var callers sync.WaitGroup
		for n, token := range []string{remembered, stolen.sign(t, claims(members{"exp": 9e9, "jti": "2"}), nil), remembered} {
			callers.Go(func() {
				if _, err := v.Verify(t.Context(), token); reasonOf(t, err) != UnknownKey {
					t.Errorf("token %d of a key that was taken back three days ago: %v", n, err)
				}
			})
			bubble.Pass(time.Second)
		}
		callers.Wait()
		if _, err := v.Verify(t.Context(), next.sign(t, claims(members{"exp": 9e9}), nil)); err != nil {
			t.Errorf("the new key: %v", err)
		}
	})
}

// TestIssuerAway: keys are kept while the issuer is away, and without any the token is refused.
func TestIssuerAway(t *testing.T) {
	ec := testKeys()["ES256"]
	bubble.Test(t, func(t *testing.T) {
		load := func(context.Context) (*keySet, error) { return nil, errors.New("it is away") }
		var log bytes.Buffer
		v := newVerifier(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))},
			func(ctx context.Context) (*keySet, error) { return load(ctx) })
		token := ec.sign(t, claims(members{"exp": 9e9}), nil)
		for range 3 {
			_, err := v.Verify(t.Context(), token)
			if reasonOf(t, err) != NoKeys || !strings.Contains(err.Error(), "it is away") {
				t.Errorf("without keys: %v", err)
			}
			bubble.Pass(fetchEvery)
		}
		if h := v.Health(); h.Err == nil || h.Keys != 0 || h.Issuer != testIssuer {
			t.Errorf("its health is %+v", h)
		}
		load = with(t, ec)
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("the issuer is back: %v", err)
		}
		load = func(context.Context) (*keySet, error) { return nil, errors.New("it is away again") }
		for range 100 {
			bubble.Pass(time.Hour)
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Errorf("the issuer is away, and keys are known: %v", err)
			}
		}
		synctest.Wait()
		if h := v.Health(); h.Err == nil || h.Keys != 1 || time.Since(h.Fetched) < 99*time.Hour {
			t.Errorf("its health is %+v", h)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("%d lines are logged, want one for each change:\n%s", n, log.String())
		}
	})
}

// TestOneFetch: many callers wait for one fetch, and one who leaves does not end it.
func TestOneFetch(t *testing.T) {
	ec := testKeys()["ES256"]
	bubble.Test(t, func(t *testing.T) {
		var fetches atomic.Int32
		published := with(t, ec)
		v := newVerifier(t, Config{}, func(ctx context.Context) (*keySet, error) {
			fetches.Add(1)
			select {
			case <-time.After(5 * time.Second):
				return published(ctx)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		token := ec.sign(t, claims(nil), nil)
		leaves, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() {
				ctx, want := t.Context(), error(nil)
				if i%2 == 0 {
					ctx, want = leaves, context.Canceled
				}
				if _, err := v.Verify(ctx, token); !errors.Is(err, want) {
					t.Errorf("caller %d: %v, want %v", i, err, want)
				}
			})
		}
		bubble.Pass(time.Second)
		leave()
		callers.Wait()
		if n := fetches.Load(); n != 1 {
			t.Errorf("there are %d fetches", n)
		}
	})
}

// TestShared: verifiers of two configurations share keys, until both are closed.
func TestShared(t *testing.T) {
	ec := testKeys()["ES256"]
	keys := new(Keys)
	first := newVerifier(t, Config{Keys: keys}, with(t, ec))
	c := Config{Issuer: testIssuer, JWKS: "https://sts.example.com/jwks", Audiences: []string{testAudience}, Keys: keys}
	second, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Egress.Allow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	third, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if first.keys != second.keys || first.keys == third.keys {
		t.Error("keys are shared with the wrong verifier")
	}
	second.Close()
	third.Close()
	if _, err := first.Verify(t.Context(), ec.sign(t, claims(nil), nil)); err != nil {
		t.Error(err)
	}
}

// TestReadKeys has what an issuer may publish beside good keys.
func TestReadKeys(t *testing.T) {
	keys := testKeys()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	document := func(all ...any) string {
		body, err := json.Marshal(members{"keys": all})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	encryption, forOther := keys["ES256"].public(), keys["ES256"].public()
	encryption.Use, forOther.Algorithm = "enc", "RS256"
	none := "there is no public key for signatures of [RS256 PS256 ES256 EdDSA]"
	for _, tt := range []struct {
		name, body string
		keys       int
		err        string
	}{
		{"all", string(jwks(t, keys["RS256"], keys["ES256"], keys["EdDSA"])), 3, ""},
		{"good ones among others", document(
			members{"kty": "new", "x": 1}, members{"kty": "oct", "k": "AAAA"}, 7, "x", nil,
			jose.JSONWebKey{Key: keys["EdDSA"].key, KeyID: "private"}, encryption, forOther,
			jose.JSONWebKey{Key: small.Public()}, jose.JSONWebKey{Key: p384.Public()}, keys["ES256"].public()), 1, ""},
		{"none", document(), 0, none},
		{"only others", document(members{"kty": "oct", "k": "AAAA"}), 0, none},
		{"too many", document(make([]any, maxKeys+1)...), 0, "there are 101 keys, and at most 100 are read"},
		{"not JSON", "<html>", 0, "the keys cannot be read: invalid character '<' looking for beginning of value"},
		{"another document", `{"keys":{}}`, 0,
			"the keys cannot be read: json: cannot unmarshal object into Go struct field .keys of type []json.RawMessage"},
	} {
		set, err := readKeys([]byte(tt.body))
		got, n := "", 0
		if err != nil {
			got = err.Error()
		} else {
			n = len(set.keys)
		}
		if diff := cmp.Diff([]any{tt.keys, tt.err}, []any{n, got}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func FuzzReadKeys(f *testing.F) {
	keys := testKeys()
	f.Add(string(jwks(f, keys["RS256"], keys["ES256"], keys["EdDSA"])))
	f.Add(`{"keys":[{"kty":"oct","k":"AAAA"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		set, err := readKeys([]byte(body))
		if err != nil {
			return
		}
		for _, k := range set.keys {
			if k.family == "" || familyOf(k.key) != k.family {
				t.Errorf("%q gives the key %+v", body, k)
			}
		}
	})
}

// site serves the documents of an issuer.
type site map[string]func(http.ResponseWriter)

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f := s[r.URL.Path]; f != nil {
		f(w)
		return
	}
	http.NotFound(w, r)
}

// says serves a text.
func says(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = w.Write([]byte(text)) }
}

// TestFetch fetches keys over the network, from issuers that are well, and others.
func TestFetch(t *testing.T) {
	ec := testKeys()["ES256"]
	good := string(jwks(t, ec))
	loopback := egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"),
		netip.MustParsePrefix("::1/128")}}
	configuration := func(issuer, jwks string) func(http.ResponseWriter) {
		return says(fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, issuer, jwks))
	}
	const own = "/.well-known/openid-configuration"
	for _, tt := range []struct {
		name  string
		site  func(url string) site
		jwks  string // path; empty for discovery
		want  Reason
		cause string
	}{
		{"keys", func(string) site { return site{"/jwks": says(good)} }, "/jwks", "", ""},
		{"discovery", func(url string) site {
			return site{own: configuration(url, url+"/k"), "/k": says(good)}
		}, "", "", ""},
		{"the configuration of another issuer", func(url string) site {
			return site{own: configuration("https://evil.example", url+"/k"), "/k": says(good)}
		}, "", NoKeys, "the OpenID configuration is that of another issuer"},
		{"a configuration without keys", func(url string) site { return site{own: configuration(url, "")} }, "", NoKeys,
			"the OpenID configuration has no jwks_uri"},
		{"a configuration that leads elsewhere", func(url string) site {
			return site{own: configuration(url, "http://169.254.169.254/latest")}
		}, "", NoKeys, "the address is not public"},
		{"a configuration that is no JSON", func(string) site { return site{own: says("<html>")} }, "", NoKeys,
			"the OpenID configuration cannot be read"},
		{"not found", func(string) site { return nil }, "/jwks", NoKeys, "404 Not Found"},
		{"a redirect", func(string) site {
			return site{"/jwks": func(w http.ResponseWriter) {
				w.Header().Set("Location", "/other")
				w.WriteHeader(http.StatusFound)
			}, "/other": says(good)}
		}, "/jwks", NoKeys, "302 Found"},
		{"huge", func(string) site {
			return site{"/jwks": says(strings.TrimSuffix(good, "}") + strings.Repeat(" ", maxSet) + "}")}
		}, "/jwks", NoKeys, "has more than 1048576 bytes"},
		{"as large as it may be", func(string) site {
			return site{"/jwks": says(good + strings.Repeat(" ", maxSet-len(good)))}
		}, "/jwks", "", ""},
		{"without an end", func(string) site {
			return site{"/jwks": func(w http.ResponseWriter) {
				w.Header().Set("Content-Length", "1000000")
				_, _ = w.Write([]byte(good))
			}}
		}, "/jwks", NoKeys, "unexpected EOF"},
	} {
		var served site
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.ServeHTTP(w, r)
		}))
		served = tt.site(server.URL)
		c := Config{Issuer: server.URL, Audiences: []string{testAudience}, Egress: loopback}
		if tt.jwks != "" {
			c.JWKS = server.URL + tt.jwks
		}
		v, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Verify(t.Context(), ec.sign(t, claims(members{"iss": server.URL}), nil))
		if got := reasonOf(t, err); got != tt.want || err != nil && !strings.Contains(err.Error(), tt.cause) {
			t.Errorf("%s: refused with %q (%v), want %q with %q", tt.name, got, err, tt.want, tt.cause)
		}
		v.Close()
		server.Close()
	}
}

// TestFetchByTLS: the server of keys must have a certificate of the roots, and no address that is not public is
// dialed unless it is allowed.
func TestFetchByTLS(t *testing.T) {
	ec := testKeys()["ES256"]
	server := httptest.NewUnstartedServer(site{"/jwks": says(string(jwks(t, ec)))})
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	allowed := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	for _, tt := range []struct {
		name, url string
		roots     *x509.CertPool
		allow     []netip.Prefix
		cause     string
	}{
		{"its own root", server.URL, roots, allowed, ""},
		{"the roots of the system", server.URL, nil, allowed, "certificate signed by unknown authority"},
		{"a name with an address that is not public", "https://localhost.localdomain.example:" + port, roots, nil, ""},
	} {
		v, err := New(Config{Issuer: testIssuer, JWKS: tt.url + "/jwks", Audiences: []string{testAudience},
			Roots: tt.roots, Egress: egress.Policy{Allow: tt.allow}})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		_, err = v.Verify(t.Context(), ec.sign(t, claims(nil), nil))
		if tt.allow == nil {
			if reasonOf(t, err) != NoKeys {
				t.Errorf("%s: %v", tt.name, err)
			}
		} else if got := fmt.Sprint(err); tt.cause == "" && err != nil || !strings.Contains(got, tt.cause) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.cause)
		}
		v.Close()
	}
}

// TestClosed: Close ends a fetch that runs.
func TestClosed(t *testing.T) {
	ec := testKeys()["ES256"]
	bubble.Test(t, func(t *testing.T) {
		v := newVerifier(t, Config{Keys: new(Keys)}, func(ctx context.Context) (*keySet, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		v.config.Keys.mu.Lock()
		v.keys.users++ // for the Close of the cleanup
		v.config.Keys.mu.Unlock()
		go func() {
			time.Sleep(time.Second)
			v.keys.end()
		}()
		_, err := v.Verify(t.Context(), ec.sign(t, claims(nil), nil))
		if reasonOf(t, err) != NoKeys || !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
		if _, err := v.Verify(t.Context(), ec.sign(t, claims(nil), nil)); reasonOf(t, err) != NoKeys {
			t.Errorf("later: %v", err)
		}
	})
}
