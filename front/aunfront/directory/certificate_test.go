// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/aun"
)

// TestWhoIsShown: there are a certificate and an agent.md of each fronted agent, and of a client while it is logged in;
// of others there is nothing, and a name other than an AID is not even looked for.
func TestWhoIsShown(t *testing.T) {
	s, pki := newSite(t)
	alice := pki.Identity("alice.aid.pub")
	in := map[aun.AID][]*x509.Certificate{"alice.aid.pub": alice.Chain}
	var unknown error
	asked := 0
	s.Client = func(_ context.Context, aid aun.AID) ([]*x509.Certificate, error) {
		asked++
		return in[aid], unknown
	}
	get := func(url string, status int, part string) string {
		t.Helper()
		w := request(s, "GET", url)
		if w.Code != status || !strings.Contains(w.Body.String(), part) {
			t.Errorf("GET %s: %d %s", url, w.Code, w.Body)
		}
		if head := request(s, "HEAD", url); head.Code != status {
			t.Errorf("HEAD %s: %d", url, head.Code)
		}
		return w.Body.String()
	}
	const pki1, md = "https://gateway.aid.pub/pki/cert/", "/agent.md"

	chain, err := aun.ParseChain(get(pki1+"travel.aid.pub", 200, "BEGIN CERTIFICATE"))
	if err != nil || len(chain) != 1 || chain[0].Subject.CommonName != "travel.aid.pub" {
		t.Errorf("the certificate of an agent is %v, %v", chain, err)
	}
	get(pki1+"travel.aid.pub?cert_fingerprint="+fingerprintOf(chain[0]), 200, "BEGIN CERTIFICATE")
	get(pki1+"travel.aid.pub?cert_fingerprint="+fingerprint(alice), 404, "another fingerprint")

	if got := get(pki1+"Alice.aid.pub", 200, ""); got != alice.CertPEM() {
		t.Errorf("the certificate of a client is %s", got)
	}
	get("https://alice.aid.pub"+md, 200, "aid: \"alice.aid.pub\"\n")
	if w := request(s, "GET", "https://alice.aid.pub"+md); w.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("that a client is there may be cached: %s", w.Header().Get("Cache-Control"))
	}
	travel := pki.Identity("travel.aid.pub")
	s.Agents = map[aun.AID][]*x509.Certificate{"travel.aid.pub": travel.Chain, "other.aid.pub": travel.Chain}
	if got := get(pki1+"travel.aid.pub", 200, ""); got != travel.CertPEM() {
		t.Errorf("the certificate of an agent that has one is %s", got)
	}
	get(pki1+"other.aid.pub", 404, "no certificate of other.aid.pub")
	s.Agents = nil
	in["travel.aid.pub"] = pki.Identity("travel.aid.pub").Chain
	if got := get(pki1+"travel.aid.pub", 200, ""); got == string(aun.EncodeCerts(chain[0])) {
		t.Error("the certificate of an agent that is logged in itself is not its own")
	}

	clear(in)
	get(pki1+"alice.aid.pub", 404, "no client that has logged in by")
	get("https://alice.aid.pub"+md, 404, "no client that has logged in by")
	unknown = errors.New("a gateway does not answer")
	get(pki1+"alice.aid.pub", 503, "ask again")
	get("https://alice.aid.pub"+md, 503, "ask again")
	get(pki1+"travel.aid.pub", 200, "BEGIN CERTIFICATE")

	asked = 0
	for _, name := range []string{"", "alice", "alice..pub", "..%2Fgw.pem", strings.Repeat("a.", 200) + "pub"} {
		if got := get(pki1+name, 404, "must be an AID"); len(got) > 100 {
			t.Errorf("%q is answered with %d bytes", name, len(got))
		}
	}
	if asked > 0 {
		t.Error("a client is looked for whose name is no AID")
	}
}
