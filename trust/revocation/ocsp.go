// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"golang.org/x/crypto/ocsp"
)

// noNextUpdate is the time an answer counts if it does not say when there is a newer one, by a clock that may be
// behind.
const noNextUpdate = time.Minute + skew

// readOCSP reads an OCSP response about a certificate (RFC 6960), and checks that it is one of its issuer. Package ocsp
// checks neither its subject nor the right of its signer.
func readOCSP(raw []byte, cert, issuer *x509.Certificate, now time.Time) (*answer, error) {
	response, err := ocsp.ParseResponseForCert(raw, cert, nil)
	if err != nil {
		return nil, err
	}
	if err := checkSigner(response, issuer, now); err != nil {
		return nil, err
	}
	if err := checkSubject(response, cert, issuer); err != nil {
		return nil, err
	}
	a := &answer{from: response.ThisUpdate, until: response.NextUpdate, got: now, signed: raw}
	if a.until.IsZero() {
		a.until = a.from.Add(noNextUpdate)
	}
	switch response.Status {
	case ocsp.Good:
		a.outcome = good
	case ocsp.Revoked:
		a.outcome = revoked
	}
	err = a.checkTimes(now)
	if errors.Is(err, errEnded) && response.NextUpdate.IsZero() {
		err = fmt.Errorf("%w: it has no nextUpdate, so it counts for %v; have the responder set one, or correct the clocks",
			err, noNextUpdate)
	}
	return a, err
}

// checkTimes checks the validity of an answer now.
func (a *answer) checkTimes(now time.Time) error {
	switch {
	case a.from.After(now.Add(skew)):
		return errors.New("the answer is of the future")
	case !a.until.After(a.from):
		return errors.New("the end of the answer is not after its begin")
	case !now.Before(a.until):
		return errEnded
	}
	return nil
}

var errEnded = errors.New("the answer has ended")

// checkSigner checks the signer of a response: the issuer, or a responder certified for it by the issuer (RFC 6960
// §4.2.2.2). If it has a certificate, package ocsp has verified the signature by that.
func checkSigner(response *ocsp.Response, issuer *x509.Certificate, now time.Time) error {
	delegate := response.Certificate
	if delegate == nil || bytes.Equal(delegate.RawSubjectPublicKeyInfo, issuer.RawSubjectPublicKeyInfo) {
		if err := response.CheckSignatureFrom(issuer); err != nil {
			return fmt.Errorf("the answer is not signed by the issuer: %w", err)
		}
		return nil
	}
	switch {
	case !bytes.Equal(delegate.RawIssuer, issuer.RawSubject):
		return errors.New("the certificate of the responder is of another issuer")
	case !slices.Contains(delegate.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning):
		return errors.New("the certificate of the responder is not for OCSP")
	case delegate.KeyUsage != 0 && delegate.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return errors.New("the key of the responder is not for signatures")
	case now.Before(delegate.NotBefore), now.After(delegate.NotAfter):
		return errors.New("the certificate of the responder is not valid now")
	case len(delegate.UnhandledCriticalExtensions) > 0:
		return errors.New("the certificate of the responder has a critical extension that is not known here")
	}
	if err := issuer.CheckSignature(delegate.SignatureAlgorithm, delegate.RawTBSCertificate,
		delegate.Signature); err != nil {
		return fmt.Errorf("the certificate of the responder is not signed by the issuer: %w", err)
	}
	return nil
}

// checkSubject checks the subject of a response: a certificate of the issuer, and not of another one with the same
// serial number: the response has hashes of the issuer's name and key.
func checkSubject(response *ocsp.Response, cert, issuer *x509.Certificate) error {
	var data struct {
		Version     int `asn1:"optional,default:0,explicit,tag:0"`
		ResponderID asn1.RawValue
		ProducedAt  time.Time `asn1:"generalized"`
		Responses   []struct {
			ID struct {
				Hash     pkix.AlgorithmIdentifier
				NameHash []byte
				KeyHash  []byte
				Serial   *big.Int
			}
			Rest asn1.RawValue
			This time.Time       `asn1:"generalized"`
			Next time.Time       `asn1:"generalized,explicit,tag:0,optional"`
			More []asn1.RawValue `asn1:"explicit,tag:1,optional"`
		}
		Extensions []asn1.RawValue `asn1:"explicit,tag:1,optional"`
	}
	if _, err := asn1.Unmarshal(response.TBSResponseData, &data); err != nil {
		return err
	}
	var key struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(issuer.RawSubjectPublicKeyInfo, &key); err != nil {
		return err
	}
	for _, r := range data.Responses {
		if r.ID.Serial.Cmp(cert.SerialNumber) != 0 {
			continue // package ocsp has taken the first one with this number
		}
		if !bytes.Equal(r.ID.NameHash, sum(response.IssuerHash, issuer.RawSubject)) ||
			!bytes.Equal(r.ID.KeyHash, sum(response.IssuerHash, key.Key.RightAlign())) {
			return errors.New("the answer is about a certificate of another issuer")
		}
		return nil
	}
	return errors.New("the answer is about another certificate")
}

func sum(hash crypto.Hash, b []byte) []byte {
	if !hash.Available() {
		return nil
	}
	h := hash.New()
	h.Write(b)
	return h.Sum(nil)
}
