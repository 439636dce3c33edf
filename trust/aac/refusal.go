// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// Reason is why a token is refused, as it stands in logs and metrics: one of package token, or of these.
type Reason = token.Reason

// The reasons beside those of package token.
const (
	Missing     Reason = "missing"     // there is none, and one is required
	Certificate Reason = "certificate" // the caller has no certificate that it could be bound to
	Actor       Reason = "act"         // its actor is not the caller
	Binding     Reason = "cnf"         // it is bound to another certificate
	Route       Reason = "route"       // the caller does not stand there in the chain of delegation
	Skill       Reason = "skill"       // it is for another skill
	Obligation  Reason = "obligation"  // it allows the call with an obligation, and none is known
	Replayed    Reason = "replayed"    // it was used before
)

// Refusal is the cause of the error of a call whose token is refused. It is for the log, and not for the caller.
type Refusal struct {
	Reason Reason
	Detail string // what is wrong, without the token and its subject; empty if Reason says it all
	Issuer string // what follows is empty if the signature is not verified
	ID     string
	// Subject is a hash of the subject, who may be a person: the same subject has the same one.
	Subject    string
	Delegation string
}

// Error implements error.
func (r *Refusal) Error() string {
	var s strings.Builder
	s.WriteString("access token: " + string(r.Reason))
	for _, part := range [...][2]string{
		{": ", r.Detail}, {", issuer ", r.Issuer}, {", jti ", r.ID}, {", delegation ", r.Delegation},
		{", subject ", r.Subject},
	} {
		if part[1] != "" {
			s.WriteString(part[0] + part[1])
		}
	}
	return s.String()
}

// subjectHash returns what logs say instead of a subject.
func subjectHash(c *identity.Claims) string {
	if c.Subject == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.Issuer + "#" + c.Subject))
	return "hash:" + hex.EncodeToString(sum[:8])
}

// Expired is the error of a stream whose token has expired since it was opened.
func Expired() error {
	return refused(&Refusal{Reason: token.Expired, Detail: "in the middle of a stream"})
}

// refused returns the error that a caller gets (§12). What it says depends on the kind alone.
func refused(r *Refusal) error {
	switch r.Reason {
	case Missing, Certificate:
		return task.Errorf(task.AuthenticationRequired, "An access token is required, beside a client certificate.").
			WithCause(r)
	case Actor, Binding, Route, Skill, Obligation:
		return task.Errorf(task.AuthorizationFailed, "You are not allowed to make this call.").WithCause(r)
	}
	return task.Errorf(task.AccessTokenInvalid, "The access token is not accepted.").WithCause(r)
}

// ofToken returns the refusal of a token that package token does not accept; nil for another error.
func ofToken(err error) *Refusal {
	e, ok := errors.AsType[*token.Error](err)
	if !ok {
		return nil
	}
	r := &Refusal{Reason: e.Reason, Detail: e.Detail, ID: e.ID}
	if e.Err != nil {
		r.Detail = strings.TrimPrefix(r.Detail+": "+e.Err.Error(), ": ")
	}
	return r
}
