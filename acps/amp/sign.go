// SPDX-License-Identifier: Apache-2.0

package amp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Signer signs the records of a Partner by the key of its certificate.
type Signer struct {
	alg, kid string
	key      crypto.Signer
}

// ErrKey refuses a key by which records cannot be signed.
var ErrKey = errors.New("records are signed by a key for Ed25519, ECDSA on P-256, or RSA")

// NewSigner returns the Signer of a certificate with its key. Its number names the key to a monitor (AMP v02.02
// §5.1.2, kid).
func NewSigner(pair *tls.Certificate) (*Signer, error) {
	leaf := pair.Leaf
	if leaf == nil {
		var err error
		if leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, err
		}
	}
	s := &Signer{kid: strings.ToUpper(fmt.Sprintf("%x", leaf.SerialNumber))}
	var ok bool
	if s.key, ok = pair.PrivateKey.(crypto.Signer); !ok {
		return nil, ErrKey
	}
	switch public := s.key.Public().(type) {
	case ed25519.PublicKey:
		s.alg = "EdDSA"
	case *ecdsa.PublicKey:
		if public.Curve != elliptic.P256() {
			return nil, ErrKey
		}
		s.alg = "ES256"
	case *rsa.PublicKey:
		s.alg = "RS256"
	default:
		return nil, ErrKey
	}
	return s, nil
}

// sign adds the signature of a record to it.
func (s *Signer) sign(o Object, n Names) error {
	text := appendCanonical(nil, toSign(o, n))
	var sig []byte
	var err error
	switch s.alg {
	case "EdDSA":
		sig, err = s.key.Sign(rand.Reader, text, crypto.Hash(0))
	default:
		sum := sha256.Sum256(text)
		sig, err = s.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	}
	if err == nil && s.alg == "ES256" {
		sig, err = joined(sig)
	}
	if err != nil {
		return err
	}
	encoding := base64.StdEncoding
	if n == Snake {
		encoding = base64.RawURLEncoding
	}
	o["integrity"] = Object{"alg": s.alg, "kid": s.kid, "sig": encoding.EncodeToString(sig)}
	return nil
}

// joined returns an ECDSA signature on P-256, which Go has in ASN.1, as the 64 bytes of RFC 7518 §3.4.
func joined(sig []byte) ([]byte, error) {
	var both struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(sig, &both); err != nil {
		return nil, err
	}
	out := make([]byte, 64)
	both.R.FillBytes(out[:32])
	both.S.FillBytes(out[32:])
	return out, nil
}
