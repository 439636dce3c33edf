// SPDX-License-Identifier: Apache-2.0

package token

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"testing"
)

// BenchmarkSignature is the least that the first use of a token with ES256 costs.
func BenchmarkSignature(b *testing.B) {
	key := testKeys()["ES256"].key.(*ecdsa.PrivateKey)
	sum := sha256.Sum256([]byte("x"))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ecdsa.Verify(&key.PublicKey, sum[:], r, s)
	}
}

// BenchmarkFirst verifies tokens that are not remembered: it is the signature, and what else is read.
func BenchmarkFirst(b *testing.B) {
	for name, signer := range testKeys() {
		if name == "other" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			v := newVerifier(b, Config{}, with(b, signer))
			token := signer.sign(b, claims(nil), nil)
			if _, err := v.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAgain verifies a token that is remembered.
func BenchmarkAgain(b *testing.B) {
	signer := testKeys()["ES256"]
	v := newVerifier(b, Config{}, with(b, signer))
	token := signer.sign(b, claims(nil), nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), token); err != nil {
			b.Fatal(err)
		}
	}
}
