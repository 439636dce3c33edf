// SPDX-License-Identifier: Apache-2.0

package acps

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
)

// Of the program's grammar, the options that may stand more than once.
func init() {
	conf.Register(conf.Grammar{Repeatable: []string{"find registry", "find discovery", "find agent"}})
}

// listed is the agent in the answer of a real discovery server.
const listed = "1.2.156.3088.1.0001.00001.RX09I0.911IM4.0XB3"

// readDiscovery reads the option as in a Caddyfile, and makes its client.
func readDiscovery(text string) (d *Discovery, err error) {
	p := conftest.Parser(text)
	if DiscoveryOption(p, &d)(); p.Failed() != nil {
		return nil, p.Failed()
	}
	return d, d.Provision()
}

// serve starts a server with a certificate that asks its clients for one. It ends with the test.
func serve(t *testing.T, made *devpki.PKI, h http.HandlerFunc) (url string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert,
		Certificates: []tls.Certificate{devpkitest.KeyPair(t, made.Server)}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not trust it
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// discovers starts a discovery server that knows one agent, and only answers who shows a certificate.
func discovers(t *testing.T, made *devpki.PKI) (url string) {
	_, answer := registrytest.Captured(t, "discovery/01-filtered-by-aic")
	return serve(t, made, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case len(r.TLS.PeerCertificates) == 0:
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/adp/discover":
			_, _ = io.WriteString(w, answer)
		default:
			http.Redirect(w, r, "/adp/discover", http.StatusTemporaryRedirect)
		}
	})
}

// TestDiscovery: what the option reads.
func TestDiscovery(t *testing.T) {
	made := devpkitest.Make(t, devpki.Options{})
	for text, want := range map[string]*Discovery{
		"discovery https://a.example/adp": {Servers: []string{"https://a.example/adp"}},
		"discovery http://a.example http://b.example {\nca " + made.CA.Cert + " " + made.CA.Cert + "\nclient_cert " +
			made.Leader.Cert + " " + made.Leader.Key + "\n}": {Servers: []string{"http://a.example", "http://b.example"},
			CA: []string{made.CA.Cert, made.CA.Cert}, Cert: made.Leader.Cert, Key: made.Leader.Key},
	} {
		got, err := readDiscovery(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Discovery{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	var none *Discovery
	if err := none.Provision(); err != nil || none.Clients() != nil {
		t.Errorf("without the option there are %v, %v", none.Clients(), err)
	}
}

// TestDiscoveryMistakes: what is said about each mistake.
func TestDiscoveryMistakes(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	with := func(options string) string { return "discovery https://a.example {\n" + options + "\n}" }
	conftest.Refuses(t, map[string]string{
		"discovery":           "discovery needs at least one value, at Testfile:1",
		"discovery a.example": `discovery: "a.example" is no http or https URL`,
		"discovery https://a.example https://me:hunter2@b.example": "discovery must be a URL without credentials, query " +
			"and fragment",
		with("ca"):                "ca needs at least one value, at Testfile:2",
		with("client_cert a.pem"): "client_cert needs a certificate and a key, both PEM files, at Testfile:2",
		with("client_certs a b"):  `there is no "client_certs" in discovery; did you mean "client_cert"?, at Testfile:2`,
		with("ca " + none):        "discovery: tls ca: open " + none + ": no such file or directory",
		with("client_cert {env.NO_SUCH_FILE} a"): "discovery: tls client_cert: the name of a file has a placeholder " +
			"without a value: {env.NO_SUCH_FILE}",
	}, func(text string) error {
		_, err := readDiscovery(text)
		return err
	})
	d := new(Discovery) // as JSON may say
	const want = "discovery: write the URL of a discovery server behind it"
	if err := d.Provision(); err == nil || err.Error() != want {
		t.Errorf("without a server: %v, want %s", err, want)
	}
}

// TestClients: each server is asked with the client certificate, if its own is below the roots. What it sends on is
// asked of no other one.
func TestClients(t *testing.T) {
	made := devpkitest.Make(t, devpki.Options{})
	url := discovers(t, made)
	d := &Discovery{Servers: []string{url + "/adp", url + "/adp/", url + "/other"}, CA: []string{made.CA.Cert},
		Cert: made.Leader.Cert, Key: made.Leader.Key}
	if err := d.Provision(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, client := range d.Clients() {
		switch answer, err := client.Ask(t.Context(), listed); {
		case errors.Is(err, adp.ErrUnclear):
			got = append(got, "unclear")
		case err != nil:
			t.Error(err)
		default:
			got = append(got, string(answer.State))
		}
	}
	if diff := cmp.Diff([]string{"found", "found", "unclear"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Remove(made.Leader.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Clients()[0].Ask(t.Context(), listed); err == nil {
		t.Error("a key that is gone is used still")
	}
	stranger := &Discovery{Servers: []string{url + "/adp"}}
	if err := stranger.Provision(); err != nil {
		t.Fatal(err)
	}
	_, err := stranger.Clients()[0].Ask(t.Context(), listed)
	if unknown, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("of a server below an unknown root is said %v, %v", err, unknown)
	}
}
