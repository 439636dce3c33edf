// SPDX-License-Identifier: Apache-2.0

package amp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// appendCanonical appends a value in the canonical form of RFC 8785.
func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		n, err := json.Marshal(v) // as ECMAScript does
		if err != nil {
			return append(b, "null"...) // there is no such number in JSON
		}
		return append(b, n...)
	case []any:
		b = append(b, '[')
		for i, one := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, one)
		}
		return append(b, ']')
	case Object:
		names := slices.SortedFunc(maps.Keys(v), byUTF16)
		b = append(b, '{')
		for i, name := range names {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, name)
			b = append(b, ':')
			b = appendCanonical(b, v[name])
		}
		return append(b, '}')
	case nil:
		return append(b, "null"...)
	}
	panic(fmt.Sprintf("amp: a record has a %T", v)) // of this package's own making
}

// byUTF16 orders names by their UTF-16 code units (RFC 8785 §3.2.3).
func byUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// appendString appends a string with no other escapes than those that are needed (RFC 8785 §3.2.2.2). What is no UTF-8
// is replaced.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b = append(b, '\\', byte(r))
		case '\b':
			b = append(b, `\b`...)
		case '\t':
			b = append(b, `\t`...)
		case '\n':
			b = append(b, `\n`...)
		case '\f':
			b = append(b, `\f`...)
		case '\r':
			b = append(b, `\r`...)
		default:
			if r < ' ' {
				b = fmt.Appendf(b, `\u%04x`, r)
				continue
			}
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
