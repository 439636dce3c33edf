// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"crypto/ed25519"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far the time of an attempt may be from the receiver's, either way.
const Tolerance = 5 * time.Minute

// The limits of what Verify reads.
const (
	maxHeader     = 8 << 10 // bytes
	maxSignatures = 32
)

// Verify does what a receiver does: it returns nil where one of the signatures in header, the value of HeaderSignature,
// was made by one of the keys over id, timestamp and body, no longer than Tolerance ago. A key is "whsec_" or "whpk_"
// and base64. Signatures of other versions are passed over. A receiver must then still refuse ids that it has seen.
func Verify(header, id, timestamp string, body []byte, now time.Time, keys ...string) error {
	if id == "" || strings.Contains(id, ".") {
		return errors.New("the webhook-id is missing, or has a dot")
	}
	if err := verifyTime(timestamp, now); err != nil {
		return err
	}
	signatures, err := signaturesOf(header)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return errors.New("there is no key to verify the signature with")
	}
	head := head(id, timestamp)
	valid := false
	for _, key := range keys { // all of them, so that a key that cannot be read is always an error
		matches, err := verifier(key, head, body)
		if err != nil {
			return err
		}
		for _, s := range signatures {
			valid = valid || matches(s)
		}
	}
	if !valid {
		return errors.New("no signature of the webhook matches a key")
	}
	return nil
}

func verifyTime(timestamp string, now time.Time) error {
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || sent < 0 || strconv.FormatInt(sent, 10) != timestamp {
		return errors.New("the webhook-timestamp is not a Unix time in seconds")
	}
	tolerance := int64(Tolerance / time.Second)
	switch at := now.Unix(); {
	case sent < at-tolerance:
		return fmt.Errorf("the webhook-timestamp is more than %v ago", Tolerance)
	case sent > at+tolerance:
		return fmt.Errorf("the webhook-timestamp is more than %v ahead", Tolerance)
	}
	return nil
}

type signature struct {
	version string // with the comma
	bytes   []byte
}

func signaturesOf(header string) ([]signature, error) {
	if len(header) > maxHeader {
		return nil, fmt.Errorf("the webhook-signature has %d bytes, and at most %d are read", len(header), maxHeader)
	}
	var all []signature
	for one := range strings.FieldsSeq(header) {
		version, text, found := strings.Cut(one, ",")
		b, err := base64.StdEncoding.Strict().DecodeString(text)
		if !found || err != nil {
			continue // of a version whose form is not known
		}
		if len(all) == maxSignatures {
			return nil, fmt.Errorf("the webhook-signature has more than %d signatures", maxSignatures)
		}
		all = append(all, signature{version + ",", b})
	}
	return all, nil
}

// verifier returns whether a signature is one by key over head and body.
func verifier(key string, head, body []byte) (func(signature) bool, error) {
	switch {
	case len(key) > maxKey:
		return nil, fmt.Errorf("the key has %d characters, and no key has more than %d", len(key), maxKey)
	case strings.HasPrefix(key, hmacPrefix):
		secret, err := parseSecret(key)
		if err != nil {
			return nil, err
		}
		want := mac(secret, head, body)
		return func(s signature) bool { return s.version == hmacVersion && hmac.Equal(want, s.bytes) }, nil
	case strings.HasPrefix(key, publicPrefix):
		public, err := decode(key, publicPrefix)
		if err != nil {
			return nil, err
		}
		if len(public) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("the key after whpk_ has %d bytes, and must have %d", len(public), ed25519.PublicKeySize)
		}
		whole := join(head, body)
		return func(s signature) bool {
			return s.version == ed25519Version && ed25519.Verify(public, whole, s.bytes)
		}, nil
	case strings.HasPrefix(key, privatePrefix):
		return nil,
			errors.New("a receiver verifies by the public half (whpk_) of a key, and must not have the private one (whsk_)")
	default:
		return nil, errors.New("the key must begin with whsec_ (HMAC-SHA256) or whpk_ (ed25519)")
	}
}
