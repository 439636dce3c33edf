// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// Limits of a text in PEM.
const (
	maxPEM   = 256 << 10 // bytes
	maxChain = 8         // certificates in a chain
)

// Roots are the certificates that identities must chain to. Its methods may be called by any number of goroutines at
// once.
type Roots struct {
	anchors *x509.CertPool
	cas     []*x509.Certificate // all of them, roots and intermediates
	pem     []byte

	mu      sync.RWMutex
	revoked map[string]bool // by revokedKey
	lists   []*x509.RevocationList
}

// NewRoots returns the roots of a text in PEM. A certificate not signed by itself is an intermediate, if there is any
// self-signed one.
func NewRoots(text []byte) (*Roots, error) {
	certs, err := parseCerts(text, 1000)
	if err != nil {
		return nil, err
	}
	r := &Roots{anchors: x509.NewCertPool(), cas: certs, pem: text, revoked: make(map[string]bool)}
	selfSigned := 0
	for _, c := range certs {
		if !c.IsCA {
			return nil, fmt.Errorf("the certificate %q is not that of a CA", c.Subject)
		}
		if isSelfSigned(c) {
			r.anchors.AddCert(c)
			selfSigned++
		}
	}
	for _, c := range certs {
		if selfSigned == 0 {
			r.anchors.AddCert(c)
		}
	}
	return r, nil
}

// LoadRoots reads roots from PEM files.
func LoadRoots(files []string) (*Roots, error) {
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(append(all, text...), '\n')
	}
	return NewRoots(all)
}

// Orphans returns the certificates neither signed by themselves nor by one of the others: they lead to no root. If
// there is any root beside them, no identity can chain to them.
func (r *Roots) Orphans() (orphans []*x509.Certificate) {
	for _, c := range r.cas {
		issued := func(ca *x509.Certificate) bool { return !ca.Equal(c) && c.CheckSignatureFrom(ca) == nil }
		if !isSelfSigned(c) && !slices.ContainsFunc(r.cas, issued) {
			orphans = append(orphans, c)
		}
	}
	return orphans
}

func isSelfSigned(c *x509.Certificate) bool { return bytes.Equal(c.RawSubject, c.RawIssuer) }

// PEM returns the certificates as they were given.
func (r *Roots) PEM() []byte { return r.pem }

// Equal reports whether both accept the same certificates.
func (r *Roots) Equal(other *Roots) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r == other || bytes.Equal(r.pem, other.pem) && maps.Equal(r.revocations(), other.revocations())
}

func (r *Roots) revocations() map[string]bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.revoked)
}

// Certificates returns the roots and the intermediates. They are not to be changed.
func (r *Roots) Certificates() []*x509.Certificate { return r.cas }

// Revoke adds all revocation lists of a text in PEM, or the one list in DER. One of the roots or intermediates must
// have signed each: else it adds none.
func (r *Roots) Revoke(text []byte) error {
	lists, err := pemtext.Lists(text)
	if err != nil {
		return err
	}
	for _, crl := range lists {
		signed := func(ca *x509.Certificate) bool { return crl.CheckSignatureFrom(ca) == nil }
		if !slices.ContainsFunc(r.cas, signed) {
			return fmt.Errorf("the revocation list of %q is not signed by any of the roots", crl.Issuer)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, crl := range lists {
		for _, e := range crl.RevokedCertificateEntries {
			r.revoked[revokedKey(crl.RawIssuer, e.SerialNumber.Bytes())] = true
		}
	}
	r.lists = append(r.lists, lists...)
	return nil
}

// Lists returns the revocation lists in PEM, those of the issuer of an identity first: clients verifying it may read no
// more than one. It returns nil if there are none.
func (r *Roots) Lists(of *Identity) (text []byte) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, own := range []bool{true, false} {
		for _, crl := range r.lists {
			if of.isIssuedBy(crl.RawIssuer) == own {
				text = append(text, pem.EncodeToMemory(&pem.Block{Type: pemtext.List[0], Bytes: crl.Raw})...)
			}
		}
	}
	return text
}

func revokedKey(issuer, serial []byte) string { return string(issuer) + "\x00" + string(serial) }

// verifyDER is Verify for certificates in DER, kept by this gateway or by another one of the same AID.
func (r *Roots) verifyDER(aid AID, all [][]byte) (*Certificate, error) {
	var chain []*x509.Certificate
	for _, der := range all {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, Errorf(codes.CertificateInvalid, "A certificate of the AID cannot be read")
		}
		chain = append(chain, cert)
	}
	return r.Verify(aid, chain)
}

// Verify checks that a chain leads to the roots now. Its first certificate is the AID's. It returns the AID's
// certificate and the expiry of the chain. An error is a codes.CertificateInvalid. An empty AID stands for any.
func (r *Roots) Verify(aid AID, chain []*x509.Certificate) (*Certificate, error) {
	c, err := r.verify(aid, chain)
	if err != nil {
		return nil, Errorf(codes.CertificateInvalid, "The certificate is not accepted: %v", err)
	}
	return c, nil
}

