// SPDX-License-Identifier: Apache-2.0

package token

// Reason is why a token is refused, as it stands in logs.
type Reason string

// The reasons.
const (
	Malformed   Reason = "malformed"        // it is no token, or a claim has no valid form
	Algorithm   Reason = "algorithm"        // it is signed by an algorithm that is not allowed
	Issuer      Reason = "issuer"           // its issuer is not trusted
	UnknownKey  Reason = "unknown-key"      // the issuer publishes no such key
	NoKeys      Reason = "keys-unavailable" // the keys of the issuer could not be fetched
	Signature   Reason = "signature"        // its signature is wrong
	Audience    Reason = "audience"         // it is for others
	Expired     Reason = "expired"          // its time is over
	NotYetValid Reason = "not-yet-valid"    // its time has not come
)

// Error is why a token is refused. It holds no part of the token but names, times and what Claims says, and may be
// logged. It is not for the caller, who shall not learn what a verifier expects.
type Error struct {
	Reason Reason
	Detail string // a sentence without a full stop; empty if Reason says it all
	Err    error  // the cause; nil for none
	// ID and Subject are those of the claims, for an audit, if the signature is right; else empty.
	ID, Subject string
}

// Error implements error.
func (e *Error) Error() string {
	s := "token: " + string(e.Reason)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func refuse(r Reason, detail string) *Error { return &Error{Reason: r, Detail: detail} }
