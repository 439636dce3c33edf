// SPDX-License-Identifier: Apache-2.0

// Package signtest verifies the signatures of Standard Webhooks 1.0 as a receiver does, for tests. It shares no code
// with the gateway.
package signtest

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Tolerance is the largest difference of an attempt's time from the receiver's, either way.
const Tolerance = 5 * time.Minute

// Verify returns nil if one of the signatures in header, the value of webhook-signature, was made by a key over id,
// timestamp and body, and timestamp is at most Tolerance away from now. The key is the receiver's: "whsec_" or "whpk_"
// and base64.
func Verify(header, id, timestamp string, body []byte, now time.Time, key string) error {
	if id == "" || strings.Contains(id, ".") {
		return errors.New("the webhook-id is missing, or has a dot")
	}
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	switch {
	case err != nil || strconv.FormatInt(sent, 10) != timestamp:
		return fmt.Errorf("the webhook-timestamp %q is not a Unix time in seconds", timestamp)
	case time.Unix(sent, 0).Before(now.Add(-Tolerance - time.Second)), time.Unix(sent, 0).After(now.Add(Tolerance)):
		return fmt.Errorf("the webhook-timestamp %s is more than %v from %v", timestamp, Tolerance, now)
	}
	version, matches, err := verifier(key, append([]byte(id+"."+timestamp+"."), body...))
	if err != nil {
		return err
	}
	for signature := range strings.FieldsSeq(header) {
		of, text, _ := strings.Cut(signature, ",")
		b, err := base64.StdEncoding.DecodeString(text)
		if err == nil && of == version && matches(b) {
			return nil
		}
	}
	return errors.New("no signature of the webhook matches the key")
}

// verifier returns the version of a key's signatures, and whether one of them is over a message.
func verifier(key string, message []byte) (version string, matches func(signature []byte) bool, err error) {
	kind, text, _ := strings.Cut(key, "_")
	b, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("the key is no base64: %w", err)
	case kind == "whsec":
		mac := hmac.New(sha256.New, b)
		mac.Write(message)
		return "v1", func(signature []byte) bool { return hmac.Equal(mac.Sum(nil), signature) }, nil
	case kind == "whpk" && len(b) == ed25519.PublicKeySize:
		return "v1a", func(signature []byte) bool { return ed25519.Verify(b, message, signature) }, nil
	}
	return "", nil, errors.New("the key is not one of a receiver")
}
