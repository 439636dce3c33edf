// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Reason is the reason an agent cannot be used, or did not answer a request. The driver of a turn decides by it whether
// the request is sent again; for an operator it names the thing to correct.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota

	// No connection could be made, so nothing was sent.
	Unreachable // the agent cannot be reached now
	OutOfFiles  // the gateway, or its system, has no file descriptors left

	// The agent may have received the request.
	Disconnected // the connection broke before the answer was complete
	StreamCut    // the stream of an answer ended before the turn did
	OtherAnswer  // the agent has answered another request: the fate of this one is not known
	ProxyFailed  // a proxy in front of the agent does not reach it
	Overloaded   // the agent takes no requests now, and has done nothing
	ServerFailed // the agent's server failed
	Rejected     // a status of the transport, in an answer not understood
	Refused      // the agent has refused the message of a start in its own words, and has done nothing
	NoAgent      // no agent answers at the URL
	WrongDialect // the agent does not know a method of its dialect: the configured dialect is wrong

	// The operator must change the configuration.
	CredentialsRefused   // the agent refuses the gateway's credentials: the header fields
	CertificateRefused   // the agent refuses the gateway's client certificate, or its absence
	CertificateUntrusted // the gateway does not trust the agent's certificate
	NoTLS                // the agent's URL is https, and the agent does not speak TLS
	NoHTTP2              // the agent's dialect is one of gRPC, and its server does not speak HTTP/2, or offers no h2
	IdentityRefused      // a certificate of AUN is not accepted: the gateway's by the agent, or the agent's by the gateway
	Redirected           // the agent redirects; this is not followed: the URL must be the final one
	InvalidURL           // the agent's URL cannot be used
	URLHasCredentials    // the agent's URL holds credentials; they belong in a header field
	InvalidHeader        // a header field for the agent has a name or a value not allowed by HTTP
	CardMissing          // the agent shows no card: its URL or the credentials are wrong
	DialectUnknown       // the dialect was not found: the URL or credentials are wrong, or the dialect must be named
)

var reasonNames = [...]string{
	"no reason",
	"unreachable", "out of files",
	"disconnected", "stream cut", "other answer", "proxy failed", "overloaded", "server failed", "rejected", "refused",
	"no agent", "wrong dialect",
	"credentials refused", "certificate refused", "certificate untrusted", "no TLS", "no HTTP/2",
	"identity refused", "redirected", "invalid URL", "URL has credentials", "invalid header", "card missing",
	"dialect unknown",
}

// String returns the reason as it stands in log lines.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Error is a transport's knowledge of a failure. It is the cause of a task.Error.
type Error struct {
	Reason     Reason
	RetryAfter time.Duration // of Overloaded: the pause asked for by the agent; 0 if it names none
	Err        error         // the cause, for the log; nil for none
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Reason.String()
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Broken implements partner.Unanswered: it reports whether the agent may have received the request, and has not
// answered it.
func (e *Error) Broken() bool { return e.Reason.transient() }

// Refused implements partner.Refusal.
func (e *Error) Refused() bool { return e.Reason == Refused }

// ReasonOf returns the reason of the first Error in err's chain, and NoReason if there is none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return NoReason
}

// Failed returns a task.Error with a reason. cause may be nil.
func Failed(kind task.Kind, reason Reason, cause error, format string, args ...any) *task.Error {
	e := task.Errorf(kind, format, args...)
	if reason == NoReason && cause == nil {
		return e
	}
	return e.WithCause(&Error{Reason: reason, Err: cause})
}
