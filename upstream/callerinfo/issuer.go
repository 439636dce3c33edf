// SPDX-License-Identifier: Apache-2.0

package callerinfo

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"

	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// Issuer signs tokens for agents. It may be used by any number of goroutines at once.
type Issuer struct {
	name   string
	signer jose.Signer
	public []byte // the JSON of all keys
}

// NewIssuer returns the issuer of a name. The first key signs. The others are only published: the former signing key,
// until its tokens have ended, or the next one, until all agents know it.
func NewIssuer(name string, keys []crypto.Signer) (*Issuer, error) {
	if name == "" {
		return nil, errors.New("it has no name, which is iss in its tokens")
	}
	if len(keys) == 0 {
		return nil, errors.New("it has no key to sign with")
	}
	i := &Issuer{name: name}
	var set jose.JSONWebKeySet
	for n, key := range keys {
		public, err := publicKey(key)
		if err != nil {
			return nil, err
		}
		if len(set.Key(public.KeyID)) > 0 {
			return nil, errors.New("one key is given twice")
		}
		set.Keys = append(set.Keys, public)
		if n > 0 {
			continue
		}
		private := jose.JSONWebKey{Key: key, KeyID: public.KeyID}
		i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(public.Algorithm), Key: private},
			new(jose.SignerOptions).WithType("JWT"))
		if err != nil {
			return nil, err
		}
	}
	var err error
	i.public, err = json.Marshal(set)
	return i, err
}

// publicKey returns the public part of a key, named by its thumbprint.
func publicKey(key crypto.Signer) (public jose.JSONWebKey, err error) {
	public = jose.JSONWebKey{Key: key.Public(), Use: "sig"}
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		if k.Curve != elliptic.P256() {
			return public, errKey
		}
		public.Algorithm = string(jose.ES256)
	case ed25519.PrivateKey:
		public.Algorithm = string(jose.EdDSA)
	default:
		return public, errKey
	}
	thumbprint, err := public.Thumbprint(crypto.SHA256)
	public.KeyID = base64.RawURLEncoding.EncodeToString(thumbprint)
	return public, err
}

var errKey = errors.New("a key must be one for ES256 (the curve P-256) or for EdDSA (Ed25519); " +
	"make one with: openssl genpkey -algorithm ed25519 -out <file>")

// ParseKeys reads all private keys from PEM. An error does not quote them.
func ParseKeys(text []byte) (all []crypto.Signer, err error) {
	for block, err := range pemtext.Blocks(text, "PRIVATE KEY", "EC PRIVATE KEY") {
		if err != nil {
			return nil, err
		}
		var key any
		if block.Type == "PRIVATE KEY" {
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		} else {
			key, err = x509.ParseECPrivateKey(block.Bytes)
		}
		signer, ok := key.(crypto.Signer)
		if err != nil || !ok {
			return nil, errKey
		}
		all = append(all, signer)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no private key in PEM; %w", errKey)
	}
	return all, nil
}

// JWKS returns the public keys as a JSON Web Key Set. It is not to be changed.
func (i *Issuer) JWKS() []byte { return i.public }

// sign returns a token with claims.
func (i *Issuer) sign(claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := i.signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
