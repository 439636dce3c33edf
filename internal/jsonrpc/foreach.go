// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
)

// ForEach is gjson's method of this name for a value that has been checked: it passes long strings faster, and one with
// escapes costs the memory of its text alone.
func ForEach(of gjson.Result, f func(key, v gjson.Result) bool) {
	if !of.IsObject() && !of.IsArray() {
		of.ForEach(f)
		return
	}
	w := walk{raw: of.Raw, body: unsafe.Slice(unsafe.StringData(of.Raw), len(of.Raw)), base: of.Index, known: of.Indexes,
		spans: within(&of)}
	isArray := of.Raw[0] == '['
	key, v := gjson.Result{Type: gjson.String}, gjson.Result{}
	if isArray {
		key = gjson.Result{Type: gjson.Number, Num: -1}
	}
	for i := w.next(1); i < len(w.body) && w.body[i] != '}' && w.body[i] != ']'; i = w.next(i) {
		if isArray {
			key.Num++
		} else {
			key.Index = of.Index + i
			end, escaped := w.str(i)
			w.text(i, end, escaped, &key)
			i = w.next(end)
		}
		v = gjson.Result{Index: of.Index + i}
		if i = w.value(i, &v); !f(key, v) {
			return
		}
	}
}

// walk reads a checked value: body is a view of raw. Its methods take the place of a value, and return that of its end:
// none beyond the body, whatever it holds.
type walk struct {
	raw  string
	body []byte

	base  int   // offset of the value
	known []int // Indexes of the value
	spans spans // of what is still to be read
}

// next returns the place of the next value or key, or of the end of the object or array.
func (w *walk) next(i int) int {
	for i < len(w.body) && (w.body[i] <= ' ' || w.body[i] == ',' || w.body[i] == ':') {
		i++
	}
	return i
}

func (w *walk) value(i int, v *gjson.Result) (end int) {
	if i >= len(w.body) {
		return i
	}
	switch c := w.body[i]; c {
	case '"':
		end, has := w.spans.at(w.base + i)
		escaped := has != 0
		if end -= w.base; end <= i {
			end, escaped = w.str(i)
		} else {
			v.Indexes = w.known
		}
		v.Type = gjson.String
		w.text(i, end, escaped, v)
		return end
	case '{', '[':
		end, _ := w.spans.at(w.base + i)
		if end -= w.base; end <= i {
			end = w.nested(i)
		}
		v.Type, v.Raw, v.Indexes = gjson.JSON, w.raw[i:end], w.known
		return end
	}
	for end = i + 1; end < len(w.body) && !isEnd(w.body[end]); {
		end++
	}
	v.Raw = w.raw[i:end]
	switch w.body[i] {
	case 't':
		v.Type = gjson.True
	case 'f':
		v.Type = gjson.False
	case 'n':
	default:
		v.Type = gjson.Number
		v.Num, _ = strconv.ParseFloat(v.Raw, 64)
	}
	return end
}

func isEnd(c byte) bool { return c <= ' ' || c == ',' || c == '}' || c == ']' }

// nested returns the end of an object or an array.
func (w *walk) nested(i int) int {
	for depth := 0; i < len(w.body); i++ {
		switch w.body[i] {
		case '"':
			i, _ = w.str(i)
			i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(w.body)
}

// str returns the end of a string, and reports whether it has an escape.
func (w *walk) str(i int) (end int, escaped bool) {
	for i++; i < len(w.body); {
		if i+8 <= len(w.body) {
			marks := odd(binary.LittleEndian.Uint64(w.body[i:]))
			if marks == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(marks) / 8
		}
		switch w.body[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
		i++
	}
	return len(w.body), escaped
}

// text sets the raw form and the text of a string.
func (w *walk) text(i, end int, escaped bool, v *gjson.Result) {
	v.Raw = w.raw[i:end]
	if v.Str = w.raw[i+1 : max(end-1, i+1)]; escaped {
		v.Str = unescape(v.Str)
	}
}

// unescape returns the text of a string with escapes, without its quotes, in memory of its own.
func unescape(s string) string {
	buf := unescaped.Get()
	defer unescaped.Put(buf)
	*buf = appendUnescaped(*buf, unsafe.Slice(unsafe.StringData(s), len(s)))
	return string(*buf)
}

// unescaped has the texts of strings while they are unescaped.
var unescaped = bufpool.Pool{Largest: 256 << 10}

// appendUnescaped appends the text of a checked string, as gjson reads it. raw is the string without its quotes.
func appendUnescaped(dst, raw []byte) []byte {
	begin := len(dst)
	out := slices.Grow(dst, len(raw))[:begin+len(raw)] // a text is no longer than its escapes
	n := begin
	for i := 0; i < len(raw); {
		if i+8 <= len(raw) {
			word := binary.LittleEndian.Uint64(raw[i:])
			binary.LittleEndian.PutUint64(out[n:], word)
			marks := odd(word)
			if marks == 0 {
				n, i = n+8, i+8
				continue
			}
			plain := bits.TrailingZeros64(marks) / 8
			n, i = n+plain, i+plain
		}
		if raw[i] != '\\' {
			out[n] = raw[i]
			n, i = n+1, i+1
			continue
		}
		if i+1 == len(raw) {
			break
		}
		c := raw[i+1]
		i += 2
		if e := shortEscapes[c]; e != 0 {
			c = e
		} else if c == 'u' {
			r := hex4(raw[i:])
			if i = min(i+4, len(raw)); utf16.IsSurrogate(r) && i+1 < len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
				r = utf16.DecodeRune(r, hex4(raw[i+2:]))
				i = min(i+6, len(raw))
			}
			n = len(utf8.AppendRune(out[:n], r))
			continue
		}
		out[n] = c
		n++
	}
	return out[:n]
}

// hex4 returns the value of four hexadecimal digits.
func hex4(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:min(4, len(digits))]), 16, 16)
	return rune(n)
}
