// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/internal/devpki"
)

// TestAgentTLS holds that the gateway trusts the agent's private CA, and shows it the gateway's certificate.
func TestAgentTLS(t *testing.T) {
	pki := makePKI(t, devpki.Options{})
	var shown string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown = r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{keyPair(t, pki.Server)},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: rootsOf(t, pki)}
	server.StartTLS()
	defer server.Close()

	settings := AgentTLS{CA: []string{pki.CA.Cert}, Cert: pki.Leader.Cert, Key: pki.Leader.Key, ServerName: "localhost"}
	config, err := settings.config(caddy.NewReplacer(), nil)
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

	if config, err := new(AgentTLS).config(caddy.NewReplacer(), nil); config != nil || err != nil {
		t.Errorf("no settings make %v, %v", config, err)
	}
	obtained := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, nil }
	if _, err := (&AgentTLS{Obtained: true}).config(caddy.NewReplacer(), obtained); err != nil {
		t.Errorf("an obtained certificate: %v", err)
	}
	for name, bad := range map[string]AgentTLS{
		"obtained, and files": {Obtained: true, Cert: pki.Leader.Cert, Key: pki.Leader.Key},
		"no file":             {CA: []string{"nowhere.pem"}}, "no certificate": {CA: []string{pki.CA.Key}},
		"no key": {Cert: pki.Leader.Cert}, "another's key": {Cert: pki.Leader.Cert, Key: pki.Server.Key},
	} {
		if _, err := bad.config(caddy.NewReplacer(), obtained); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
