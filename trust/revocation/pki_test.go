// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authorityKey is a certificate authority of a test, with its key.
type authorityKey struct {
	*x509.Certificate
	key crypto.Signer
}

// pki is a root, two intermediate authorities below it, and their certificates and lists.
type pki struct {
	t             testing.TB
	now           time.Time
	root          *authorityKey
	first, second *authorityKey // the second signs by Ed25519
}

func newPKI(t testing.TB) *pki {
	p := &pki{t: t, now: time.Now()}
	p.root = p.authority("Root", nil, ecdsaKey(t))
	p.first = p.authority("First", p.root, ecdsaKey(t))
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.second = p.authority("Second", p.root, key)
	return p
}

func ecdsaKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// authority returns an authority issued by another one; nil for itself.
func (p *pki) authority(name string, issuer *authorityKey, key crypto.Signer,
	change ...func(*x509.Certificate),
) *authorityKey {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	return p.issue(template, issuer, key, change)
}

func (p *pki) issue(template *x509.Certificate, issuer *authorityKey, key crypto.Signer,
	change []func(*x509.Certificate),
) *authorityKey {
	p.t.Helper()
	template.NotBefore, template.NotAfter = p.now.Add(-time.Hour), p.now.Add(1000*time.Hour)
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	for _, f := range change {
		f(template)
	}
	parent := &authorityKey{template, key}
	if issuer != nil {
		parent = issuer
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent.Certificate, key.Public(), parent.key)
	if err != nil {
		p.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		p.t.Fatal(err)
	}
	return &authorityKey{cert, key}
}

// leaf returns the chain of a certificate of a caller.
func (p *pki) leaf(issuer *authorityKey, serial int64, change ...func(*x509.Certificate)) []*x509.Certificate {
	p.t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "caller"}, SerialNumber: big.NewInt(serial)}
	cert := p.issue(template, issuer, ecdsaKey(p.t), change)
	chain := []*x509.Certificate{cert.Certificate, issuer.Certificate}
	if issuer != p.root {
		chain = append(chain, p.root.Certificate)
	}
	return chain
}

// crl returns a list revoking serial numbers, from an hour ago to an hour from now.
func (p *pki) crl(issuer *authorityKey, number int64, revoked []int64, change ...func(*x509.RevocationList)) []byte {
	p.t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: time.Now().Add(-time.Hour),
		NextUpdate: time.Now().Add(time.Hour)}
	for _, n := range revoked {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: time.Now().Add(-time.Hour)})
	}
	for _, f := range change {
		f(template)
	}
	raw, err := x509.CreateRevocationList(rand.Reader, template, issuer.Certificate, issuer.key)
	if err != nil {
		p.t.Fatal(err)
	}
	return raw
}

// delta makes a list a delta to one with a number.
func delta(base int64) func(*x509.RevocationList) {
	return extension(asn1.ObjectIdentifier{2, 5, 29, 27}, true, base)
}

// extension adds an extension to a list; its value is encoded by encoding/asn1.
func extension(id asn1.ObjectIdentifier, critical bool, value any) func(*x509.RevocationList) {
	raw, err := asn1.Marshal(value)
	if err != nil {
		panic(err)
	}
	return func(l *x509.RevocationList) {
		l.ExtraExtensions = append(l.ExtraExtensions, pkix.Extension{Id: id, Critical: critical, Value: raw})
	}
}

// times sets from when to when a list is valid, from now on.
func times(from, until time.Duration) func(*x509.RevocationList) {
	return func(l *x509.RevocationList) {
		l.ThisUpdate, l.NextUpdate = time.Now().Add(from), time.Now().Add(until)
	}
}

func inPEM(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: raw})
}

// write writes a file, so it is another one by its time.
func write(t testing.TB, name string, raw []byte) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.TempDir(), name)
	}
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	stamp := time.Unix(0, time.Now().UnixNano())
	if err := os.Chtimes(name, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	return name
}

// start starts a Checker for the time of a test.
func start(t *testing.T, config Config) *Checker {
	t.Helper()
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// reason returns the reason a chain is refused by present knowledge; empty if it is not refused.
func reason(t *testing.T, err error) Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	refusal, ok := err.(*Refusal)
	if !ok {
		t.Fatalf("%T is no Refusal", err)
	}
	return refusal.Reason
}

// lists returns sources of lists.
func lists(names ...string) (all []Source) {
	for _, name := range names {
		all = append(all, Source{Kind: CRL, Location: name})
	}
	return all
}
