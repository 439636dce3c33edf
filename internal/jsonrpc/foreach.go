// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
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
		end, escaped := w.spans.at(w.base + i)
		if end -= w.base; end <= i {
			end, escaped = w.str(i)
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

// stretch is the number of bytes of a string looked at one by one, before a search passes those without an escape.
const stretch = 64

// str returns the end of a string, and reports whether it has an escape.
func (w *walk) str(i int) (end int, escaped bool) {
	body, quote := w.body, 0
	i++
	for {
		for most := min(i+stretch, len(body)); i < most; i++ {
			if c := body[i]; c > '\\' {
				continue
			} else if c == '"' {
				return i + 1, escaped
			} else if c == '\\' {
				escaped = true
				i++
			}
		}
		if i >= len(body) {
			return len(body), escaped
		}
		if quote < i {
			n := bytes.IndexByte(body[i:], '"')
			if n < 0 {
				return len(body), escaped
			}
			quote = i + n
		}
		n := bytes.IndexByte(body[i:quote], '\\')
		if n < 0 {
			return quote + 1, escaped
		}
		i += n
	}
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
		for most := min(i+stretch, len(raw)); i < most && raw[i] != '\\'; i++ {
			out[n] = raw[i]
			n++
		}
		if i == len(raw) {
			break
		}
		if raw[i] != '\\' {
			more := bytes.IndexByte(raw[i:], '\\')
			if more < 0 {
				more = len(raw) - i
			}
			n += copy(out[n:], raw[i:i+more])
			i += more
			continue
		}
		if i+1 == len(raw) {
			break
		}
		c := raw[i+1]
		i += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(raw[i:])
			if i = min(i+4, len(raw)); utf16.IsSurrogate(r) && i+1 < len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
				r = utf16.DecodeRune(r, hex4(raw[i+2:]))
				i = min(i+6, len(raw))
			}
			n = len(utf8.AppendRune(out[:n], r))
			continue
		} // else a quote, a slash or a backslash
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
