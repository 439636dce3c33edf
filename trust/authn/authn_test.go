// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	alice = "1.2.156.3088.1.1.1.1.6ZUP8J8H.1BPQ"
	proxy = "10.0.0.1:4711"
)

// pki is a root, an intermediate, and certificates signed by them.
type pki struct {
	t                  testing.TB
	root, intermediate *x509.Certificate
	rootKey, middleKey *ecdsa.PrivateKey
}

func newPKI(t testing.TB) *pki {
	p := &pki{t: t}
	p.root, p.rootKey = p.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "root"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	p.intermediate, p.middleKey = p.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "intermediate"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, p.root, p.rootKey)
	return p
}

// sign makes a certificate and its key. Without a parent it signs itself.
func (p *pki) sign(c, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	if parent == nil {
		parent, by = c, key
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		p.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		p.t.Fatal(err)
	}
	return cert, key
}

// leader makes the certificate of a Leader, as change has changed it.
func (p *pki) leader(change func(*x509.Certificate)) *x509.Certificate {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: alice},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(c)
	}
	cert, _ := p.sign(c, p.intermediate, p.middleKey)
	return cert
}

func (p *pki) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(p.root)
	return pool
}

func bytesOf(c *x509.Certificate) string { return ":" + base64.StdEncoding.EncodeToString(c.Raw) + ":" }

func pemOf(certs ...*x509.Certificate) string {
	var out strings.Builder
	for _, c := range certs {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a Builder never fails
	}
	return url.PathEscape(out.String())
}

// who is the result of Authenticate.
type who struct {
	Proof, Leader string
	Err           string // its kind and its cause
}

func whoOf(p identity.Peer, err error) who {
	w := who{Proof: p.Proof.String()}
	if p.Verified() {
		w.Leader = p.Leader()
	}
	for _, cause := range []error{identity.ErrMalformed, identity.ErrInvalid} {
		if errors.Is(err, cause) && task.KindOf(err) == task.AuthenticationRequired {
			w.Err = cause.Error()
		}
	}
	if lacks, ok := errors.AsType[*identity.ScopeError](err); ok && task.KindOf(err) == task.AuthenticationRequired {
		w.Err = lacks.Error()
	}
	if err != nil && w.Err == "" {
		w.Err = "another error: " + err.Error()
	}
	return w
}

func request(from string, header map[string][]string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.RemoteAddr = from
	for name, values := range header {
		for _, v := range values {
			r.Header.Add(name, v)
		}
	}
	return r
}

