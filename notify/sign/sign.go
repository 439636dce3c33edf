// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "webhook-id"        // the same at every attempt; receivers know repetitions by it
	HeaderTimestamp = "webhook-timestamp" // of the attempt
	HeaderSignature = "webhook-signature"
)

const (
	hmacVersion    = "v1,"
	ed25519Version = "v1a,"
)

// Keys sign together: while a key is being replaced, the old and the new one do.
type Keys []Key

// Timestamp returns at as it stands in HeaderTimestamp: Unix time in seconds.
func Timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// Header returns the value of HeaderSignature: one signature for each key, in their order. HeaderID must be id, without
// a dot, HeaderTimestamp must be Timestamp(at), and the body must be sent as it is, to the byte.
func (ks Keys) Header(id string, at time.Time, body []byte) string {
	head := head(id, Timestamp(at))
	var whole []byte // head and body; ed25519 wants them in one piece, HMAC does not
	var s strings.Builder
	for _, k := range ks {
		var version string
		var signature []byte
		switch m := k.material(); {
		case m.private != nil:
			if whole == nil {
				whole = join(head, body)
			}
			version, signature = ed25519Version, ed25519.Sign(m.private, whole)
		case m.secret != nil:
			version, signature = hmacVersion, mac(m.secret, head, body)
		default:
			continue
		}
		if s.Len() > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(version)
		s.WriteString(base64.StdEncoding.EncodeToString(signature))
	}
	return s.String()
}

// head is the signed text before the body.
func head(id, timestamp string) []byte { return []byte(id + "." + timestamp + ".") }

func join(head, body []byte) []byte {
	whole := make([]byte, 0, len(head)+len(body))
	return append(append(whole, head...), body...)
}

func mac(secret, head, body []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(head)
	h.Write(body)
	return h.Sum(nil)
}
