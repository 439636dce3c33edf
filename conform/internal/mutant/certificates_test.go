// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/run"
)

// AICs with correct check digits.
const (
	partnerAIC = "10001000011K912345E789ABCDEF2353"
	leaderAIC  = "10001000011K94ZH3VDXLP4S5EB63614"
	otherAIC   = "10001000011K96TFZ2B9H9I1J85AUF77"
)

// certificates are those of the Partner and of its callers.
type certificates struct {
	server     tls.Certificate
	roots      *x509.CertPool
	ca         string // a file
	identities map[string]*run.ProfileIdentity
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newCertificates(t *testing.T) certificates {
	t.Helper()
	dir := t.TempDir()
	trusted, foreign := newAuthority(t, "Root"), newAuthority(t, "Foreign root")
	all := certificates{roots: x509.NewCertPool(), ca: filepath.Join(dir, "ca.pem"),
		identities: make(map[string]*run.ProfileIdentity)}
	all.roots.AddCert(trusted.certificate)
	write(t, all.ca, "CERTIFICATE", trusted.certificate.Raw)
	var err error
	cert, key := trusted.issue(t, dir, "server", partnerAIC, time.Hour)
	if all.server, err = tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	for name, caller := range map[string]struct {
		by    authority
		aic   string
		valid time.Duration
	}{"leader": {trusted, leaderAIC, time.Hour}, "other": {trusted, otherAIC, time.Hour},
		"foreign": {foreign, leaderAIC, time.Hour}, "expired": {trusted, leaderAIC, -time.Hour},
		"nameless": {trusted, "partner.example", time.Hour}} {
		cert, key := caller.by.issue(t, dir, name, caller.aic, caller.valid)
		all.identities[name] = &run.ProfileIdentity{Cert: cert, Key: key}
	}
	return all
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key}
}

// issue writes a certificate and its key, and returns the files.
func (a authority) issue(t *testing.T, dir, name, aic string, valid time.Duration) (cert, key string) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: aic},
		NotBefore: time.Now().Add(-90 * time.Minute), NotAfter: time.Now().Add(valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		URIs:        []*url.URL{{Scheme: "agent", Host: aic}}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	write(t, cert, "CERTIFICATE", der)
	write(t, key, "EC PRIVATE KEY", encoded)
	return cert, key
}

func write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