// TestProxy: a certificate in a header is believed of the proxy alone, and as TLS would believe it.
func TestProxy(t *testing.T) {
	p := newPKI(t)
	good := p.leader(nil)
	expired := p.leader(func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	})
	early := p.leader(func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	})
	server := p.leader(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	stranger := newPKI(t).leader(nil)
	nameless := p.leader(func(c *x509.Certificate) { c.Subject.CommonName = "nobody" })
	invalid := who{Err: identity.ErrInvalid.Error()}
	is := who{Proof: "proxy", Leader: alice}
	xfcc := func(parts ...string) map[string][]string {
		return map[string][]string{"X-Forwarded-Client-Cert": {strings.Join(parts, ";")}}
	}
	rfc := func(values ...string) map[string][]string { return map[string][]string{"Client-Cert": values} }
	for name, tc := range map[string]struct {
		form         Form
		header       map[string][]string
		from         string
		intermediate bool // is configured
		want         who
	}{
		"rfc9440": {RFC9440, rfc(bytesOf(good)), proxy, true, is},
		"rfc9440 with its chain": {
			RFC9440, map[string][]string{"Client-Cert": {bytesOf(good)},
				"Client-Cert-Chain": {bytesOf(p.intermediate) + ", " + bytesOf(p.root)}},
			proxy, false, is,
		},
		"a chain in two fields": {
			RFC9440, map[string][]string{"Client-Cert": {bytesOf(good)},
				"Client-Cert-Chain": {bytesOf(p.root), bytesOf(p.intermediate)}},
			proxy, false, is,
		},
		"no intermediate":      {RFC9440, rfc(bytesOf(good)), proxy, false, invalid},
		"no header":            {RFC9440, nil, proxy, true, who{}},
		"an empty header":      {RFC9440, rfc(""), proxy, true, who{}},
		"an empty sequence":    {RFC9440, rfc("::"), proxy, true, who{}},
		"empty, and another":   {RFC9440, rfc("::", bytesOf(good)), proxy, true, invalid},
		"of another address":   {RFC9440, rfc(bytesOf(good)), "10.0.1.1:4711", true, who{}},
		"of a socket":          {RFC9440, rfc(bytesOf(good)), "@", true, is},
		"IPv4 in IPv6":         {RFC9440, rfc(bytesOf(good)), "[::ffff:10.0.0.1]:4711", true, is},
		"two lines":            {RFC9440, rfc(bytesOf(good), bytesOf(good)), proxy, true, invalid},
		"a list":               {RFC9440, rfc(bytesOf(good) + ", " + bytesOf(good)), proxy, true, invalid},
		"no colons":            {RFC9440, rfc(strings.Trim(bytesOf(good), ":")), proxy, true, invalid},
		"no base64":            {RFC9440, rfc(":!:"), proxy, true, invalid},
		"no certificate":       {RFC9440, rfc(":AAAA:"), proxy, true, invalid},
		"expired":              {RFC9440, rfc(bytesOf(expired)), proxy, true, invalid},
		"not yet valid":        {RFC9440, rfc(bytesOf(early)), proxy, true, invalid},
		"of a server":          {RFC9440, rfc(bytesOf(server)), proxy, true, invalid},
		"of an unknown issuer": {RFC9440, rfc(bytesOf(stranger)), proxy, true, invalid},
		"without an AIC":       {RFC9440, rfc(bytesOf(nameless)), proxy, true, invalid},
		"pem":                  {PEM, map[string][]string{"X-Client-Cert": {pemOf(good)}}, proxy, true, is},
		"pem with a chain": {
			PEM, map[string][]string{"X-Client-Cert": {pemOf(good, p.intermediate)}},
			proxy, false, is,
		},
		"pem twice": {
			PEM, map[string][]string{"X-Client-Cert": {pemOf(good), pemOf(good)}}, proxy, true, invalid,
		},
		"pem in a list": {
			PEM, map[string][]string{"X-Client-Cert": {pemOf(good) + "," + pemOf(stranger)}}, proxy, true, invalid,
		},
		"pem in an encoded list": {
			PEM, map[string][]string{"X-Client-Cert": {pemOf(good) + "%2C%0A" + pemOf(good)}}, proxy, true, invalid,
		},
		"pem after a broken one": {
			PEM, map[string][]string{"X-Client-Cert": {"-----BEGIN%20CERTIFICATE-----%0A" + pemOf(good)}}, proxy, true, invalid,
		},
		"pem, cut":             {PEM, map[string][]string{"X-Client-Cert": {pemOf(good)[:200]}}, proxy, true, invalid},
		"pem, wrongly encoded": {PEM, map[string][]string{"X-Client-Cert": {"%zz"}}, proxy, true, invalid},
		"xfcc": {
			XFCC, xfcc("Hash=00", `Cert="`+pemOf(good)+`"`, `Subject="CN=a,O=b;c"`),
			proxy, true, is,
		},
		"xfcc with a chain": {
			XFCC, xfcc(`Cert="`+pemOf(good)+`"`, `Chain="`+pemOf(p.intermediate)+`"`),
			proxy, false, is,
		},
		"xfcc without Cert":       {XFCC, xfcc("Hash=00"), proxy, true, invalid},
		"xfcc with Cert twice":    {XFCC, xfcc(`Cert="`+pemOf(good)+`"`, `Cert="`+pemOf(good)+`"`), proxy, true, invalid},
		"xfcc with two elements":  {XFCC, xfcc(`Cert="` + pemOf(good) + `",Hash=00`), proxy, true, invalid},
		"xfcc with an open quote": {XFCC, xfcc(`Cert="` + pemOf(good)), proxy, true, invalid},
		"xfcc with what a quote hides": { // the rest, added by the proxy, has as many quotes again
			XFCC, xfcc(`Cert="`+pemOf(good)+`"`, `Subject=",Hash=00`, `Cert="`+pemOf(stranger)+`"`, `Subject="CN=a\"b"`),
			proxy, true, invalid,
		},
		"xfcc with two values":   {XFCC, xfcc(`Cert="` + pemOf(good) + `""x"`), proxy, true, invalid},
		"xfcc with a name alone": {XFCC, xfcc("Hash", `Cert="`+pemOf(good)+`"`), proxy, true, invalid},
		"xfcc without quotes":    {XFCC, xfcc("Hash=00", "Cert="+pemOf(good)), proxy, true, is},
		"xfcc twice": {
			XFCC, map[string][]string{"X-Forwarded-Client-Cert": {`Cert="` + pemOf(good) + `"`, "Hash=00"}},
			proxy, true, invalid,
		},
		"more than a header may be": {
			PEM, map[string][]string{"X-Client-Cert": {strings.Repeat("x", maxCertificate)}},
			proxy, true, invalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := ProxyConfig{Form: tc.form, From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, Unix: true,
				Header: map[Form]string{RFC9440: "client-cert", XFCC: "x-forwarded-client-cert", PEM: "x-client-cert"}[tc.form],
				Roots:  p.pool()}
			if tc.intermediate {
				config.Intermediates = []*x509.Certificate{p.intermediate}
			}
			handed, err := NewProxy(config)
			if err != nil {
				t.Fatal(err)
			}
			a := &Authenticator{Proxy: handed}
			for range 2 { // the second time, the verified certificate is known
				r := request(tc.from, tc.header)
				peer, err := a.Authenticate(r)
				if diff := cmp.Diff(tc.want, whoOf(peer, err)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if peer.Verified() && (len(peer.Chains) != 1 || !peer.Expires.Equal(good.NotAfter)) {
					t.Errorf("the peer is %+v", peer)
				}
				if len(r.Header) > 0 {
					t.Errorf("the handlers after it see %v", r.Header)
				}
			}
		})
	}
}

