// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const otherV2 = "1.2.156.3088.1.1.34C2.478BDF.3GF547.0GGS"

// authority signs the certificates of servers.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t, key, root, x509.NewCertPool()}
	a.pool.AddCert(root)
	return a
}

// server returns a certificate of a server called host.example, as change makes it.
func (a *authority) server(cn string, change func(*x509.Certificate)) tls.Certificate {
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: cn},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"host.example"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// shake makes a connection by both configurations, reads a byte, and returns the client's error.
func shake(t *testing.T, server, client *tls.Config) (resumed bool, err error) {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		conn.Write([]byte{1})
		conn.Close()
	}()
	defer func() { <-done }()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, client)
	if err := conn.Handshake(); err != nil {
		return false, err
	}
	n, err := conn.Read(make([]byte, 1)) // the session comes before it
	if n == 1 {
		err = nil
	}
	return conn.ConnectionState().DidResume, err
}

func TestRequire(t *testing.T) {
	a, strange := newAuthority(t), newAuthority(t)
	named := func(uri string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			u, _ := url.Parse(uri)
			c.URIs = []*url.URL{u}
		}
	}
	const wrongHost = "x509: certificate is valid for host.example, not other.example"
	for _, tt := range []struct {
		name   string
		cert   tls.Certificate
		verify string
		aics   []string
		host   string
		want   string // the error, or its beginning
	}{
		{"the name", a.server("x", nil), "", nil, "host.example", ""},
		{"another name", a.server(aicV2, nil), "name", nil, "other.example", wrongHost},
		{"the AIC, whatever the name", a.server(aicV2, nil), "", []string{aicV2}, "other.example", ""},
		{"the AIC in lower case", a.server(strings.ToLower(aicV2), nil), "aic", []string{aicV2}, "other.example", ""},
		{"one of two AICs", a.server(aicV2, nil), "aic", []string{otherV2, aicV2}, "other.example", ""},
		{"the AIC of v01.00", a.server(aicV1+".acps.pub", named("agent://"+aicV1)), "", []string{aicV1}, "x.example", ""},
		{"another AIC at the name", a.server(otherV2, nil), "", []string{aicV2}, "host.example",
			"the server is " + otherV2 + ", not " + aicV2},
		{"two names of AICs", a.server(aicV2, named("acps://"+otherV2)), "", []string{aicV2}, "host.example",
			"the server does not show that it is " + aicV2 +
				": The acps:// name of the server certificate is not the AIC of its common name."},
		{"no AIC", a.server("host.example", nil), "", []string{aicV2}, "host.example",
			"the server does not show that it is " + aicV2 +
				": The common name of the server certificate is not an AIC: "},
		{"both", a.server(aicV2, nil), "both", []string{aicV2}, "host.example", ""},
		{"both, with another name", a.server(aicV2, nil), "both", []string{aicV2}, "other.example", wrongHost},
		{"both, with another AIC", a.server(otherV2, nil), "both", []string{aicV2}, "host.example",
			"the server is " + otherV2 + ", not " + aicV2},
		{"another root", strange.server(aicV2, nil), "", []string{aicV2}, "host.example",
			"x509: certificate signed by unknown authority"},
		{"expired", a.server(aicV2, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), "",
			[]string{aicV2}, "host.example", "x509: certificate has expired or is not yet valid"},
		{"for clients only", a.server(aicV2, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}), "", []string{aicV2}, "host.example", "x509: certificate specifies an incompatible key usage"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, err := ParseServer(tt.verify, tt.aics...)
			if err != nil {
				t.Fatal(err)
			}
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				config := &tls.Config{RootCAs: a.pool, ServerName: tt.host, MaxVersion: version, MinVersion: version}
				server.Require(config)
				_, err := shake(t, &tls.Config{Certificates: []tls.Certificate{tt.cert}}, config)
				var got string
				if failed, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
					got = failed.Err.Error()
				} else if err != nil {
					t.Fatalf("another kind of error: %v", err)
				}
				if (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
					t.Errorf("TLS %x: error %q, want %q", version, got, tt.want)
				}
			}
		})
	}
}

// TestRequireOfResumedConnections: a session does not make another AIC the intended one.
func TestRequireOfResumedConnections(t *testing.T) {
	a := newAuthority(t)
	serving := &tls.Config{Certificates: []tls.Certificate{a.server(aicV2, nil)}}
	sessions := tls.NewLRUClientSessionCache(1)
	connect := func(aic string) (bool, error) {
		server, err := ParseServer("", aic)
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{RootCAs: a.pool, ServerName: "host.example", ClientSessionCache: sessions}
		server.Require(config)
		return shake(t, serving, config)
	}
	if _, err := connect(aicV2); err != nil {
		t.Fatal(err)
	}
	if resumed, err := connect(aicV2); err != nil || !resumed {
		t.Fatalf("resumed %t, %v", resumed, err)
	}
	_, err := connect(otherV2)
	other, ok := errors.AsType[*OtherServerError](err)
	if !ok {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(&OtherServerError{Meant: []AIC{otherV2}, AIC: aicV2}, other); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseServer(t *testing.T) {
	for _, tt := range []struct {
		verify string
		aics   []string
		want   Server
		err    string
	}{
		{"", nil, Server{Verify: VerifyName}, ""},
		{"name", nil, Server{Verify: VerifyName}, ""},
		{"", []string{strings.ToLower(aicV2)}, Server{Verify: VerifyAIC, AICs: []AIC{aicV2}}, ""},
		{"both", []string{aicV2, aicV1}, Server{Verify: VerifyBoth, AICs: []AIC{aicV2, aicV1}}, ""},
		{"aic", nil, Server{}, "verify aic needs the AIC of the server"},
		{"both", nil, Server{}, "verify both needs the AIC of the server"},
		{"name", []string{aicV2}, Server{}, "verify name looks at no AIC: leave the AIC out, or use verify both"},
		{"host", []string{aicV2}, Server{}, `verify is "host"; use aic, name or both`},
		{"", []string{"x"}, Server{}, `"x" is not the AIC of a server: the AIC has 1 characters, ` +
			"neither the 32 of an AIC of v01.00 nor the dots of a later one"},
	} {
		got, err := ParseServer(tt.verify, tt.aics...)
		var text string
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(tt.want, got) + cmp.Diff(tt.err, text); diff != "" {
			t.Errorf("%q %v (-want +got):\n%s", tt.verify, tt.aics, diff)
		}
	}
}
