// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the kind of an error, in the words of no dialect. Every dialect maps kinds to its own numbers at its edge,
// because the same number means different things in different dialects.
type Kind uint8

// The kinds of error. Those before LimitExceeded are AIP's (v01.00 §5.2); the rest are the gateway's.
const (
	Internal                 Kind = iota // the gateway's own fault
	ParseError                           // not JSON
	InvalidRequest                       // JSON, but no JSON-RPC request
	MethodNotFound                       // a method not known to this Partner
	InvalidParams                        // a parameter of the wrong type or value, or a missing one
	TaskNotFound                         // no such task for this Leader
	TaskNotCancelable                    // the agent refuses to cancel
	NotificationNotSupported             // webhooks are off
	UnsupportedOperation                 // known, but not for this agent
	ContentTypeNotSupported              // the agent does not take this kind of content
	InvalidAgentResponse                 // the agent's answer is not allowed by its protocol
	GroupNotSupported                    // groups are off
	AuthenticationRequired               // no identity, or none to be trusted
	AuthorizationFailed                  // an identity not allowed to do this
	AccessTokenInvalid                   // a wrong or expired bearer token
	LimitExceeded                        // a limit of the gateway is reached
	AgentUnavailable                     // the agent cannot be reached
	AgentTimeout                         // the agent was silent for too long
	StoreUnavailable                     // the store cannot be used now, and tries again by itself
	InvitationRejected                   // the Partner may not join this group, or not by this caller
	// ConnectionFailed: the message broker of a group cannot be used. Detail is the reason, Data has host and port.
	ConnectionFailed

	kinds // their number
)

// Kinds lists every kind, for a test of a dialect to prove its table complete.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

var kindNames = [kinds]string{
	"internal", "parse-error", "invalid-request", "method-not-found", "invalid-params", "task-not-found",
	"task-not-cancelable", "notification-not-supported", "unsupported-operation", "content-type-not-supported",
	"invalid-agent-response", "group-not-supported", "authentication-required", "authorization-failed",
	"access-token-invalid", "limit-exceeded", "agent-unavailable", "agent-timeout",
	"store-unavailable", "invitation-rejected", "connection-failed",
}

// Valid reports whether there is such a kind.
func (k Kind) Valid() bool { return k < kinds }

// String returns the kind's name as it stands in log lines.
func (k Kind) String() string {
	if k.Valid() {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Error is an error with a kind. Detail is a sentence for the caller, and names the change to make; Field and Data
// locate the mistake. None of them ever holds a payload or a secret.
type Error struct {
	Kind   Kind
	Detail string
	Field  string         // the offending field, as a path: params.message.taskId
	Data   map[string]any // more for the caller: limit, max, taskId
	Err    error          // the cause, for the log; never shown to a caller
}

// Errorf returns an Error of a kind with a formatted Detail.
func Errorf(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Detail: fmt.Sprintf(format, args...)}
}

// WithField returns e with its Field set.
func (e *Error) WithField(field string) *Error { e.Field = field; return e }

// WithData returns e with one more member of Data.
func (e *Error) WithData(key string, value any) *Error {
	if e.Data == nil {
		e.Data = make(map[string]any, 2)
	}
	e.Data[key] = value
	return e
}

// RetryAfter is the member of Data with the number of seconds, an int64, until the call may be made again.
const RetryAfter = "retryAfter"

// RetryAfter returns the number of seconds until the call may be made again; 0 if the error has none.
func (e *Error) RetryAfter() int64 {
	seconds, _ := e.Data[RetryAfter].(int64)
	return seconds
}

// bodyLimit is the value of Data's member limit if the body of a request is too large.
const bodyLimit = "bytes"

// BodyTooLarge is the error of a kind for a request whose body has more than max bytes.
func BodyTooLarge(k Kind, max int64) *Error {
	return Errorf(k, "the body is larger than %d bytes", max).WithData("limit", bodyLimit).WithData("max", max)
}

// IsBodyTooLarge reports whether an error is one of BodyTooLarge.
func IsBodyTooLarge(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Data["limit"] == bodyLimit
}

// WithCause returns e with its cause set.
func (e *Error) WithCause(err error) *Error { e.Err = err; return e }

// Error implements error.
func (e *Error) Error() string {
	if same, ok := e.Err.(*Error); ok && same.Kind == e.Kind && same.Detail == e.Detail {
		return same.Error() // the cause has the same words
	}
	s := e.Kind.String()
	if e.Field != "" {
		s += " at " + e.Field
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s = strings.TrimSuffix(s, ".") + ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// StateError is the cause of the error of a command not allowed in the task's state.
type StateError struct{ State State }

// Error implements error.
func (e *StateError) Error() string { return "the task is " + string(e.State) }

// KindOf returns the kind of the first Error in err's chain, and Internal if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
