// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
)

// The extensions of an object are the things without a field in the canon: a JSON object with a member for each family
// of dialects, {"a2a":{"extensions":["x"]}}. Only codecs look into it, and each family only at its own member. Those of
// a data item stand in its Metadata, beside its sender's own members.

// MaxExtensions is the most bytes of an object's extensions. Larger ones are dropped.
const MaxExtensions = 64 << 10

// merged returns old with news put in: members of both are put together if they are objects, down to the members of a
// family's metadata, and otherwise news counts. If the result is too large, it is news alone.
func merged(old, news json.RawMessage) json.RawMessage {
	if len(old) == 0 {
		return news
	}
	const levels = 3 // families, their members, and the contents of those
	if out := mergedTo(nil, old, news, levels); len(out) <= MaxExtensions {
		return out
	}
	return news
}

func mergedTo(dst, old, news []byte, depth int) []byte {
	with := make(map[string][]byte)
	eachMember(news, func(key, v []byte) bool {
		with[unquote(key)] = v
		return true
	})
	begin := len(dst) + 1
	dst = append(dst, '{')
	add := func(key, v, w []byte) {
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(append(dst, key...), ':')
		switch {
		case w == nil:
			dst = append(dst, v...)
		case depth > 1 && isObject(v) && isObject(w):
			dst = mergedTo(dst, v, w, depth-1)
		default:
			dst = append(dst, w...)
		}
	}
	eachMember(old, func(key, v []byte) bool {
		name := unquote(key)
		add(key, v, with[name])
		delete(with, name)
		return true
	})
	eachMember(news, func(key, w []byte) bool {
		if _, left := with[unquote(key)]; left {
			add(key, w, nil)
		}
		return true
	})
	return append(dst, '}')
}

// unquote returns the string of a key.
func unquote(key []byte) string {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key[1 : len(key)-1])
	}
	var s string
	if err := json.Unmarshal(key, &s); err != nil {
		return string(key)
	}
	return s
}

// eachMember calls f with the members of an object in valid JSON, as they are written, until f returns false. Any other
// value has none.
func eachMember(object []byte, f func(key, value []byte) bool) {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return
	}
	for i++; ; i++ {
		i = skipSpace(object, i)
		end := skipValue(object, i)
		if end <= i || object[i] != '"' {
			return
		}
		key := object[i:end]
		if i = skipSpace(object, end); i >= len(object) || object[i] != ':' {
			return
		}
		i = skipSpace(object, i+1)
		if end = skipValue(object, i); end <= i {
			return
		}
		if !f(key, object[i:end:end]) {
			return
		}
		if i = skipSpace(object, end); i >= len(object) || object[i] != ',' {
			return
		}
	}
}

// ReplaceStrings returns a value in valid JSON with f of each of its strings, names of members too, in place of it.
// Everything else stays as it is written. The value itself is not changed.
func ReplaceStrings(value json.RawMessage, f func(text string) string) json.RawMessage {
	var out []byte
	from := 0 // begin of the part of value not in out yet
	for at := 0; at < len(value); {
		end := at + 1
		if value[at] == '"' {
			if end = skipString(value, at); end == at {
				break
			}
			text := unquote(value[at:end])
			if by := f(text); by != text {
				out = AppendString(append(out, value[from:at]...), by)
				from = end
			}
		}
		at = end
	}
	if from == 0 {
		return value
	}
	return append(out, value[from:]...)
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the end of the value at i; i if there is none.
func skipValue(b []byte, i int) int {
	depth := 0
	for at := i; at < len(b); at++ {
		switch b[at] {
		case '"':
			end := skipString(b, at)
			if end == at {
				return i
			}
			if depth == 0 {
				return end
			}
			at = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
		}
	}
	if depth > 0 {
		return i
	}
	return len(b)
}

// skipString returns the end of the string at i; i if it has none.
func skipString(b []byte, i int) int {
	for at := i + 1; at < len(b); at++ {
		switch b[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return i
}
