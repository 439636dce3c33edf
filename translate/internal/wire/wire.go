// SPDX-License-Identifier: Apache-2.0

// Package wire is what the codecs of several dialects need: a strict reader of what callers send, a lenient one of what
// agents answer, the data of errors, texts that are joined, and the members of objects that the canon has no field for.
// It knows no dialect. All of it reads JSON by gjson, from bodies that package jsonrpc has checked.
package wire

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// Limits of what one message may hold.
const (
	MaxID     = 256  // bytes of an id
	MaxItems  = 1000 // entries of a list, such as data items
	MaxURL    = 2048 // bytes of a webhook's URL; what else it must be is not a dialect's business
	MaxSecret = 4096 // bytes of what a webhook's owner wants to be authenticated by
)

// Absent reports whether a value is null or missing.
func Absent(v gjson.Result) bool { return v.Type == gjson.Null }

// Members calls f with every member of an object that is not null. Other values have no members.
func Members(object gjson.Result, f func(name string, v gjson.Result)) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.Null {
			f(key.Str, v)
		}
		return true
	})
}

// Line returns a copy of the JSON of v on one line, since events are sent on one line.
func Line(v gjson.Result) json.RawMessage { return OneLine([]byte(v.Raw)) }

// Object returns a copy of the JSON of v on one line: as it is where v is an object, otherwise as the member "value" of
// one, because structured data is always an object in AIP.
func Object(v gjson.Result) json.RawMessage {
	if v.IsObject() {
		return Line(v)
	}
	return append(append([]byte(`{"value":`), Line(v)...), '}')
}

// OneLine returns JSON on one line. It copies only where it must.
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
