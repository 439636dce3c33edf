// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"

// asked is what a decision point was asked, in few words: the Partner's AIC, and the AIC in the client's certificate.
type asked struct{ Partner, Client string }

// serve starts a decision point that denies each call. It returns a pointer to the last question.
func serve(t *testing.T, secure *tls.Config) (url string, last *asked) {
	t.Helper()
	last = new(asked)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			Input struct{ Resource struct{ AgentAIC string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			t.Error(err)
		}
		*last = asked{Partner: question.Input.Resource.AgentAIC}
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			named, err := identity.FromCertificate(r.TLS.PeerCertificates[0])
			if err != nil {
				t.Error(err)
			}
			last.Client = string(named)
		}
		_, _ = io.WriteString(w, `{"result":{"allow":false,"reason":"closed"}}`)
	}))
	if s.TLS = secure; secure != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.URL, last
}

// ask opens a decision point, and asks it about a call.
func ask(t *testing.T, d *DecisionPoint, partner string) error {
	t.Helper()
	point, err := d.Open(partner)
	if err != nil {
		return err
	}
	defer point.Close()
	return point.Decide(t.Context(), &policy.Call{Peer: new(identity.Peer), Dialect: "aip", Command: "start"})
}

// TestDecisionPoint: beside the gateway it is reached as it is, and learns the Partner.
func TestDecisionPoint(t *testing.T) {
	url, last := serve(t, nil)
	for _, partner := range []string{aic, ""} {
		err := ask(t, &DecisionPoint{URL: url + "/v1/data/aip/allow"}, partner)
		if err == nil || err.Error() != "the decision point has denied the call: closed" {
			t.Errorf("the decision is %v", err)
		}
		if diff := cmp.Diff(asked{Partner: partner}, *last); diff != "" {
			t.Errorf("the question (-want +got):\n%s", diff)
		}
	}
	// With networks of its own, those beside the gateway are no longer allowed.
	err := ask(t, &DecisionPoint{URL: url, AllowNetworks: []string{"10.0.0.0/8"}}, aic)
	if err == nil || !strings.Contains(err.Error(), "the address is not public: it is in 127.0.0.0/8") {
		t.Errorf("of a decision point outside its networks is said %v", err)
	}
}

// TestDecisionPointTLS: the roots decide which decision point is believed, and it is shown the client's certificate.
func TestDecisionPointTLS(t *testing.T) {
	made := devpkitest.Make(t, devpki.Options{})
	url, last := serve(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert,
		Certificates: []tls.Certificate{devpkitest.KeyPair(t, made.Server)}})
	d := &DecisionPoint{URL: url, CA: []string{made.CA.Cert}, Cert: made.Leader.Cert, Key: made.Leader.Key}
	err := ask(t, d, aic)
	if err == nil || err.Error() != "the decision point has denied the call: closed" {
		t.Fatalf("the decision is %v", err)
	}
	if diff := cmp.Diff(asked{aic, string(made.Leader.AIC)}, *last); diff != "" {
		t.Errorf("the question (-want +got):\n%s", diff)
	}
	d.CA = nil
	err = ask(t, d, aic)
	if unknown, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("of a decision point below an unknown root is said %v, %v", err, unknown)
	}
}

// TestDecisionPointMistakes: what is said about settings of no use, before anything is asked.
func TestDecisionPointMistakes(t *testing.T) {
	none, open := filepath.Join(t.TempDir(), "none.pem"), filepath.Join(t.TempDir(), "open.pem")
	if err := os.WriteFile(open, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conftest.Refuses(t, map[string]string{
		`{}`:                                     "the URL must begin with http:// or https://, and have a host",
		`{"url":"opa:8181"}`:                     "the URL must begin with http:// or https://, and have a host",
		`{"url":"http:///v1/data"}`:              "the URL must begin with http:// or https://, and have a host",
		`{"url":"http://me:hunter2@127.0.0.1/"}`: "the URL must have no credentials, and no fragment",
		`{"url":"http://127.0.0.1/#a"}`:          "the URL must have no credentials, and no fragment",
		`{"url":"http://127.0.0.1","allow_networks":["127.0.0.1"]}`: `allow_networks: "127.0.0.1" is no network, such as ` +
			"10.0.0.0/8",
		`{"url":"https://127.0.0.1","ca":["` + none + `"]}`: "tls ca: open " + none + ": no such file or directory",
		`{"url":"https://127.0.0.1","ca":["` + open + `"]}`: "tls ca: " + open + `: there is no PEM block "CERTIFICATE"`,
		`{"url":"https://127.0.0.1","cert":"` + open + `"}`: "tls client_cert needs a certificate and its key",
		`{"url":"https://127.0.0.1","key":"` + open + `"}`:  "tls client_cert needs a certificate and its key",
		`{"url":"https://127.0.0.1","cert":"{env.NO_SUCH_FILE}","key":"k"}`: "tls client_cert: the name of a file has a " +
			"placeholder without a value: {env.NO_SUCH_FILE}",
	}, func(text string) error {
		d := new(DecisionPoint)
		if err := json.Unmarshal([]byte(text), d); err != nil {
			t.Fatal(err)
		}
		_, err := d.Open(aic)
		return err
	})
}
