// SPDX-License-Identifier: Apache-2.0

// Package value reads and writes JSON values.
package value

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
)

// members calls f with every member of an object that is not null.
func Members(object gjson.Result, f func(key string, v gjson.Result)) {
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

// object returns the JSON of v on one line: as it is where it is an object, otherwise as the member "value" of
// one, because AIP's structured data is always an object.
func Object(v gjson.Result) json.RawMessage {
	if v.IsObject() {
		return Line(v)
	}
	return append(append([]byte(`{"value":`), Line(v)...), '}')
}

// raw returns the JSON of v on one line.
func Line(v gjson.Result) json.RawMessage {
	b := []byte(v.Raw)
	if bytes.IndexByte(b, '\n') < 0 && bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	var line bytes.Buffer
	if err := json.Compact(&line, b); err != nil {
		return b // cannot happen: v is valid
	}
	return line.Bytes()
}

// v1Line returns JSON on one line, as events go out.
func LineOf(b []byte) []byte {
	if bytes.IndexByte(b, '\n') >= 0 || bytes.IndexByte(b, '\r') >= 0 {
		return Line(gjson.ParseBytes(b))
	}
	return b
}

// legacyOptional appends a member, unless it is empty.
func AppendOptional(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return task.AppendString(append(dst, key...), value)
}

// memberOf returns the member of an object that has exactly this name.
func Member(object gjson.Result, name string) (found gjson.Result) {
	Members(object, func(key string, v gjson.Result) {
		if key == name {
			found = v
		}
	})
	return found
}
