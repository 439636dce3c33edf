// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// TestServerRevocation: a server whose certificate is revoked, or of which nothing is known, is no agent, whether its
// name or its AIC says who it is.
func TestServerRevocation(t *testing.T) {
	made := devpkitest.Make(t, devpki.Options{})
	ca, shown := devpkitest.KeyPair(t, made.CA), devpkitest.KeyPair(t, made.Server)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{shown}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	list := func(revoked ...*big.Int) string {
		template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Minute),
			NextUpdate: time.Now().Add(time.Hour)}
		for _, serial := range revoked {
			template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
				x509.RevocationListEntry{SerialNumber: serial, RevocationTime: time.Now()})
		}
		der, err := x509.CreateRevocationList(rand.Reader, template, ca.Leaf, ca.PrivateKey.(crypto.Signer))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "list.crl")
		if err := os.WriteFile(file, der, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	process := node.NewProcess(node.Host{})
	shared := pki.NewProcess(process, func(string) *slog.Logger { return slog.New(slog.DiscardHandler) })
	for name, tt := range map[string]struct {
		list string
		want revocation.Reason // empty for a connection
	}{
		"good": {list(), ""}, "revoked": {list(shown.Leaf.SerialNumber), revocation.Revoked},
		"nothing is known": {filepath.Join(t.TempDir(), "none.crl"), revocation.NoAnswer},
	} {
		host := &pki.Host{Process: shared, Configuration: process.NewConfiguration()}
		crl := pki.RevocationSource{Kind: "crl", Location: tt.list}
		if err := host.Ask(&pki.Revocation{Sources: []pki.RevocationSource{crl}}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(host.LeaveSources)
		host.FollowSources()
		for _, meant := range []pki.ServerIdentity{{}, {AIC: []string{string(made.Server.AIC)}}} {
			agent := TLS{CA: []string{made.CA.Cert}, ServerName: "localhost", ServerIdentity: meant, Revocation: true}
			config, err := agent.Config(caddy.NewReplacer(), nil, host.Configuration.Trust.JudgeServer)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
			if err == nil {
				conn.Close()
			}
			got := revocation.Reason("")
			if r, ok := errors.AsType[*revocation.Refusal](err); ok {
				got = r.Reason
			}
			if got != tt.want || (err == nil) != (tt.want == "") {
				t.Errorf("%s, %+v: %v", name, meant, err)
			}
		}
	}
}
