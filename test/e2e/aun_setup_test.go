// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/task"
)

// The names of these tests.
const (
	aunIssuer  = "aid.test"
	aunGateway = "gateway.aid.test"
	aunAgent   = "agent.aid.test"
)

var aunPKI = sync.OnceValues(func() (*aunpeer.PKI, error) { return aunpeer.NewPKI(aunIssuer) })

// aunSite is a gateway with an AUN side, and the PKI of its callers.
type aunSite struct {
	*site
	pki     *aunpeer.PKI
	foreign *aunpeer.Identity // the authentication service whose tokens it takes, too
	port    int               // of AUN
}

// must returns a value that has no error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// newAUN makes the files of an AUN side, and returns its site, which is to be started with aunConfig.
func newAUN(t testing.TB) *aunSite {
	t.Helper()
	s := &aunSite{site: newSite(t), pki: must(aunPKI())(t), port: freePort(t)}
	s.foreign = must(s.pki.Issue("auth.aid.test"))(t)
	own := must(s.pki.Issue(aunGateway))(t)
	s.file("aun.pem", must(own.PEM())(t))
	s.file("roots.pem", s.pki.Issuer.ChainPEM()[len(s.pki.Issuer.CertPEM()):]+s.pki.Issuer.CertPEM())
	s.file("jwt.pem", must(s.foreign.PublicPEM())(t))
	return s
}

func (s *aunSite) file(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// config returns the configuration of an AUN side in front of an agent, which it reaches by a dialect and a URL.
func (s *aunSite) config(agent string, more ...string) config {
	p := certificates(s.t)
	settings := ""
	for _, line := range more {
		settings += "\n\t\t" + line
	}
	return config{
		store: fmt.Sprintf(`store pebble %s
		aun {
			aid %s
			cert %s
			roots %s
			issuer %s
			jwt_key %s %s
		}`, filepath.Join(s.dir, "store"), aunGateway, filepath.Join(s.dir, "aun.pem"),
			filepath.Join(s.dir, "roots.pem"), aunIssuer, aunIssuer, filepath.Join(s.dir, "jwt.pem")),
		handle: fmt.Sprintf(`aip_gateway %s {
		aid %s
		callers aip aun%s
	}`, agent, aunAgent, settings),
		otherSites: fmt.Sprintf(`https://:%d {
	tls %s %s
	aip_aun
}`, s.port, p.Server.Cert, p.Server.Key),
	}
}

// serveAUN starts a gateway with an AUN side in front of the sample agent.
func serveAUN(t testing.TB) *aunSite {
	t.Helper()
	_, address := sampleAgent(t)
	s := newAUN(t)
	s.start(s.config("a2a/legacy http://" + address))
	return s
}

// client returns a client of an AID.
func (s *aunSite) client(aid string, change ...func(*x509.Certificate)) *aunpeer.Client {
	s.t.Helper()
	return &aunpeer.Client{
		ID: must(s.pki.Issue(aid, change...))(s.t), PKI: s.pki, HTTP: s.http(), Device: "device-1",
		URL: fmt.Sprintf("wss://%s:%d/aun", aunGateway, s.port),
	}
}

// http returns an HTTP client that takes the AUN side for every host.
func (s *aunSite) http() *http.Client {
	ca := must(x509.ParseCertificate(keyPair(s.t, certificates(s.t).CA).Certificate[0]))(s.t)
	c := aunpeer.To(fmt.Sprintf("127.0.0.1:%d", s.port), ca)
	c.Transport.(*http.Transport).TLSClientConfig.ServerName = "localhost"
	s.t.Cleanup(c.CloseIdleConnections)
	return c
}

// online connects a client, until the end of the test.
func (s *aunSite) online(aid string) *aunpeer.Conn {
	s.t.Helper()
	conn := must(s.client(aid).Online(s.soon()))(s.t)
	s.t.Cleanup(conn.Cut)
	return conn
}

// soon returns a context for what should happen at once.
func (s *aunSite) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	s.t.Cleanup(cancel)
	return ctx
}

// endsWith expects the end of a connection.
func (s *aunSite) endsWith(what string, conn *aunpeer.Conn, want int) {
	s.t.Helper()
	if code, reason, err := conn.Closed(s.soon()); code != want {
		s.t.Errorf("%s: the connection ended with %d %q (%v), want %d", what, code, reason, err, want)
	}
}

// fails expects an error.
func (s *aunSite) fails(what string, err error, want int) {
	s.t.Helper()
	if aunpeer.Code(err) != want {
		s.t.Errorf("%s: %v, want the error %d", what, err, want)
	}
}

// productTexts returns the texts of the products of a task.
func productTexts(t *task.Task) (all string) {
	for _, p := range t.Products {
		for _, item := range p.DataItems {
			all += item.Text
		}
	}
	return all
}
