// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/node"
)

// TestNoteHandshake shows certificates to a server that it does not accept. Each is counted with its reason.
func TestNoteHandshake(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(parent *x509.Certificate, change func(*x509.Certificate)) *x509.Certificate {
		c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leader"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		change(c)
		if parent == nil {
			parent = c
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ca := issue(nil, func(c *x509.Certificate) {
		c.Subject.CommonName, c.IsCA, c.BasicConstraintsValid, c.ExtKeyUsage = "root", true, true, nil
	})
	for _, tc := range []struct {
		reason string // empty for a certificate that is accepted
		cert   *x509.Certificate
	}{
		{"", issue(ca, func(*x509.Certificate) {})},
		{node.WrongRoot, issue(nil, func(*x509.Certificate) {})},
		{node.Expired, issue(ca, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })},
		{node.WrongUsage, issue(ca, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})},
	} {
		closed := make(chan struct{})
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		roots := x509.NewCertPool()
		roots.AddCert(ca)
		server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
		of := node.NewProcess(node.Host{})
		p := NewProcess(of, silent)
		server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
			if p.NoteHandshake(conn, state); state == http.StateClosed {
				close(closed)
			}
		}
		server.StartTLS()
		client := server.Client()
		transport := client.Transport.(*http.Transport)
		transport.DisableKeepAlives = true
		// As a Leader does that sends its certificate whatever roots the server names.
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Certificate: [][]byte{tc.cert.Raw}, PrivateKey: key}, nil
		}
		res, err := client.Get(server.URL)
		if err == nil {
			res.Body.Close()
		}
		<-closed
		server.Close()
		if (err == nil) != (tc.reason == "") {
			t.Errorf("%q: %v", tc.reason, err)
		}
		for reason, n := range of.RefusedHandshakes.All() {
			want := uint64(0)
			if reason == tc.reason {
				want = 1
			}
			if n != want {
				t.Errorf("%q: %d handshakes are counted as %s, want %d", tc.reason, n, reason, want)
			}
		}
	}
}
