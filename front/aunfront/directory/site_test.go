// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/translate"
)

func newSite(t *testing.T) (*Site, *auntest.PKI) {
	pki := auntest.NewPKI(t)
	own := pki.Identity("gateway.aid.pub")
	d := of()
	d.set(own, travel, fixed("gateway.aid.pub", &translate.Card{Name: "Gateway"}))
	return &Site{
		Directory: d, Identity: own, Roots: pki.Roots(), Issued: newYear,
		Gateway: func(r *http.Request) string { return "wss://" + r.Host + "/aun" },
	}, pki
}

// request sends a request to a site.
func request(s *Site, method, url string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if h := s.Find(r); h != nil {
		h.ServeHTTP(w, r)
	} else {
		w.WriteHeader(http.StatusTeapot)
	}
	return w
}

// tokenKey returns the public key of the tokens of an identity, in PEM.
func tokenKey(t *testing.T, id *aun.Identity) string {
	t.Helper()
	key, err := id.TokenKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func fingerprint(id *aun.Identity) string {
	sum := sha256.Sum256(id.Chain[0].Raw)
	return hex.EncodeToString(sum[:])
}

func TestSite(t *testing.T) {
	s, pki := newSite(t)
	for _, c := range []struct {
		url    string
		status int
		body   string // a part of it
	}{
		{"https://gateway.aid.pub/.well-known/aun-gateway", 200,
			`{"gateways":[{"url":"wss://gateway.aid.pub/aun","priority":1}]}`},
		{"https://travel.aid.pub:8443/.well-known/aun-gateway", 200, `"wss://travel.aid.pub:8443/aun"`},
		{"https://gateway.aid.pub/health", 200, `{"status":"ok"}`},
		{"https://gateway.aid.pub/pki/chain", 200, "-----BEGIN CERTIFICATE-----"},
		{"https://gateway.aid.pub/pki/cert/Gateway.aid.pub", 200, s.Identity.CertPEM()},
		{"https://gateway.aid.pub/pki/cert/gateway.aid.pub?cert_fingerprint=sha256:" + fingerprint(s.Identity), 200,
			s.Identity.CertPEM()},
		{"https://gateway.aid.pub/pki/cert/gateway.aid.pub?cert_fingerprint=sha256:00", 404, "another fingerprint"},
		{"https://gateway.aid.pub/pki/cert/travel.aid.pub", 200, "-----BEGIN CERTIFICATE-----"},
		{"https://gateway.aid.pub/pki/cert/other.aid.pub", 404, "no certificate of other.aid.pub"},
		{"https://gateway.aid.pub/pki/crl.json", 404, "no such document"},
		{"https://gateway.aid.pub/pki/ocsp/01", 404, "no such document"},
		{"https://gateway.aid.pub/pki/token-key.pem", 200, tokenKey(t, s.Identity)},
		{"https://gateway.aid.pub/pki/trust-roots.json", 200, `"authority_signature":""`},
		{"https://travel.aid.pub/agent.md", 200, "---\naid: \"travel.aid.pub\"\n"},
		{"https://TRAVEL.aid.pub:8443/agent.md", 200, "---\naid: \"travel.aid.pub\"\n"},
		{"https://other.aid.pub/agent.md", 404, "no agent of this gateway has the AID other.aid.pub"},
		{"https://localhost/agent.md", 418, ""},
		{"https://travel.aid.pub/", 418, ""},
	} {
		w := request(s, "GET", c.url)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("GET %s: %d %s", c.url, w.Code, w.Body)
		}
	}
	s.CRL = pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: pki.Revoke(pki.Identity("old.aid.pub"))})
	crl := request(s, "GET", "https://gateway.aid.pub/pki/crl.json").Body.String()
	if gjson.Get(crl, "crl_pem").Str != string(s.CRL) {
		t.Errorf("the list of revoked certificates is %s", crl)
	}
	s.Healthy = func() bool { return false }
	if w := request(s, "GET", "https://gateway.aid.pub/health"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("an unhealthy gateway answers %d", w.Code)
	}
	w := request(s, "POST", "https://travel.aid.pub/agent.md")
	if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST is answered with %d", w.Code)
	}
}

// TestChain: a client that trusts the root finds its way from the gateway's certificate.
func TestChain(t *testing.T) {
	s, pki := newSite(t)
	chain, err := aun.ParseChain(request(s, "GET", "https://gateway.aid.pub/pki/chain").Body.String())
	if err != nil {
		t.Fatal(err)
	}
	for i, above := range chain {
		below := s.Identity.Chain[0]
		if i > 0 {
			below = chain[i-1]
		}
		if err := below.CheckSignatureFrom(above); err != nil {
			t.Errorf("certificate %d: %v", i, err)
		}
	}
	last := chain[len(chain)-1]
	if !strings.Contains(string(pki.RootsPEM()), string(aun.EncodeCerts(last))) || last.CheckSignatureFrom(last) != nil {
		t.Errorf("the last certificate is %s, not the root", last.Subject)
	}
	roots := request(s, "GET", "https://gateway.aid.pub/pki/trust-roots.json").Body.String()
	if n := gjson.Get(roots, "root_cas.#").Int(); n != 1 ||
		gjson.Get(roots, "root_cas.0.certificate").Str != string(aun.EncodeCerts(last)) ||
		gjson.Get(roots, "root_cas.0.status").Str != "active" ||
		gjson.Get(roots, "next_update").Str != "2026-01-02T00:00:00Z" {
		t.Errorf("the roots: %s", roots)
	}
	if answer, err := s.TrustRoots(); err != nil || string(answer) != roots {
		t.Errorf("meta.trust_roots: %s %v", answer, err)
	}
}

