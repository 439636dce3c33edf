// SPDX-License-Identifier: Apache-2.0

// Package catest is a scripted certificate authority for agents, for tests. It answers as the reference server of ACPs
// v2.1 does, with the same bodies, and counts what it is made to do. It shares no code with the client.
package catest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Agent is what the registry knows about an agent.
type Agent struct {
	Active   bool
	DNS      []string
	Lifetime time.Duration // of its certificates; default 49 days
}

// Counts are what the authority was made to do.
type Counts struct {
	EABs     int // that were spent
	Accounts int
	Orders   int
	Issued   map[string]int // certificates, by their usage
	Revoked  int
}

// CA is the authority, and the part of a registry that it asks. It is an http.Handler.
type CA struct {
	URL string // where it is reached; set by New, and to be set again behind a server

	mu       sync.Mutex
	root     issuer
	between  issuer
	agents   map[string]*Agent
	eabs     map[string]*eab
	nonces   map[string]bool
	accounts []*account
	orders   []*order
	revoked  map[string]bool // serial numbers
	dead     int             // nonces that end at once
	noStatus bool
	fetch    Fetch // nil for an authority of ACPs v2.1
	crl      []byte
	counts   Counts
	seq      int           // of the last change in which agents are active
	news     chan struct{} // closed at the next one
}

type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

type eab struct {
	mac   []byte
	aic   string
	spent bool
}

type account struct {
	key *ecdsa.PublicKey
	aic string // empty at an authority of v01.00, where accounts are of any agents
}

type order struct {
	account    int
	aic, usage string
	status     string
	chain      []byte // PEM
	serial     string
	token      string // of its challenge
	met        int    // how often the authorization was asked for since the challenge was to be met, from 1
}

// New makes an authority without agents.
func New(t testing.TB) *CA {
	t.Helper()
	ca := &CA{URL: "http://localhost:29003", agents: make(map[string]*Agent), eabs: make(map[string]*eab),
		nonces: make(map[string]bool), revoked: make(map[string]bool), news: make(chan struct{})}
	ca.counts.Issued = make(map[string]int)
	ca.root = authority(t, "Root", nil)
	ca.between = authority(t, "Intermediate", &ca.root)
	return ca
}

func authority(t testing.TB, name string, by *issuer) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ACPs Test " + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(20, 0, 0), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{cert, key}
}

// Serve starts a server of the authority.
func (ca *CA) Serve(t testing.TB) {
	server := httptest.NewServer(ca)
	t.Cleanup(server.Close)
	ca.URL = server.URL
}

// Directory is the URL of its directory.
func (ca *CA) Directory() string { return ca.URL + "/acps-atr-v2/acme/directory" }

// Root returns the root that agents trust.
func (ca *CA) Root() *x509.Certificate { return ca.root.cert }

// Add has the registry know an agent, and approve it.
func (ca *CA) Add(aic string, a Agent) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	a.Active = true
	ca.agents[aic] = &a
}

// EAB gives an EAB for an agent, as the registry answers it.
func (ca *CA) EAB(aic string) []byte {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	id, mac := random(16), make([]byte, 32)
	_, _ = rand.Read(mac)
	ca.eabs[id] = &eab{mac: mac, aic: aic}
	body, _ := json.Marshal(map[string]any{"keyId": id, "macKey": base64.RawURLEncoding.EncodeToString(mac), "aic": aic,
		"expiresAt": time.Now().Add(24 * time.Hour).Format(time.RFC3339Nano)})
	return body
}

// Disable has the registry disable an agent: the certificates that it has are revoked. Enable does not undo that.
func (ca *CA) Disable(aic string) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	ca.agents[aic].Active = false
	defer ca.turned()
	for _, o := range ca.orders {
		if o.aic == aic && o.serial != "" {
			ca.revoked[o.serial] = true
		}
	}
}

// Enable has the registry enable an agent again.
func (ca *CA) Enable(aic string) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	ca.agents[aic].Active = true
	ca.turned()
}

// Active reports whether the registry has an agent as active.
func (ca *CA) Active(aic string) bool {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	return ca.agents[aic] != nil && ca.agents[aic].Active
}

// Revoked reports whether a certificate is revoked.
func (ca *CA) Revoked(cert *x509.Certificate) bool {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	return ca.revoked[serialOf(cert)]
}

// Revoke revokes a certificate.
func (ca *CA) Revoke(cert *x509.Certificate) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	ca.revoked[serialOf(cert)] = true
}

// EndNonces has the next nonces end before they can be used, as at the end of an hour.
func (ca *CA) EndNonces(n int) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	ca.dead = n
}

// HideStatus has it answer no status of single certificates.
func (ca *CA) HideStatus() {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	ca.noStatus = true
}

// Publish makes the list of revoked certificates anew, for the day before its end. Before the first time there is none.
func (ca *CA) Publish(t testing.TB, until time.Time) {
	t.Helper()
	ca.mu.Lock()
	defer ca.mu.Unlock()
	from := until.Add(-24 * time.Hour)
	list := &x509.RevocationList{Number: big.NewInt(from.UnixNano()), ThisUpdate: from, NextUpdate: until}
	for serial := range ca.revoked {
		n, _ := new(big.Int).SetString(serial, 16)
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: n, RevocationTime: time.Now()})
	}
	var err error
	if ca.crl, err = x509.CreateRevocationList(rand.Reader, list, ca.between.cert, ca.between.key); err != nil {
		t.Fatal(err)
	}
}

// Counts returns what it was made to do so far.
func (ca *CA) Counts() Counts {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	c := ca.counts
	c.Issued = make(map[string]int)
	for usage, n := range ca.counts.Issued {
		c.Issued[usage] = n
	}
	return c
}

// RoundTrip answers without a network, for tests in bubbles. It implements http.RoundTripper.
func (ca *CA) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if req.Body == nil {
		req.Body = http.NoBody
	}
	ca.ServeHTTP(w, req)
	return w.Result(), nil
}

func serialOf(cert *x509.Certificate) string { return strings.ToUpper(cert.SerialNumber.Text(16)) }

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return fmt.Sprintf("%x", b)
}
