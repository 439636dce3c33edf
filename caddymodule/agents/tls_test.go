// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
)

// TestAgentTLS holds that the gateway trusts the agent's private CA, and shows it the gateway's certificate.
func TestAgentTLS(t *testing.T) {
	pki := devpkitest.Make(t, devpki.Options{})
	var shown string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown = r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{devpkitest.KeyPair(t, pki.Server)},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: devpkitest.Roots(t, pki)}
	server.StartTLS()
	defer server.Close()

	settings := TLS{CA: []string{pki.CA.Cert}, Cert: pki.Leader.Cert, Key: pki.Leader.Key, ServerName: "localhost"}
	config, err := settings.Config(caddy.NewReplacer(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	res, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if shown != string(pki.Leader.AIC) {
		t.Errorf("the agent was shown %q", shown)
	}

	if config, err := new(TLS).Config(caddy.NewReplacer(), nil, nil); config != nil || err != nil {
		t.Errorf("no settings make %v, %v", config, err)
	}
	obtained := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, nil }
	if _, err := (&TLS{Obtained: true}).Config(caddy.NewReplacer(), obtained, nil); err != nil {
		t.Errorf("an obtained certificate: %v", err)
	}
	for name, bad := range map[string]TLS{
		"obtained, and files": {Obtained: true, Cert: pki.Leader.Cert, Key: pki.Leader.Key},
		"no file":             {CA: []string{"nowhere.pem"}}, "no certificate": {CA: []string{pki.CA.Key}},
		"no key": {Cert: pki.Leader.Cert}, "another's key": {Cert: pki.Leader.Cert, Key: pki.Server.Key},
	} {
		if _, err := bad.Config(caddy.NewReplacer(), obtained, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestAgentIsShownTheCertificate holds that an agent which names its CAs is shown a certificate of another one, so that
// it says that it does not trust it, and that the next connection has the certificate that is then in the files.
func TestAgentIsShownTheCertificate(t *testing.T) {
	pki := devpkitest.Make(t, devpki.Options{})
	first, second := devpkitest.Make(t, devpki.Options{}), devpkitest.Make(t, devpki.Options{})
	var shown []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	others := x509.NewCertPool()
	others.AddCert(devpkitest.KeyPair(t, pki.Server).Leaf)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{devpkitest.KeyPair(t, pki.Server)},
		ClientAuth: tls.RequireAnyClientCert, ClientCAs: others}
	server.StartTLS()
	defer server.Close()

	config, err := (&TLS{CA: []string{pki.CA.Cert}, Cert: first.Leader.Cert, Key: first.Leader.Key,
		ServerName: "localhost"}).Config(caddy.NewReplacer(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	for range 2 {
		res, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		for to, from := range map[string]string{first.Leader.Cert: second.Leader.Cert, first.Leader.Key: second.Leader.Key} {
			text, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{string(first.Leader.AIC), string(second.Leader.AIC)}; !slices.Equal(shown, want) {
		t.Errorf("the agent was shown %q, want %q", shown, want)
	}
}
