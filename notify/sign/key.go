// SPDX-License-Identifier: Apache-2.0

// Package sign makes the signatures of Standard Webhooks 1.0. They prove three things to a receiver: the webhook comes
// from this gateway, was sent at the given time, and was not changed.
//
// A key is "whsec_" and a secret shared by both ends (HMAC-SHA256, signatures "v1"), or "whsk_" and a private key
// (ed25519, signatures "v1a"). Its public half, "whpk_", is enough for the receiver. Both are in base64.
package sign

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const (
	hmacPrefix    = "whsec_"
	privatePrefix = "whsk_"
	publicPrefix  = "whpk_"

	// The spec's limits of a shared secret, in bytes, and the size of one made here.
	minSecret, maxSecret, newSecret = 24, 64, 32

	maxKey = 128 // bytes of a key as text; the longest valid one has 94
)

// Key is one signing key. It never shows itself: printed, logged or marshalled it is its prefix and "[redacted]". The
// zero Key signs nothing.
type Key struct {
	// A function, because fmt prints unexported fields of a struct with a Key without calling the Key's methods, with some
	// verbs through pointers too. It cannot print the result of a function. It is nil in the zero Key.
	reveal func() material
}

// material is the hidden content of a Key. In the zero Key no field is set, in any other exactly one.
type material struct {
	secret  []byte             // of HMAC-SHA256
	private ed25519.PrivateKey // of ed25519
}

func hide(m material) Key { return Key{func() material { return m }} }

func (k Key) material() material {
	if k.reveal == nil {
		return material{}
	}
	return k.reveal()
}

// Parse reads a signing key: "whsec_" and the base64 of 24 to 64 bytes, or "whsk_" and the base64 of an ed25519 seed
// (32 bytes) or private key (64 bytes). Its errors name the change to make, and never hold the key.
func Parse(s string) (Key, error) {
	switch {
	case len(s) > maxKey:
		return Key{}, fmt.Errorf("the signing key has %d characters, and no key has more than %d", len(s), maxKey)
	case strings.HasPrefix(s, hmacPrefix):
		secret, err := parseSecret(s)
		if err != nil {
			return Key{}, err
		}
		return hide(material{secret: secret}), nil
	case strings.HasPrefix(s, privatePrefix):
		b, err := decode(s, privatePrefix)
		if err != nil {
			return Key{}, err
		}
		private, err := privateKey(b)
		if err != nil {
			return Key{}, err
		}
		return hide(material{private: private}), nil
	case strings.HasPrefix(s, publicPrefix):
		return Key{}, errors.New("the signing key is a public one (whpk_); give its private half (whsk_)")
	default:
		return Key{}, errors.New("the signing key must begin with whsec_ (HMAC-SHA256) or whsk_ (ed25519)")
	}
}

func parseSecret(s string) ([]byte, error) {
	secret, err := decode(s, hmacPrefix)
	if err != nil {
		return nil, err
	}
	if n := len(secret); n < minSecret || n > maxSecret {
		return nil, fmt.Errorf("the secret after whsec_ has %d bytes, and must have %d to %d", n, minSecret, maxSecret)
	}
	return secret, nil
}

func privateKey(b []byte) (ed25519.PrivateKey, error) {
	switch len(b) {
	case ed25519.SeedSize:
		return ed25519.NewKeyFromSeed(b), nil
	case ed25519.PrivateKeySize:
		// To sign with another public half than the seed's would give the private key away.
		private := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
		if !private.Equal(ed25519.PrivateKey(b)) {
			return nil, errors.New("the private and the public half of the key after whsk_ do not belong together")
		}
		return private, nil
	default:
		return nil, fmt.Errorf("the key after whsk_ has %d bytes, and must have %d (the seed) or %d (with the public key)",
			len(b), ed25519.SeedSize, ed25519.PrivateKeySize)
	}
}

// decode reads the base64 behind a prefix. The decoder itself would pass over line breaks.
func decode(s, prefix string) ([]byte, error) {
	rest := strings.TrimPrefix(s, prefix)
	b, err := base64.StdEncoding.DecodeString(rest)
	if err != nil || strings.ContainsAny(rest, "\r\n") {
		return nil, fmt.Errorf("what follows %s must be base64 of the standard alphabet, padded with =, and nothing else",
			prefix)
	}
	return b, nil
}

// Public returns the key by which receivers verify, "whpk_" and base64, or "" if they need the secret itself.
func (k Key) Public() string {
	private := k.material().private
	if private == nil {
		return ""
	}
	return publicPrefix + base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
}

// Generate returns a new ed25519 key for Parse: "whsk_" and the base64 of a seed.
func Generate() string { return random(privatePrefix, ed25519.SeedSize) }

// GenerateHMAC returns a new HMAC-SHA256 key for Parse: "whsec_" and the base64 of 32 bytes. Every receiver needs
// one of its own, as it could sign for the others.
func GenerateHMAC() string { return random(hmacPrefix, newSecret) }

func random(prefix string, n int) string {
	b := make([]byte, n)
	rand.Read(b) // it never fails: without randomness the process ends
	return prefix + base64.StdEncoding.EncodeToString(b)
}

// String returns the kind of the key k.
func (k Key) String() string {
	switch m := k.material(); {
	case m.private != nil:
		return privatePrefix + "[redacted]"
	case m.secret != nil:
		return hmacPrefix + "[redacted]"
	default:
		return "no key"
	}
}

// Format implements fmt.Formatter, since String is not asked for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// MarshalText returns the same as String; JSON and others use it. It is not for storing a key.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }
