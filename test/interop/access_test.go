// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sdks are the programs, each SDK once, and where the agents are called.
var sdks = []struct {
	name          string
	agent, client program
	path          string
}{
	{"legacy-trpc", program{"legacy-trpc"}, program{"legacy-trpc-client"}, "/"},
	{"a2a-go-03", program{"a2a-go-03", "agent"}, program{"a2a-go-03", "client"}, "/invoke"},
	{"a2a-go-10", program{"a2a-go-10", "agent"}, program{"a2a-go-10", "client"}, "/invoke"},
	{"js-03", js("js-03/agent.mjs"), js("js-03/client.mjs"), "/invoke"},
	{"js-10", js("js-10/agent.mjs"), js("js-10/client.mjs"), "/invoke"},
}

var echoed = view{"task", "completed", "ok", "echo: hi"}

func TestAPIKey(t *testing.T) {
	t.Parallel()
	for _, sdk := range sdks {
		t.Run(sdk.name, func(t *testing.T) {
			t.Parallel()
			client := sdk.client.with("-url", sdk.agent.with("-api-key", "right").start(t))
			for _, wrong := range []program{client, client.with("-api-key", "wrong")} {
				if out, _, err := wrong.try(t, "send", "echo hi"); err == nil {
					t.Errorf("%q was answered with %+v", wrong, out)
				}
			}
			if diff := cmp.Diff(echoed, client.with("-api-key", "right").one(t, "send", "echo hi").view()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCertificates puts a proxy in front of each agent that asks for a certificate, and calls it without a card.
func TestCertificates(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(pair.Leaf)
	for _, sdk := range sdks {
		t.Run(sdk.name, func(t *testing.T) {
			t.Parallel()
			agent, err := url.Parse(sdk.agent.start(t))
			if err != nil {
				t.Fatal(err)
			}
			proxy := httptest.NewUnstartedServer(
				&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(agent) }},
			)
			proxy.TLS = &tls.Config{
				Certificates: []tls.Certificate{pair},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    trusted,
			}
			proxy.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log the refused connections
			proxy.StartTLS()
			t.Cleanup(proxy.Close)
			client := sdk.client.with("-endpoint", proxy.URL+sdk.path)
			if out, _, err := client.with("-ca", cert).try(t, "send", "echo hi"); err == nil {
				t.Errorf("without a certificate the answer is %+v", out)
			}
			if out, _, err := client.with("-cert", cert, "-key", key).try(t, "send", "echo hi"); err == nil {
				t.Errorf("without trust the answer is %+v", out)
			}
			if diff := cmp.Diff(echoed, client.with("-ca", cert, "-cert", cert, "-key", key).one(t, "send",
				"echo hi").view()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// certificate writes a certificate for both sides of a connection, which vouches for itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}
