// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// BeginRequest appends a request up to its params. The caller appends them, then calls End.
func BeginRequest(dst []byte, id ID, method string) []byte {
	dst = begin(dst, id)
	dst = append(dst, `,"method":`...)
	dst = gjson.AppendJSONString(dst, method)
	return append(dst, `,"params":`...)
}

// BeginNotification is BeginRequest for a request without an id. Such a request gets no answer.
func BeginNotification(dst []byte, method string) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":`...)
	dst = gjson.AppendJSONString(dst, method)
	return append(dst, `,"params":`...)
}

// BeginResult appends a response up to its result. The caller appends it, then calls End.
func BeginResult(dst []byte, id ID) []byte {
	dst = begin(dst, id)
	return append(dst, `,"result":`...)
}

// End closes a request or response of a Begin function.
func End(dst []byte) []byte { return append(dst, '}') }

// AppendError appends an error response. data is JSON, or empty for none.
func AppendError(dst []byte, id ID, code int, message string, data []byte) []byte {
	dst = begin(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = gjson.AppendJSONString(dst, message)
	if len(data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = append(dst, data...)
	}
	return append(dst, '}', '}')
}

func begin(dst []byte, id ID) []byte {
	if len(id) == 0 {
		id = null
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	return append(dst, id...)
}
