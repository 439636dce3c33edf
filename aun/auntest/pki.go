// SPDX-License-Identifier: Apache-2.0

// Package auntest is shared by tests of AUN: certificates, and a network in memory.
package auntest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
)

// PKI is a root and an issuer below it.
type PKI struct {
	t          testing.TB
	root       *x509.Certificate
	issuer     *x509.Certificate
	rootKey    *ecdsa.PrivateKey
	issuerKey  *ecdsa.PrivateKey
	nextSerial int64
}

// NewPKI makes a root and an issuer, valid for ten years from now.
func NewPKI(t testing.TB) *PKI {
	t.Helper()
	p := &PKI{t: t, rootKey: newKey(t, elliptic.P256()), issuerKey: newKey(t, elliptic.P256())}
	ca := func(name string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	}
	root, issuer := ca("AUN test root"), ca("aid.test")
	p.root = p.sign(root, root, &p.rootKey.PublicKey, p.rootKey)
	p.issuer = p.sign(issuer, p.root, &p.issuerKey.PublicKey, p.rootKey)
	return p
}

// Roots returns the roots of this PKI.
func (p *PKI) Roots() *aun.Roots {
	p.t.Helper()
	r, err := aun.NewRoots(p.RootsPEM())
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// RootsPEM returns the root and the issuer in PEM.
func (p *PKI) RootsPEM() []byte { return aun.EncodeCerts(p.root, p.issuer) }

// RootPEM returns the root in PEM.
func (p *PKI) RootPEM() []byte { return aun.EncodeCerts(p.root) }

// Identity returns an AID with a key of P-256 and a certificate for a year.
func (p *PKI) Identity(aid string) *aun.Identity {
	return p.IdentityFor(aid, elliptic.P256(), 365*24*time.Hour)
}

// IdentityFor returns an AID with a key of a curve, and a certificate valid for a time from now.
func (p *PKI) IdentityFor(aid string, curve elliptic.Curve, valid time.Duration) *aun.Identity {
	p.t.Helper()
	key := newKey(p.t, curve)
	leaf := p.sign(&x509.Certificate{Subject: pkix.Name{CommonName: aid}, DNSNames: []string{aid},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature}, p.issuer, &key.PublicKey, p.issuerKey)
	return &aun.Identity{AID: aun.AID(aid), Key: key, Chain: []*x509.Certificate{leaf, p.issuer}}
}

// Revoke returns a revocation list, in DER, with the certificate of an identity. The next one comes in an hour.
func (p *PKI) Revoke(id *aun.Identity) []byte {
	p.t.Helper()
	return p.RevokeUntil(id, time.Now().Add(time.Hour))
}

// RevokeUntil returns such a list, with the time of the next one.
func (p *PKI) RevokeUntil(id *aun.Identity, next time.Time) []byte {
	p.t.Helper()
	list, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: next.Add(-time.Hour), NextUpdate: next,
		RevokedCertificateEntries: []x509.RevocationListEntry{
			{SerialNumber: id.Chain[0].SerialNumber, RevocationTime: time.Now()},
		},
	}, p.issuer, p.issuerKey)
	if err != nil {
		p.t.Fatal(err)
	}
	return list
}

func (p *PKI) sign(template, parent *x509.Certificate, key *ecdsa.PublicKey, by *ecdsa.PrivateKey) *x509.Certificate {
	p.t.Helper()
	p.nextSerial++
	template.SerialNumber = big.NewInt(p.nextSerial)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, by)
	if err != nil {
		p.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		p.t.Fatal(err)
	}
	return cert
}

func newKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
