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
