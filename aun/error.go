// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"errors"
	"fmt"

	"github.com/coder/websocket"
)

// Error is the error of a JSON-RPC response of AUN, from the other end or for it.
type Error struct {
	Code    int64
	Message string
	Data    []byte // JSON; nil for none
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("aun: error %d: %s", e.Code, e.Message) }

// Errorf returns an error with a code.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ErrorOf returns an error as the other end receives it; faultOf translates errors other than an Error; nil for none.
func ErrorOf(err error, faultOf func(error) (code int64, message string, data []byte)) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := new(Error)
	e.Code, e.Message, e.Data = faultOf(err)
	return e
}

// CloseCode is the status of a connection's close.
type CloseCode = websocket.StatusCode

// The statuses of a close: those of WebSocket, and those of AUN from 4000 on. SDKs do not reconnect after one of AUN's.
const (
	CloseNormal      CloseCode = 1000
	CloseGoingAway   CloseCode = 1001
	CloseProtocol    CloseCode = 1002
	CloseUnsupported CloseCode = 1003 // a binary frame
	CloseAbnormal    CloseCode = 1006 // never on the wire: the connection broke without a close
	CloseInvalidData CloseCode = 1007 // a frame other than JSON in UTF-8
	ClosePolicy      CloseCode = 1008
	CloseTooLarge    CloseCode = 1009
	CloseInternal    CloseCode = 1011
	CloseRestart     CloseCode = 1012
	CloseTryLater    CloseCode = 1013

	CloseAuthFailed    CloseCode = 4001
	CloseInvalidAID    CloseCode = 4003
	CloseAuthTimeout   CloseCode = 4008
	CloseReplaced      CloseCode = 4009 // a newer connection of the same device and slot, or an operator
	CloseInvalidNonce  CloseCode = 4010
	CloseFederation    CloseCode = 4011
	CloseLongExists    CloseCode = 4012
	CloseShortCapacity CloseCode = 4013
	CloseShortIdle     CloseCode = 4014
	CloseQuota         CloseCode = 4015
)

// CloseError is the reason of a connection's end.
type CloseError struct {
	Code   CloseCode // CloseAbnormal if neither end has closed it
	Reason string
	Local  bool  // this end has closed it
	Err    error // the fault; nil after a close
}

// Error implements error.
func (e *CloseError) Error() string {
	who := "the other end"
	if e.Local {
		who = "this end"
	}
	switch {
	case e.Err != nil:
		return "aun: the connection broke: " + e.Err.Error()
	case e.Reason != "":
		return fmt.Sprintf("aun: %s closed the connection with %d: %s", who, e.Code, e.Reason)
	}
	return fmt.Sprintf("aun: %s closed the connection with %d", who, e.Code)
}

// Unwrap returns the fault of a broken connection.
func (e *CloseError) Unwrap() error { return e.Err }

// Final reports whether the close asks the client not to connect again by itself.
func (e *CloseError) Final() bool { return e.Code >= 4000 }

// LostError is the error of a call without an answer, because the connection has ended.
type LostError struct {
	Sent bool // the other end may have received the call
	Err  error
}

// Error implements error.
func (e *LostError) Error() string {
	if e.Sent {
		return "aun: no answer: " + e.Err.Error()
	}
	return "aun: not sent: " + e.Err.Error()
}

// Unwrap returns the reason of the connection's end.
func (e *LostError) Unwrap() error { return e.Err }

// ErrTooLarge is the error of a frame larger than MaxFrame. It is not sent.
var ErrTooLarge = errors.New("aun: the frame is too large")
