// SPDX-License-Identifier: Apache-2.0

// Package aunpeer has scripted peers of AUN for tests: a client, a gateway with an agent behind it, and an assignee.
// They follow the texts of AUN and share no code with the tested gateway, so that both do not share a mistake.
package aunpeer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// PKI is an issuer of AIDs with its root.
type PKI struct {
	Name   string // of the issuer, such as aid.test
	Root   *Identity
	Issuer *Identity
}

// Identity is a certificate with its key, for an AID or an authority.
type Identity struct {
	AID   string
	Key   *ecdsa.PrivateKey
	Chain []*x509.Certificate // its own certificate first, the root last
}

// NewPKI returns a new root, and an issuer below it.
func NewPKI(name string) (*PKI, error) {
	authority := func(cn string, of *Identity) (*Identity, error) {
		return issue(of, elliptic.P256(), &x509.Certificate{
			Subject: pkix.Name{CommonName: cn}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		})
	}
	root, err := authority("AUN Root of "+name, nil)
	if err != nil {
		return nil, err
	}
	issuer, err := authority("AUN Issuer "+name, root)
	if err != nil {
		return nil, err
	}
	return &PKI{Name: name, Root: root, Issuer: issuer}, nil
}

// Issue returns a new identity of an AID, with a key of the curve P-256. change may change its certificate before it is
// signed.
func (p *PKI) Issue(aid string, change ...func(*x509.Certificate)) (*Identity, error) {
	return p.IssueOn(elliptic.P256(), aid, change...)
}

// IssueOn is Issue with another curve.
func (p *PKI) IssueOn(curve elliptic.Curve, aid string, change ...func(*x509.Certificate)) (*Identity, error) {
	cert := &x509.Certificate{
		Subject: pkix.Name{CommonName: aid}, DNSNames: []string{aid}, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, f := range change {
		f(cert)
	}
	id, err := issue(p.Issuer, curve, cert)
	if err == nil {
		id.AID = aid
	}
	return id, err
}

func issue(by *Identity, curve elliptic.Curve, cert *x509.Certificate) (*Identity, error) {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		return nil, err
	}
	if cert.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	if cert.NotBefore.IsZero() {
		cert.NotBefore = time.Now().Add(-time.Hour)
	}
	if cert.NotAfter.IsZero() {
		cert.NotAfter = time.Now().Add(24 * time.Hour)
	}
	parent, signer, above := cert, key, []*x509.Certificate(nil)
	if by != nil {
		parent, signer, above = by.Chain[0], by.Key, by.Chain
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Identity{Key: key, Chain: append([]*x509.Certificate{parsed}, above...)}, nil
}

// CertPEM returns the own certificate of the identity.
func (id *Identity) CertPEM() string { return certPEM(id.Chain[0]) }

// ChainPEM returns the chain of the identity, with the root.
func (id *Identity) ChainPEM() (text string) {
	for _, c := range id.Chain {
		text += certPEM(c)
	}
	return text
}

// PEM returns the key of the identity, and its chain.
func (id *Identity) PEM() (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(id.Key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})) + id.ChainPEM(), nil
}

func certPEM(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// Sign signs a text: ECDSA with SHA-256, or with SHA-384 for a key of P-384, as DER in base64.
func (id *Identity) Sign(text string) (string, error) {
	sig, err := ecdsa.SignASN1(rand.Reader, id.Key, digest(&id.Key.PublicKey, text))
	return base64.StdEncoding.EncodeToString(sig), err
}

func digest(key *ecdsa.PublicKey, text string) []byte {
	if key.Curve == elliptic.P384() {
		d := sha512.Sum384([]byte(text))
		return d[:]
	}
	d := sha256.Sum256([]byte(text))
	return d[:]
}

// verify checks a signature of a text.
func verify(cert *x509.Certificate, text, signature string) error {
	key, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return errors.New("the certificate has no key of ECDSA")
	}
	sig, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return fmt.Errorf("the signature is no base64: %w", err)
	}
	if !ecdsa.VerifyASN1(key, digest(key, text), sig) {
		return errors.New("the signature does not match")
	}
	return nil
}

// parseCerts reads certificates in PEM.
func parseCerts(text string) (certs []*x509.Certificate, err error) {
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return certs, nil
}

// check verifies the certificate of an AID, in PEM, up to the root. between are received certificates of issuers. An
// empty aid is any.
func (p *PKI) check(text, aid string, between ...*x509.Certificate) (*x509.Certificate, error) {
	certs, err := parseCerts(text)
	if err != nil {
		return nil, err
	}
	roots, issuers := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(p.Root.Chain[0])
	for _, c := range append(certs[1:], between...) {
		issuers.AddCert(c)
	}
	options := x509.VerifyOptions{
		Roots: roots, Intermediates: issuers, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	if _, err = certs[0].Verify(options); err != nil {
		return nil, err
	}
	if aid != "" && certs[0].Subject.CommonName != aid {
		return nil, fmt.Errorf("the certificate is that of %q, not of %q", certs[0].Subject.CommonName, aid)
	}
	return certs[0], nil
}
