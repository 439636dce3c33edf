// SPDX-License-Identifier: Apache-2.0

package group

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// KeySize is the length of the key sealing access tokens, in bytes: a key of AES-256.
const KeySize = 32

// sealer encrypts access tokens for the store, by AES-256-GCM. A sealed token is bound to the name of its membership's
// log, so it is of no use in another one. A nil sealer seals nothing and opens nothing.
type sealer struct{ aead cipher.AEAD }

// newSealer returns the sealer of a key, and nil without a key.
func newSealer(key []byte) (*sealer, error) {
	switch len(key) {
	case 0:
		return nil, nil
	case KeySize:
	default:
		return nil, fmt.Errorf("group: the key of access tokens has %d bytes, but must have %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead}, nil
}

// seal encrypts a token, for the log of a membership. It returns nil if there is nothing to seal, or no key.
func (s *sealer) seal(token, log string) []byte {
	if s == nil || token == "" {
		return nil
	}
	return s.aead.Seal(nil, nil, []byte(token), []byte(log))
}

// open decrypts a token of seal. It reports whether the key is the one of the sealing.
func (s *sealer) open(sealed []byte, log string) (token string, ok bool) {
	if s == nil || len(sealed) == 0 {
		return "", false
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(log))
	return string(plain), err == nil
}
