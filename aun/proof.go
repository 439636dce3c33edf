// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/ecdsa"
	"crypto/x509"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// Proof is the proven identity of a connection's other end, and the expiry of the proof.
type Proof struct {
	AID     AID
	Expires time.Time // of the token, or of the certificate without one

	login  string           // the login that has given the token; empty for none
	cert   *Certificate     // nil for a token of another issuer
	signer *ecdsa.PublicKey // of a token of another issuer
}

// Chain returns the certificates of the proof: the AID's, and those between it and the roots. There are none if a token
// of another issuer is the proof.
func (p Proof) Chain() []*x509.Certificate {
	if p.cert == nil {
		return nil
	}
	return p.cert.chain
}

// proof returns the Proof of a certificate, once its key has signed a nonce.
func (c *Certificate) proof() Proof { return Proof{AID: c.AID, Expires: c.NotAfter, cert: c} }

// byToken reports whether the proof is a token, with a certificate valid at least as long.
func (p Proof) byToken() bool { return p.login != "" || p.signer != nil }

// Prolongs reports whether the proof comes from the same login as an older one, so it takes the older one's place.
func (p Proof) Prolongs(older Proof) bool {
	return p.login != "" && p.login == older.login && p.AID == older.AID
}

// Check returns an error if a proof, once accepted by this authority or by that of an earlier configuration, is invalid
// now: it has expired, its certificate is revoked or of no root, or its issuer's key is gone.
func (a *Authority) Check(p Proof) error {
	switch {
	case !time.Now().Before(p.Expires):
		return p.expired()
	case p.cert != nil:
		_, err := a.config.Roots.Verify(p.AID, p.cert.chain)
		return err
	case !slices.ContainsFunc(a.tokens.foreign[p.AID.Issuer()], p.signedBy):
		return Errorf(codes.AuthFailed, "The issuer of the token is not accepted any more")
	}
	return nil
}

func (p Proof) signedBy(key *ecdsa.PublicKey) bool { return key.Equal(p.signer) }

// expired is the error of an expired proof.
func (p Proof) expired() error {
	if p.byToken() && (p.cert == nil || p.Expires.Before(p.cert.NotAfter)) {
		return Errorf(codes.TokenExpired, "The token has expired, and was not refreshed")
	}
	return Errorf(codes.CertificateInvalid, "The certificate has expired")
}