// TestProxysOwnCertificate: the certificate of a proxy's own connection proves nothing of its callers.
func TestProxysOwnCertificate(t *testing.T) {
	p := newPKI(t)
	cert := p.leader(nil)
	handed, err := NewProxy(ProxyConfig{Header: "Client-Cert", Form: RFC9440, Roots: p.pool(),
		From: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	a := &Authenticator{Certificates: true, Proxy: handed}
	for from, want := range map[string]who{proxy: {}, "10.0.0.2:1": {Proof: "certificate", Leader: alice}} {
		r := request(from, nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert},
			VerifiedChains: [][]*x509.Certificate{{cert, p.intermediate, p.root}}}
		if diff := cmp.Diff(want, whoOf(a.Authenticate(r))); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", from, diff)
		}
	}
}

// TestHandedOnExpires: a verified certificate is not believed beyond its validity.
func TestHandedOnExpires(t *testing.T) {
	p := newPKI(t)
	cert := p.leader(nil)
	handed, err := NewProxy(ProxyConfig{Header: "Client-Cert", Form: RFC9440, Roots: p.pool(), Unix: true,
		Intermediates: []*x509.Certificate{p.intermediate}})
	if err != nil {
		t.Fatal(err)
	}
	r := request("@", map[string][]string{"Client-Cert": {bytesOf(cert)}})
	if _, err := handed.peer(r); err != nil {
		t.Fatal(err)
	}
	key := handed.known.Keys()[0]
	known, _ := handed.known.Get(key)
	known.peer.Expires = time.Now().Add(-time.Second)
	handed.known.Add(key, known)
	if peer, err := handed.peer(r); err != nil || !peer.Expires.Equal(cert.NotAfter) {
		t.Errorf("it was not verified again: %v, %v", peer.Expires, err)
	}
}

// TestSecondCredential: a certificate comes first, and a wrong credential beside it is refused all the same.
func TestSecondCredential(t *testing.T) {
	key, keys := newKey(t)
	p := newPKI(t)
	cert := p.leader(nil)
	state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert},
		VerifiedChains: [][]*x509.Certificate{{cert, p.intermediate, p.root}}}
	is := who{Proof: "certificate", Leader: alice}
	for name, tc := range map[string]struct {
		a      *Authenticator
		bearer string
		want   who
	}{
		"none":        {&Authenticator{Certificates: true, Keys: keys}, "", is},
		"a right one": {&Authenticator{Certificates: true, Keys: keys}, key, is},
		"a wrong one": {
			&Authenticator{Certificates: true, Keys: keys}, key + "x",
			who{Err: identity.ErrInvalid.Error()},
		},
		"one for another package": {
			&Authenticator{Certificates: true, Keys: keys, BesideCertificate: true}, key + "x",
			is,
		},
		"no certificate counts": {&Authenticator{Keys: keys}, key, who{Proof: "key", Leader: "key:k"}},
		"one that nobody reads": {&Authenticator{Certificates: true}, "x", is},
	} {
		r := request("10.9.9.9:1", nil).WithContext(context.Background())
		if r.TLS = state; tc.bearer != "" {
			r.Header.Set("Authorization", "Bearer "+tc.bearer)
		}
		if diff := cmp.Diff(tc.want, whoOf(tc.a.Authenticate(r))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSecondCredentialBesideARefusedOne: a valid key does not make up for a refused certificate.
func TestSecondCredentialBesideARefusedOne(t *testing.T) {
	key, keys := newKey(t)
	p := newPKI(t)
	r := request("10.9.9.9:1", map[string][]string{"Authorization": {"Bearer " + key}})
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{p.leader(nil)}}
	peer, err := (&Authenticator{Certificates: true, Keys: keys}).Authenticate(r)
	if err != nil || peer.Verified() || peer.Refusal() == nil {
		t.Errorf("the peer is %+v, %v", peer, err)
	}
}

// FuzzProxy: whatever stands in the header, the certificate is signed by the roots.
func FuzzProxy(f *testing.F) {
	p := newPKI(f)
	good := p.leader(nil)
	for _, form := range Forms {
		f.Add(string(form), bytesOf(good), bytesOf(p.intermediate))
		f.Add(string(form), `Cert="`+pemOf(good)+`";Chain="`+pemOf(p.intermediate)+`"`, "")
		f.Add(string(form), pemOf(good, p.intermediate), "")
	}
	f.Fuzz(func(t *testing.T, form, value, chain string) {
		handed, err := NewProxy(ProxyConfig{Header: "Client-Cert", Form: Form(form), Roots: p.pool(), Unix: true})
		if err != nil {
			t.Fatal(err)
		}
		peer, err := handed.peer(&http.Request{Header: http.Header{"Client-Cert": {value}, chainHeader: {chain}}})
		if err == nil && peer.Verified() && !peer.Chains[0][0].Equal(good) {
			t.Errorf("%+v", peer)
		}
	})
}
