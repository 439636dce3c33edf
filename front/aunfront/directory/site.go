// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
)

// Site serves the public documents of AUN: on every host those of a gateway, and on the host of each agent, and of each
// logged-in client, its agent.md. They need no login. A Site may serve any number of requests at once.
type Site struct {
	Directory *Directory
	Identity  *aun.Identity // of the gateway
	Roots     *aun.Roots    // that the certificates of clients must chain to; also those of Identity
	CRL       []byte        // the list of revoked certificates, in PEM; nil for none
	Issued    time.Time     // when the roots were configured
	// Client returns the certificates of a client's login, its own first; none if it is not logged in. After an error it
	// is not known now whether it is. nil: there are no clients.
	Client func(ctx context.Context, aid aun.AID) ([]*x509.Certificate, error)
	// Agents are the certificates of agents with one of their own.
	Agents map[aun.AID][]*x509.Certificate
	// Gateway returns the URL for clients' connections, for a request to a host.
	Gateway func(r *http.Request) string
	// Healthy reports whether clients may connect now; nil for always.
	Healthy func() bool
}

// documentAge is the time for which a document may be cached, in seconds.
const documentAge = "60"

// Find returns the handler of a request; nil if its path is none of AUN's. A missing document is answered with 404 and
// a sentence: without a handler, a site may answer with 200 and nothing, and clients take this for the document.
func (s *Site) Find(r *http.Request) http.Handler {
	switch path := r.URL.Path; {
	case path == "/.well-known/aun-gateway":
		return get(s.discovery)
	case path == "/health":
		return get(s.health)
	case path == aun.IssuersPath:
		return get(s.chain)
	case path == "/pki/token-key.pem":
		return get(s.tokenKey)
	case path == "/pki/trust-roots.json":
		return get(s.trustRoots)
	case path == "/pki/crl.json" && s.CRL != nil:
		return get(s.crl)
	case strings.HasPrefix(path, certificates):
		return get(s.certificate)
	case strings.HasPrefix(path, "/pki/"):
		return get(func(w http.ResponseWriter, _ *http.Request) { missing(w, "the gateway has no such document") })
	case path == "/agent.md":
		if _, err := aun.ParseAID(hostOf(r)); err == nil {
			return get(s.agentMD)
		}
	}
	return nil
}

// missing answers a request for a missing document.
func missing(w http.ResponseWriter, sentence string) { http.Error(w, sentence, http.StatusNotFound) }

// hostOf returns the host of a request, without its port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

// get returns a handler for GET and HEAD only.
func get(f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "use GET: the gateway makes its documents itself", http.StatusMethodNotAllowed)
			return
		}
		f(w, r)
	})
}

// send sends a document, or answers that the caller has it.
func send(w http.ResponseWriter, r *http.Request, media string, body []byte, changed time.Time) {
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	header := w.Header()
	header.Set("ETag", tag)
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "max-age="+documentAge)
	}
	if !changed.IsZero() {
		header.Set("Last-Modified", changed.UTC().Format(http.TimeFormat))
	}
	for one := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	header.Set("Content-Type", media)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

const (
	jsonType     = "application/json"
	pemType      = "application/x-pem-file"
	markdownType = "text/markdown; charset=utf-8"
)

// noTime is the time of a document with an unknown time of change.
var noTime time.Time

func sendJSON(w http.ResponseWriter, r *http.Request, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the document cannot be made", http.StatusInternalServerError)
		return
	}
	send(w, r, jsonType, body, noTime)
}

func (s *Site) discovery(w http.ResponseWriter, r *http.Request) {
	type gateway struct {
		URL      string `json:"url"`
		Priority int    `json:"priority"`
	}
	sendJSON(w, r, map[string]any{"gateways": []gateway{{s.Gateway(r), 1}}})
}

func (s *Site) health(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if s.Healthy != nil && !s.Healthy() {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte(`{"status":"ok"}` + "\n"))
	}
}

// chain sends the certificates above the gateway's, its issuer first and the root last.
func (s *Site) chain(w http.ResponseWriter, r *http.Request) {
	if len(s.Identity.Chain) == 0 {
		missing(w, "the gateway has no certificate yet")
		return
	}
	send(w, r, pemType, aun.EncodeCerts(issuers(s.Identity.Chain, s.Roots.Certificates())...), noTime)
}

// issuers returns the certificates above the first one of a chain: each has signed the one before it.
func issuers(chain, roots []*x509.Certificate) (above []*x509.Certificate) {
	known := append(chain[1:len(chain):len(chain)], roots...)
	for c := chain[0]; len(above) < len(known); {
		next := (*x509.Certificate)(nil)
		for _, ca := range known {
			if !ca.Equal(c) && c.CheckSignatureFrom(ca) == nil {
				next = ca
				break
			}
		}
		if next == nil {
			break
		}
		above, c = append(above, next), next
	}
	return above
}

// fingerprintOf returns the SHA-256 of a certificate, in lower-case hex.
func fingerprintOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// tokenKey sends the key for verifying the tokens of the gateway, for another gateway accepting them.
func (s *Site) tokenKey(w http.ResponseWriter, r *http.Request) {
	key, err := s.Identity.TokenKey()
	if err != nil {
		http.Error(w, "the document cannot be made", http.StatusInternalServerError)
		return
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		http.Error(w, "the document cannot be made", http.StatusInternalServerError)
		return
	}
	send(w, r, pemType, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), noTime)
}

func (s *Site) crl(w http.ResponseWriter, r *http.Request) {
	sendJSON(w, r, map[string]string{"crl_pem": string(s.CRL)})
}

func (s *Site) trustRoots(w http.ResponseWriter, r *http.Request) { sendJSON(w, r, s.rootList()) }

// TrustRoots answers meta.trust_roots with a result in JSON: the configured roots. No authority has signed the list.
func (s *Site) TrustRoots() ([]byte, error) { return json.Marshal(s.rootList()) }

// rootsAge is when a client should read the list of roots again.
const rootsAge = 24 * time.Hour

func (s *Site) rootList() any {
	type root struct {
		ID           string `json:"id"`
		Name         string `json:"name"`
		Organization string `json:"organization"`
		Certificate  string `json:"certificate"`
		Fingerprint  string `json:"fingerprint_sha256"`
		Status       string `json:"status"`
	}
	list := []root{}
	for _, c := range s.Roots.Certificates() {
		if c.CheckSignatureFrom(c) != nil {
			continue // an intermediate
		}
		fingerprint, status := fingerprintOf(c), "active"
		if time.Now().After(c.NotAfter) {
			status = "retired"
		}
		list = append(list, root{"root-" + fingerprint[:16], c.Subject.CommonName,
			strings.Join(c.Subject.Organization, ", "), string(aun.EncodeCerts(c)), fingerprint, status})
	}
	issued := s.Issued.UTC().Truncate(time.Second)
	return map[string]any{"version": issued.Unix(), "issued_at": issued, "next_update": issued.Add(rootsAge),
		"authority_signature": "", "root_cas": list}
}