// VerifyService checks the certificate of an authentication service, with a name other than an AID, and its signature
// of a message.
func (r *Roots) VerifyService(chain []*x509.Certificate, message, signature string) error {
	c, err := r.verifyChain(chain)
	if err != nil {
		return Errorf(codes.CertificateInvalid, "The certificate of the authentication service is not accepted: %v", err)
	}
	return Verify(c.Key, message, signature)
}

func (r *Roots) verify(aid AID, chain []*x509.Certificate) (*Certificate, error) {
	c, err := r.verifyChain(chain)
	if err != nil {
		return nil, err
	}
	if c.AID, err = aidOf(c.Leaf); err != nil {
		return nil, err
	}
	if aid != "" && c.AID != aid {
		return nil, fmt.Errorf("it is that of %s", c.AID)
	}
	return c, nil
}

// verifyChain checks that a chain leads to the roots now, whatever the name is.
func (r *Roots) verifyChain(chain []*x509.Certificate) (*Certificate, error) {
	if len(chain) == 0 {
		return nil, errors.New("there is none")
	}
	leaf := chain[0]
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
		return nil, errors.New("its key is neither of the curve P-256 nor of P-384")
	}
	between := x509.NewCertPool()
	for _, ca := range append(chain[1:len(chain):len(chain)], r.cas...) {
		between.AddCert(ca)
	}
	found, err := leaf.Verify(x509.VerifyOptions{
		Roots: r.anchors, Intermediates: between, CurrentTime: time.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "x509: "))
	}
	c := &Certificate{Leaf: leaf, Key: key}
	for _, path := range found {
		if ends, revoked := r.ends(path); !revoked && ends.After(c.NotAfter) {
			c.NotAfter, c.chain = ends, r.unknown(path)
		}
	}
	if c.NotAfter.IsZero() {
		return nil, errors.New("it is revoked")
	}
	return c, nil
}

// ends returns the expiry of a path of certificates, and whether one of them is revoked.
func (r *Roots) ends(path []*x509.Certificate) (ends time.Time, revoked bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ends = path[0].NotAfter
	for _, c := range path {
		if c.NotAfter.Before(ends) {
			ends = c.NotAfter
		}
		revoked = revoked || r.revoked[revokedKey(c.RawIssuer, c.SerialNumber.Bytes())]
	}
	return ends, revoked
}

// unknown returns the certificates of a path needed for finding it again.
func (r *Roots) unknown(path []*x509.Certificate) (chain []*x509.Certificate) {
	for _, c := range path {
		if !slices.ContainsFunc(r.cas, c.Equal) {
			chain = append(chain, c)
		}
	}
	return chain
}

// Certificate is the verified certificate of an AID.
type Certificate struct {
	AID      AID
	Leaf     *x509.Certificate
	Key      *ecdsa.PublicKey
	NotAfter time.Time // until when the whole chain is valid

	chain []*x509.Certificate // Leaf, and the certificates between it and the roots
}

// aidOf returns the AID of a certificate: its common name, or without one its only DNS name.
func aidOf(c *x509.Certificate) (AID, error) {
	name := c.Subject.CommonName
	if name == "" && len(c.DNSNames) == 1 {
		name = c.DNSNames[0]
	}
	aid, err := ParseAID(name)
	if err != nil {
		return "", fmt.Errorf("its common name: %w", err)
	}
	return aid, nil
}

// ParseChain returns the certificates of a text in PEM, at most 8, the leaf first.
func ParseChain(text string) ([]*x509.Certificate, error) {
	chain, err := parseCerts([]byte(text), maxChain)
	if err != nil {
		return nil, Errorf(codes.CertificateInvalid, "The certificate cannot be read: %v", err)
	}
	return chain, nil
}

func parseCerts(text []byte, most int) ([]*x509.Certificate, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("it has %d bytes, too many for PEM", len(text))
	}
	return pemtext.Certificates(text, most)
}

// EncodeCerts returns certificates in PEM.
func EncodeCerts(certs ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range certs {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}

// Sign returns the signature of a message, in base64: ECDSA in DER over SHA-256, with a key of P-384 over SHA-384.
func Sign(key *ecdsa.PrivateKey, message string) (string, error) {
	sig, err := ecdsa.SignASN1(rand.Reader, key, digest(key.Curve, message))
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(sig), nil
}

// Verify checks a signature of Sign. The error is a codes.SignatureInvalid.
func Verify(key *ecdsa.PublicKey, message, signature string) error {
	sig, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || !ecdsa.VerifyASN1(key, digest(key.Curve, message), sig) {
		return Errorf(codes.SignatureInvalid, "The signature is invalid")
	}
	return nil
}

func digest(curve elliptic.Curve, message string) []byte {
	if curve == elliptic.P384() {
		sum := sha512.Sum384([]byte(message))
		return sum[:]
	}
	sum := sha256.Sum256([]byte(message))
	return sum[:]
}
