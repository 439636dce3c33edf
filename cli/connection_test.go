// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/acps/locate"
)

// selfSigned returns a certificate of its own authority with a common name and a host, and the files of it and its key.
func selfSigned(t *testing.T, name, host string) (pair tls.Certificate, cert string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{host}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert = filepath.Join(t.TempDir(), "c.pem")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, cert[:len(cert)-4] + "-key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, cert
}

// TestCertificateOfAnotherCA: a server naming its CAs is shown a certificate of another one, so it says that it does
// not trust it.
func TestCertificateOfAnotherCA(t *testing.T) {
	url, p := partnerAt(t, func(gjson.Result, string) string { return awaiting })
	_, cert := selfSigned(t, "Agents of another registrar", "localhost")
	got := runAIP(t, "call", url, "get", "--task", "task-1", "--cert", cert, "--sender", leaderAIC)
	if want := "the Partner does not trust the root that signs"; got.Status != 1 || !strings.Contains(got.Stderr, want) {
		t.Errorf("the call: %+v, want %q", got, want)
	}

	var shown int
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown += len(r.TLS.PeerCertificates)
		http.NotFound(w, r)
	}))
	server.TLS = serverTLS(t, p, p.Server)
	server.TLS.ClientAuth = tls.RequireAnyClientCert
	server.StartTLS()
	defer server.Close()
	f := &connectionFlags{cert: cert, find: findFlags{registries: []string{server.URL}, discovery: []string{server.URL}}}
	sources, err := f.sources()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if _, err := locate.New([]locate.Source{source}, nil).Find(t.Context(), leaderAIC); err == nil {
			t.Error("what is not there is found")
		}
	}
	if shown != 2 {
		t.Errorf("the registry and the discovery server are shown %d certificates, want 2", shown)
	}
}

// TestErrorsAreClean: a stranger steers no terminal by the text of an error.
func TestErrorsAreClean(t *testing.T) {
	partnerAt(t, func(gjson.Result, string) string { return awaiting })
	const evil = "x\x1b]0;title\x07\x1b[31mred"
	pair, cert := selfSigned(t, "evil", evil)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	named := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/\u009b31m")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, evil)
	}))
	defer odd.Close()
	for _, args := range [][]string{
		{"call", named, "get", "--task", "t", "--ca", cert},
		{"describe", named, "--ca", cert},
		{"acs", "validate", named + "/acs.json"},
		{"call", odd.URL, "get", "--task", "t", "--sender", "x"},
		{"describe", odd.URL},
		{"aic", "check", evil},
	} {
		got := runAIP(t, args...)
		if text := got.Stdout + got.Stderr; got.Status == 0 || clean(text) != text {
			t.Errorf("%q: status %d, and the text is not clean: %q", args, got.Status, text)
		}
	}
}

// TestJSONIsClean: --json prints a stranger's text in a form safe for a terminal, with the same meaning.
func TestJSONIsClean(t *testing.T) {
	answer := strings.Replace(taskIn("working"), `"id":"task-1"`, "\"id\":\"task-1\",\"x\":\"\u009b31m\u202ered é\"", 1)
	url, _ := partnerAt(t, func(gjson.Result, string) string { return strings.Replace(answer, ",", ",\r\n", 1) })
	got := runAIP(t, "call", url, "get", "--task", "task-1", "--json")
	if !gjson.Valid(got.Stdout) {
		t.Errorf("the text is no JSON: %q", got.Stdout)
	}
	if got.Status != 0 || clean(got.Stdout) != got.Stdout {
		t.Errorf("status %d, and the text is not clean: %q", got.Status, got.Stdout)
	}
	if x := gjson.Get(got.Stdout, "result.x").Str; x != "\u009b31m\u202ered é" {
		t.Errorf("the member is %q", x)
	}
}
