// SPDX-License-Identifier: Apache-2.0

// Package wire has the common parts of several dialects' codecs: a strict reader of callers' requests, a lenient one of
// agents' answers, the data of errors, joined texts, and the members of objects without a field in the canon. It knows
// no dialect. All of it reads JSON by gjson, from bodies checked by package jsonrpc.
package wire

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// Limits of one message.
const (
	MaxID     = 256  // bytes of an id
	MaxItems  = 1000 // entries of a list, such as data items
	MaxURL    = 2048 // bytes of a webhook's URL; its other rules are not a dialect's business
	MaxSecret = 4096 // bytes of the credentials or the token of a webhook
)

// Absent reports whether a value is null or missing.
func Absent(v gjson.Result) bool { return v.Type == gjson.Null }

// Members calls f with every member of an object but for nulls. Other values have no members.
func Members(object gjson.Result, f func(name string, v gjson.Result)) {
	if !object.IsObject() {
		return
	}
	jsonrpc.ForEach(object, func(key, v gjson.Result) bool {
		if v.Type != gjson.Null {
			f(key.Str, v)
		}
		return true
	})
}

// Line returns a copy of the JSON of v on one line, since events are sent on one line.
func Line(v gjson.Result) json.RawMessage { return OneLine([]byte(v.Raw)) }

// Object returns a copy of the JSON of v on one line: as it is if v is an object, otherwise as the member "value" of
// one, because structured data is always an object in AIP.
func Object(v gjson.Result) json.RawMessage {
	if v.IsObject() {
		return Line(v)
	}
	return append(append([]byte(`{"value":`), Line(v)...), '}')
}

// OneLine returns JSON on one line. It copies only if it must.
func OneLine(value []byte) []byte {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return value
	}
	var line bytes.Buffer
	if err := json.Compact(&line, value); err != nil {
		return []byte("null") // not reached: the value is valid
	}
	return line.Bytes()
}
