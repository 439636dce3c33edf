// SPDX-License-Identifier: Apache-2.0

package token

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of a set of keys.
const (
	maxKeys   = 100
	maxSet    = 1 << 20 // bytes
	minRSA    = 2048    // bits
	maxRSA    = 8192    // bits; a larger key makes each verification slow
	perKeyID  = 4       // keys with one id that are tried
	familyRSA = "RSA"
	familyEC  = "EC"
	familyEd  = "Ed25519"
)

// families are the kinds of keys of the algorithms: a token that names an algorithm of another kind than its key has
// no key.
var families = map[string]string{
	string(jose.RS256): familyRSA, string(jose.PS256): familyRSA, string(jose.ES256): familyEC,
	string(jose.EdDSA): familyEd,
}

// keySet is the keys that an issuer publishes. It is not changed.
type keySet struct {
	keys    []publicKey
	fetched time.Time
}

// publicKey is a key that verifies tokens.
type publicKey struct {
	id, algorithm, family string // algorithm is empty if the key is not for one alone
	key                   any
}

// verifies reports whether the key verifies signatures by an algorithm.
func (k *publicKey) verifies(algorithm string) bool {
	return k.family == families[algorithm] && (k.algorithm == "" || k.algorithm == algorithm)
}

// readKeys reads a JWKS (RFC 7517 §5). It leaves out keys that verify no tokens: private and symmetric ones, those for
// encryption, those of unknown kinds and of sizes that are not safe.
func readKeys(body []byte) (*keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, fmt.Errorf("the keys cannot be read: %w", err)
	}
	if len(document.Keys) > maxKeys {
		return nil, fmt.Errorf("there are %d keys, and at most %d are read", len(document.Keys), maxKeys)
	}
	set := &keySet{fetched: time.Now()}
	for _, raw := range document.Keys {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(raw) != nil || k.Use != "" && k.Use != "sig" {
			continue
		}
		family := familyOf(k.Key)
		if family == "" || k.Algorithm != "" && families[k.Algorithm] != family {
			continue
		}
		set.keys = append(set.keys, publicKey{k.KeyID, k.Algorithm, family, k.Key})
	}
	if len(set.keys) == 0 {
		return nil, errors.New("there is no public key for signatures of " + fmt.Sprint(Algorithms))
	}
	return set, nil
}

// familyOf returns the kind of a key; empty for a key that is not used.
func familyOf(key any) string {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits >= minRSA && bits <= maxRSA && key.E > 1 {
			return familyRSA
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return familyEC
		}
	case ed25519.PublicKey:
		return familyEd
	}
	return ""
}

// find returns the keys for a token. Without a key id there must be one key alone for the algorithm (OpenID Connect
// Core 1.0 §10.1).
func (s *keySet) find(kid, algorithm string) (found []any) {
	for _, k := range s.keys {
		if (kid == "" || k.id == kid) && k.verifies(algorithm) {
			found = append(found, k.key)
		}
	}
	if kid == "" && len(found) > 1 || len(found) > perKeyID {
		return nil
	}
	return found
}
