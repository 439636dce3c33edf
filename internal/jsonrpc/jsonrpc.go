// SPDX-License-Identifier: Apache-2.0

// Package jsonrpc is the envelope of most dialects: JSON-RPC 2.0. It reads requests and responses strictly and within
// limits, and is the one writer of envelopes. It knows no dialect: its callers choose the number and the message of an
// error.
package jsonrpc

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// ID is a request's id as the caller wrote it, byte for byte: a string with its quotes, a number, or null.
// The empty ID stands for none and is written as null.
type ID []byte

// Request is a valid JSON-RPC request. All of it is a view of its body: it is valid for as long as the body is
// unchanged. A caller keeping a part of it for longer copies that part.
type Request struct {
	ID     ID // empty if the request has none; see Check
	Method string
	Params gjson.Result // any JSON value, or a Result that does not exist; see Check
}

// Response is a valid JSON-RPC response. Like a Request it is a view of its body.
type Response struct {
	ID      ID           // empty if the response has none
	Result  gjson.Result // does not exist if Failure is set
	Failure *Failure     // the error reported by the other end; nil for none
}

// Failure is the error object of a response, as the other end wrote it.
type Failure struct {
	Code    int64
	Message string
	Data    gjson.Result // any JSON value, or a Result that does not exist
}

// Limits bound a body. A zero stands for the default.
type Limits struct {
	Bytes int // size of a body
	Depth int // objects and arrays inside each other; a flat object has depth 1
}

// Defaults of Limits.
const (
	DefaultBytes = 20 << 20
	DefaultDepth = 64
)

// or returns l with every zero replaced by its default.
func (l Limits) or() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	return l
}

// The codes of an Error, as JSON-RPC 2.0 numbers them.
const (
	ParseError     = -32700 // the body is not JSON
	InvalidRequest = -32600 // the body is JSON, but JSON-RPC or the limits do not allow it
)

// Error is the reason for refusing a body. It never holds a part of the body other than the names of members.
type Error struct {
	ID     ID     // the request's own if it could be read, otherwise null
	Code   int    // ParseError or InvalidRequest
	Detail string // a sentence for the sender: what to change
	Field  string // the member at fault, as a path: params.message.taskId
	Limit  string // the exceeded limit: "bytes" or "depth"
	Max    int    // its value
	Offset int    // ParseError: the first byte, from 0, after the valid beginning of JSON
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Code == ParseError:
		return fmt.Sprintf("jsonrpc: byte %d: %s", e.Offset, e.Detail)
	case e.Field != "":
		return fmt.Sprintf("jsonrpc: at %s: %s", e.Field, e.Detail)
	}
	return "jsonrpc: " + e.Detail
}
