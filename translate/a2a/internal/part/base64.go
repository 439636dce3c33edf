// SPDX-License-Identifier: Apache-2.0

package part

import (
	"strings"
)

// v1Base64 returns s as the standard base64 with padding that AIP has: A2A takes the one for URLs as well, and
// padding may be missing in both. ok is false where s is neither; it is returned as it was.
func Base64(s string) (standard string, ok bool) {
	digits := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	foreign := false
	for i := 0; i < len(digits); i++ {
		switch c := digits[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '-', c == '_':
			foreign = true
		default:
			return s, false
		}
	}
	if len(digits)%4 == 1 || digits == "" && s != "" {
		return s, false
	}
	if !foreign && len(s)%4 == 0 {
		return s, true
	}
	const padding = "=="
	return fromURL.Replace(digits) + padding[:(4-len(digits)%4)%4], true
}

var fromURL = strings.NewReplacer("-", "+", "_", "/")

// legacyBase64 reports whether s is the standard base64 of RFC 4648 §4, with its padding: the one that agents take.
func IsBase64(s string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	digits := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	return len(s)%4 == 0 && strings.Trim(digits, letters) == ""
}