// TestETag: HEAD has the header of GET, and a caller with the document is not sent it again.
func TestETag(t *testing.T) {
	s, _ := newSite(t)
	const url = "https://travel.aid.pub/agent.md"
	full := request(s, "GET", url)
	head := request(s, "HEAD", url)
	tag := full.Header().Get("ETag")
	switch {
	case tag == "" || head.Header().Get("ETag") != tag:
		t.Errorf("the tags are %q and %q", tag, head.Header().Get("ETag"))
	case head.Body.Len() != 0 || head.Header().Get("Content-Length") != full.Header().Get("Content-Length"):
		t.Error("HEAD does not answer as GET does")
	case full.Header().Get("Content-Type") != "text/markdown; charset=utf-8":
		t.Errorf("the media type is %s", full.Header().Get("Content-Type"))
	case full.Header().Get("Last-Modified") != "Thu, 01 Jan 2026 00:00:00 GMT":
		t.Errorf("it was modified at %s", full.Header().Get("Last-Modified"))
	}
	if w := request(s, "GET", url, "If-None-Match", `"x", W/`+tag); w.Code != 304 || w.Body.Len() != 0 {
		t.Errorf("a caller that has it gets %d %s", w.Code, w.Body)
	}
	if w := request(s, "GET", url, "If-None-Match", `"x"`); w.Code != 200 {
		t.Errorf("a caller that has another one gets %d", w.Code)
	}
}

var signatureBlock = regexp.MustCompile(
	`\n<!-- AUN-SIGNATURE\ncert_fingerprint: sha256:([0-9a-f]{64})\ntimestamp: \d+\nsignature: (\S+)\n-->\n$`)

// TestSignature: the agent.md of the gateway's own AID is signed with its key; others are not, because clients accept
// the key of the agent only.
func TestSignature(t *testing.T) {
	s, _ := newSite(t)
	if text := request(s, "GET", "https://travel.aid.pub/agent.md").Body.String(); strings.Contains(text, "SIGNATURE") {
		t.Errorf("another agent's is signed:\n%s", text)
	}
	text := request(s, "GET", "https://gateway.aid.pub/agent.md").Body.String()
	m := signatureBlock.FindStringSubmatchIndex(text)
	if m == nil {
		t.Fatalf("it is not signed:\n%s", text)
	}
	signature, err := base64.StdEncoding.DecodeString(text[m[4]:m[5]])
	if err != nil {
		t.Fatal(err)
	}
	leaf := s.Identity.Chain[0]
	sum := sha256.Sum256([]byte(text[:m[0]+1]))
	if !ecdsa.VerifyASN1(leaf.PublicKey.(*ecdsa.PublicKey), sum[:], signature) {
		t.Error("the signature is wrong")
	}
	if fingerprint := sha256.Sum256(leaf.Raw); text[m[2]:m[3]] != hex.EncodeToString(fingerprint[:]) {
		t.Error("the fingerprint is that of another certificate")
	}
	again := request(s, "GET", "https://gateway.aid.pub/agent.md").Body.String()
	if again != text {
		t.Error("it is signed anew for each request, so that its ETag changes")
	}
}

// TestRenewedSigner: an unchanged agent.md is signed anew if the certificate of the gateway is another one, and its
// other agents' are as they were.
func TestRenewedSigner(t *testing.T) {
	pki := auntest.NewPKI(t)
	gateway := fixed("gateway.aid.pub", &translate.Card{Name: "Gateway"})
	d := of(travel, gateway)
	d.list(t.Context())
	before := len(d.changes)
	signer := func() string {
		text := string(d.get(t.Context(), "gateway.aid.pub").agentMD)
		if m := signatureBlock.FindStringSubmatch(text); m != nil {
			return m[1]
		}
		return ""
	}
	if got := signer(); got != "" {
		t.Errorf("without an identity, it is signed by %s", got)
	}
	for i, own := range []*aun.Identity{pki.Identity("gateway.aid.pub"), pki.Identity("gateway.aid.pub")} {
		for range 2 { // again, by the same one
			d.set(own, travel, gateway)
		}
		sum := sha256.Sum256(own.Chain[0].Raw)
		if got, want := signer(), hex.EncodeToString(sum[:]); got != want {
			t.Errorf("certificate %d: it is signed by %q, want %s", i, got, want)
		}
		if got := len(d.changes) - before; got != i+1 {
			t.Errorf("certificate %d: there are %d changes", i, got)
		}
	}
}
