// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"fmt"
	"strings"
)

// Reason is the reason a certificate is refused.
type Reason string

// The reasons.
const (
	Revoked  Reason = "revoked"   // its issuer has revoked it
	NoAnswer Reason = "no answer" // no source knows about it
	Stale    Reason = "stale"     // the sources' data on it is too old
	Unknown  Reason = "unknown"   // a source calls it unknown, and that refuses
	// RateUsedUp: a source must not be asked now, since its rate is used up.
	RateUsedUp Reason = "rate used up"
)

// Refusal is the refusal of a certificate of a chain, with its reason. It holds no secret, but it is for the operator:
// a caller learns only that its certificate is not accepted.
type Refusal struct {
	Reason Reason
	Serial string // of the certificate, in hexadecimal digits
	Issuer string // of the certificate, its distinguished name
	Source string // the deciding one, as in the configuration; empty for none
}

// Error implements error.
func (r *Refusal) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "certificate %s of %s: ", r.Serial, r.Issuer)
	switch r.Reason {
	case Revoked:
		s.WriteString("it is revoked")
	case Stale:
		s.WriteString("what is known about its revocation is too old")
	case Unknown:
		s.WriteString("it is said to be unknown")
	case RateUsedUp:
		s.WriteString("it cannot be asked about now, since the rate is used up")
	default:
		s.WriteString("nothing is known about its revocation")
	}
	if r.Source != "" {
		s.WriteString(", by " + r.Source)
	}
	return s.String()
}
