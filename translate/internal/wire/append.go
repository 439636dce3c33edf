// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// AppendOptional appends a string as a member, unless it is empty. key is the text before it: `,"name":`.
func AppendOptional(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return task.AppendString(append(dst, key...), value)
}

// AppendStrings appends an array of strings as a member. key is the text before it: `,"tags":`.
func AppendStrings(dst []byte, key string, list []string) []byte {
	dst = append(append(dst, key...), '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = task.AppendString(dst, s)
	}
	return append(dst, ']')
}

// MediaTypes returns the media types of an agent's modes, each once. Agents of the oldest A2A write text for
// text/plain.
func MediaTypes(modes []string) []string {
	types := make([]string, 0, len(modes))
	for _, m := range modes {
		if m == "text" {
			m = "text/plain"
		}
		if !slices.Contains(types, m) {
			types = append(types, m)
		}
	}
	return types
}
