// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import "github.com/tidwall/gjson"

// Member returns the member of an object that has exactly this name. It does not exist where there is none.
func Member(object gjson.Result, name string) (found gjson.Result) {
	if !object.IsObject() {
		return found
	}
	object.ForEach(func(key, v gjson.Result) bool {
		if key.Str == name {
			found = v
		}
		return !found.Exists()
	})
	return found
}

// IsEmpty reports whether a value says nothing: it does not exist, is null, or is an object or array without members.
func IsEmpty(v gjson.Result) bool {
	if !v.IsObject() && !v.IsArray() {
		return v.Type == gjson.Null
	}
	empty := true
	v.ForEach(func(_, _ gjson.Result) bool { empty = false; return false })
	return empty
}
