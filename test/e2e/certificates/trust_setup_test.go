// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"google.golang.org/grpc/status"
)

// authority is a CA of a test's own.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  crypto.Signer
	path [][]byte // its certificate and those of its issuers, in DER, without the root

	number  int64 // of the last list of revoked certificates
	revoked []x509.RevocationListEntry
}

// newRoot makes a root.
func newRoot(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.issueCA(name)
	return a
}

// intermediate makes a CA below another one.
func (a *authority) intermediate(name string) *authority {
	a.t.Helper()
	below := &authority{t: a.t}
	below.cert, below.key = a.issueCA(name)
	below.path = append([][]byte{below.cert.Raw}, a.path...)
	return below
}

// issueCA issues the certificate of a CA.
func (a *authority) issueCA(name string) (*x509.Certificate, crypto.Signer) {
	a.t.Helper()
	return a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
}

// issue issues what a template describes; by itself if there is no certificate yet.
func (a *authority) issue(template *x509.Certificate) (*x509.Certificate, crypto.Signer) {
	a.t.Helper()
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	issuer, signer := a.cert, a.key
	if issuer == nil {
		issuer, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// leader issues the certificate of a Leader.
func (a *authority) leader(aic string) tls.Certificate {
	a.t.Helper()
	cert, key := a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: aic},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: append([][]byte{cert.Raw}, a.path...), PrivateKey: key, Leaf: cert}
}

// revoke adds a certificate to the next list.
func (a *authority) revoke(cert *x509.Certificate) {
	a.revoked = append(a.revoked, x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: time.Now()})
}

// writeCRL writes the next list of revoked certificates, which is valid for a time.
func (a *authority) writeCRL(path string, lasts time.Duration) {
	a.t.Helper()
	site.ReplaceFile(a.t, path, a.crl(lasts))
}

// crl returns the next list of revoked certificates, in DER.
func (a *authority) crl(lasts time.Duration) []byte {
	a.t.Helper()
	a.number++
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(a.number),
		ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(lasts),
		RevokedCertificateEntries: a.revoked}, a.cert, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return der
}

// writeRoots writes a file of roots.
func writeRoots(t testing.TB, path string, all ...*authority) {
	t.Helper()
	var text []byte
	for _, a := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
	}
	site.ReplaceFile(t, path, text)
}

// lastingStream is a stream of a task that lasts for long.
type lastingStream struct {
	name string
	last chan string // receives the last frame, or the error, when the stream has ended
}

// ended waits for the end of the stream, and returns its last frame.
func (o *lastingStream) ended(t testing.TB, within time.Duration) string {
	t.Helper()
	select {
	case last := <-o.last:
		return last
	case <-time.After(within):
		t.Errorf("%s: the stream is open after %s", o.name, within)
		return ""
	}
}

// isOpen reports whether the stream has not ended.
func (o *lastingStream) isOpen() bool { return len(o.last) == 0 }

// openLasting opens a stream of a task with an id, and returns when it has an event.
func openLasting(t testing.TB, client *http.Client, mount, aic, name, id string) *lastingStream {
	t.Helper()
	res, err := client.Post(mount+"/stream", "application/json",
		bytes.NewReader(site.StreamBody(aic, "start", id, "stream 100000 100", "")))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	o := &lastingStream{name, make(chan string, 1)}
	go func() {
		last := ""
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				last = data
			}
		}
		o.last <- last
	}()
	return o
}

// openEach opens a stream over each version of HTTP and over gRPC, each over a connection of its own, and returns when
// each has an event. calls are calls of AIP over the connections of HTTP.
func openEach(t *testing.T, s *site.Site, pair tls.Certificate) (streams []*lastingStream,
	calls map[string]func() string) {
	t.Helper()
	aic := pair.Leaf.Subject.CommonName
	c := site.CallerWith(t, s.URL(), aic, pair)
	calls = make(map[string]func() string)
	for version, transport := range c.Transports(t) {
		client := &http.Client{Transport: transport}
		id := leader.NewID("stream")
		o := openLasting(t, client, s.URL(), aic, "HTTP/"+version, id)
		streams = append(streams, o)
		calls[o.name] = func() string {
			res, err := client.Post(s.URL()+"/rpc", "application/json",
				bytes.NewReader(site.RPCBody(aic, "get", id, "")))
			if err != nil {
				return err.Error()
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			return string(body)
		}
	}
	o := &lastingStream{"gRPC", make(chan string, 1)}
	events, err := site.GRPCCaller(t, s, pair).SendStreamingMessage(t.Context(), site.GRPCMessage("stream 100000 100"))
	if err == nil {
		_, err = events.Recv()
	}
	if err != nil {
		t.Fatalf("%s: %v", o.name, err)
	}
	go func() {
		for {
			if _, err := events.Recv(); err != nil {
				o.last <- fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message())
				return
			}
		}
	}()
	return append(streams, o), calls
}

// goesOn checks that nothing has changed for a Leader: its streams are open, its calls are carried out over the
// connections that it has, and over a new one.
func goesOn(t *testing.T, s *site.Site, pair tls.Certificate, streams []*lastingStream,
	calls map[string]func() string) {
	t.Helper()
	for _, o := range streams {
		if !o.isOpen() {
			t.Errorf("%s: the stream of the other Leader has ended with %q", o.name, <-o.last)
		}
	}
	for name, call := range calls {
		if got := call(); !strings.Contains(got, `"working"`) {
			t.Errorf("%s: a call of the other Leader brings %q", name, got)
		}
	}
	if err := handshake(t, s, pair); err != nil {
		t.Errorf("a new connection of the other Leader: %v", err)
	}
}

// connect opens a connection and sends a request that no handler answers. The error is that of the handshake, of which
// a client of TLS 1.3 learns by its first read.
func connect(t *testing.T, s *site.Site, config *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	config.RootCAs = site.Trusted(t)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(site.Patience))
	if _, err = fmt.Fprint(conn, "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"); err == nil {
		_, err = conn.Read(make([]byte, 1)) // and the tickets of TLS 1.3
	}
	return conn.ConnectionState(), err
}

// handshake opens a connection of its own and makes a call; the error is that of the handshake.
func handshake(t *testing.T, s *site.Site, pair tls.Certificate) error {
	t.Helper()
	_, err := site.CallerWith(t, s.URL(), pair.Leaf.Subject.CommonName,
		pair).Try(site.StartCall(leader.NewID("call"), "hello"))
	return err
}

// isShut reports whether an error is that of a connection that was refused: with TLS 1.3, a client that writes at once
// may find it closed before it reads why.
func isShut(err error) bool {
	_, answered := errors.AsType[*leader.Error](err)
	return err != nil && !answered
}
