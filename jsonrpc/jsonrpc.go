// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import "github.com/tidwall/gjson"

// ID is a request's id as the caller wrote it, byte for byte: a string with its quotes, a number, or null.
type ID []byte

// Request is a valid JSON-RPC request.
type Request struct {
	ID     ID
	Method string
	Params gjson.Result // an object, or a Result that does not exist
}
