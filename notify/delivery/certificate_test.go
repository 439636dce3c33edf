// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// certificateOf returns a function to show a certificate of a name.
func certificateOf(t *testing.T, name string) ClientCertificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
	}
}

// TestClientCertificates notifies one receiver for several Partners, in turn: each connection shows the certificate of
// its Partner, and is used by no other. A Partner without one delivers nothing, until there is one. A receiver not
// listed by the operator is shown none.
//
// Promise: a Leader has the gateway act for it where only the gateway may
func TestClientCertificates(t *testing.T) {
	var shown []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name := ""
		if all := r.TLS.PeerCertificates; len(all) > 0 {
			name = all[0].Subject.CommonName
		}
		shown = append(shown, name)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())

	var later ClientCertificate
	c := local()
	c.TLS = &tls.Config{RootCAs: roots}
	c.Certificates = map[string]ClientCertificate{
		"a": certificateOf(t, "first"), "b": certificateOf(t, "second"),
		"c": func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if later == nil {
				return nil, errors.New("there is no certificate yet")
			}
			return later(r)
		},
	}
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.CertificateFor = []egress.Server{"hooks.example.com:443", egress.ServerOf(at)}
	s := open(t, nil, c)
	send := func(partner string, want Result) {
		t.Helper()
		a := attemptAt(server.URL, message{body: "{}"})
		a.Partner = partner
		if o := s.Send(a); o.Result != want {
			t.Errorf("%s: %+v", partner, o)
		}
	}
	for range 2 {
		for _, partner := range []string{"a", "none", "b"} {
			send(partner, Delivered)
		}
	}
	send("c", Unavailable)
	later = certificateOf(t, "third")
	send("c", Delivered)
	s.Configure(func() Config { c.CertificateFor = c.CertificateFor[:1]; return c }())
	send("a", Delivered)
	want := []string{"first", "", "second", "first", "", "second", "third", ""}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the receiver was shown (-want +got):\n%s", diff)
	}
}
