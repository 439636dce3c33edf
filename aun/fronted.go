// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
)

// CertificateFor returns a certificate with the name of an AID represented by the identity: an agent behind the gateway
// has no key of AUN, but clients ask for the certificates of their recipients. It has the key, the validity and the
// signature of the identity, which is no CA: so it leads to no root, and is good for no login elsewhere. It is the same
// each time, at each process.
func (id *Identity) CertificateFor(aid AID) (*x509.Certificate, error) {
	own := id.Chain[0]
	serial := sha256.Sum256(append([]byte(aid+"\x00"), own.Raw...))
	serial[0] = serial[0]&0x3f | 0x40 // positive, and not zero
	// Without randomness the signature depends on the signed content alone.
	der, err := x509.CreateCertificate(nil, &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:16]), Subject: pkix.Name{CommonName: string(aid)},
		NotBefore: own.NotBefore, NotAfter: own.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}, own, &id.Key.PublicKey, id.Key)
	if err != nil {
		return nil, fmt.Errorf("the certificate for %s cannot be made: %w", aid, err)
	}
	return x509.ParseCertificate(der)
}
