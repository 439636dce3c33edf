// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"net/http"
	"os"
	"testing"
	"time"
)

// captured returns the body that a server of ACPs v2.1 has answered.
func captured(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/captured/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestCaptured reads what the servers of ACPs v2.1 have answered.
func TestCaptured(t *testing.T) {
	id := identifier{Type: "agent", Value: "1.2.156.3088.1.0001.00001.NENBED.MH2BLU.0VKU", Usage: ServerAuth}
	if d, err := readDirectory(captured(t, "01-directory")); err != nil ||
		d.NewAccount != "http://localhost:29003/acps-atr-v2/acme/new-account" {
		t.Errorf("the directory is %+v: %v", d, err)
	}
	if o, err := readOrder(captured(t, "10-order-serverAuth"), id); err != nil || o.Status != orderReady {
		t.Errorf("the order is %+v: %v", o, err)
	}
	if o, err := readOrder(captured(t, "12-finalize-serverAuth"), id); err != nil || o.Status != orderValid ||
		o.Certificate == "" {
		t.Errorf("the order is %+v: %v", o, err)
	}
	id.Usage = ClientAuth
	if o, err := readOrder(captured(t, "10-order-serverAuth"), id); err == nil {
		t.Errorf("the order of another usage is taken: %+v", o)
	}
	if file, err := readAuthorization(captured(t, "11-authz")); err != nil || file != nil {
		t.Errorf("a valid authorization asks for %+v: %v", file, err)
	}
	chain, err := readChain(captured(t, "13-cert-serverAuth"))
	if err != nil || len(chain) != 2 || chain[0].Subject.CommonName != id.Value {
		t.Fatalf("the chain is %v: %v", chain, err)
	}
	if err := chain[0].CheckSignatureFrom(chain[1]); err != nil {
		t.Error(err)
	}
	e, err := ReadEAB(captured(t, "24-eab"))
	if err != nil || e.AIC != id.Value || len(e.mac) != 32 || e.KeyID != "01ef751bc86d44fe8abc336042bbd21e" {
		t.Errorf("the EAB is %+v: %v", e, err)
	}
	if err := e.check(id.Value, e.Expires.Add(-time.Second)); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]Problem{
		"05b-account-eab-wrong-mac": {400, badSignature, "Invalid externalAccountBinding signature", 0},
		"20-nonce-reused":           {400, badNonce, "Invalid or expired nonce", 0},
		"25b-kid-not-a-number":      {500, "serverinternal", "Internal server error", 0},
		"90-rate-limit": {429, "ratelimited", "Public read request limit exceeded. Please retry later.",
			time.Minute},
	} {
		header := http.Header{}
		if want.Wait > 0 {
			header.Set("Retry-After", "60")
		}
		if got := readProblem(want.Status, header, captured(t, name)); *got != want {
			t.Errorf("%s is %+v, want %+v", name, *got, want)
		}
	}
	ietf := readProblem(400, nil, []byte(`{"type":"urn:ietf:params:acme:error:badNonce"}`))
	if !isKind(ietf, badNonce) {
		t.Errorf("a problem of ACME is %+v", ietf)
	}
}
