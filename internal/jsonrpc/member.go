// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"slices"

	"github.com/tidwall/gjson"
)

// Member returns the member of an object with exactly this name. Without one, the Result does not exist.
func Member(object gjson.Result, name string) (found gjson.Result) {
	Members(object, Named{name, &found})
	return found
}

// A Named is a member of an object, looked for by Members.
type Named struct {
	Name string
	To   *gjson.Result
}

// Members is Member for several members. It reads the object once, however many they are.
func Members(object gjson.Result, members ...Named) {
	for _, m := range members {
		*m.To = gjson.Result{}
	}
	if !object.IsObject() {
		return
	}
	left := len(members)
	ForEach(object, func(key, v gjson.Result) bool {
		i := slices.IndexFunc(members, func(m Named) bool { return m.Name == key.Str })
		if i >= 0 && !members[i].To.Exists() {
			*members[i].To = v
			left--
		}
		return left > 0
	})
}

// IsEmpty reports whether a value says nothing: it does not exist, is null, or is an object or array without members.
func IsEmpty(v gjson.Result) bool {
	if !v.IsObject() && !v.IsArray() {
		return v.Type == gjson.Null
	}
	empty := true
	ForEach(v, func(_, _ gjson.Result) bool { empty = false; return false })
	return empty
}

// ReadBegin reads the id, the method and the params, if present, from the begin of an unparsed request, for an answer
// to it. It proves nothing: the rest of the request is not read.
func ReadBegin(begin []byte) (r Request) {
	r.Method = gjson.GetBytes(begin, "method").Str
	id := gjson.GetBytes(begin, "id")
	if whole := id.Index+len(id.Raw) < len(begin); whole && gjson.Valid(id.Raw) && isID(id.Raw) {
		r.ID = ID(id.Raw)
	}
	if params := gjson.GetBytes(begin, "params"); params.IsObject() {
		r.Params = params
	}
	return r
}
