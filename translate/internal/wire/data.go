// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// The data of an item is always an object in AIP, and so in the canon. Another value is the member "value" of one, and
// a mark in the metadata of the item says so: without it, a reader could not tell this object from one meant by its
// sender. The name of the mark is the one in the SDKs of A2A for the same purpose. Dialects whose data may be any value
// take the object away again.

// mark is the member of an item's metadata, true, for data as the member of an object.
const mark = "data_part_compat"

// ReadData makes it the data item of v, in a dialect whose data is always an object. Its metadata must be set already.
// A v other than an object is marked.
func ReadData(it *task.DataItem, v gjson.Result) {
	it.Kind, it.Data = task.DataKind, Object(v)
	if !v.IsObject() {
		it.Metadata = setMark(it.Metadata, true)
	}
}

// ReadAnyData is ReadData for a dialect whose data may be any value. There a sender may write the mark itself, at an
// object that the mark would make a value of. Such an object is the member of another one, so that it comes back.
func ReadAnyData(it *task.DataItem, v gjson.Result) {
	ReadData(it, v)
	if v.IsObject() && marked(it.Metadata) && holdsValue(v) {
		it.Data = append(append([]byte(`{"value":`), it.Data...), '}')
	}
}

// AnyData returns the value and the metadata of a data item for a dialect whose data may be any value: the inverse of
// ReadAnyData.
func AnyData(it *task.DataItem) (value, metadata json.RawMessage) {
	if len(it.Data) == 0 {
		return json.RawMessage(`{}`), it.Metadata
	}
	if !marked(it.Metadata) || !holdsValue(view(it.Data)) {
		return OneLine(it.Data), it.Metadata
	}
	inner := jsonrpc.Member(view(it.Data), "value")
	return Line(inner), setMark(it.Metadata, holdsValue(inner))
}

// marked reports whether metadata has the mark.
func marked(metadata json.RawMessage) bool { return string(MemberOf(metadata, mark)) == "true" }

// holdsValue reports whether v is an object that a mark makes a value of: its only member is a value other than an
// object, or an object of the same kind.
func holdsValue(v gjson.Result) bool {
	for v.IsObject() {
		members := 0
		var inner gjson.Result
		jsonrpc.ForEach(v, func(key, m gjson.Result) bool {
			if members++; key.Str == "value" {
				inner = m
			}
			return members == 1
		})
		if members != 1 || inner.Raw == "" {
			return false
		}
		if v = inner; !v.IsObject() {
			return true
		}
	}
	return false
}

// setMark returns metadata with the mark or without it. It is nil if nothing is left.
func setMark(metadata json.RawMessage, set bool) json.RawMessage {
	dst, empty := appendMembers([]byte{'{'}, true, metadata, func(name string) bool { return name != mark })
	switch {
	case set && !empty:
		dst = append(dst, ',')
		fallthrough
	case set:
		return append(dst, `"`+mark+`":true}`...)
	case empty:
		return nil
	}
	return append(dst, '}')
}
