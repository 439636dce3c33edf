// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. Characters allowed by JSON stand as they are; bytes other than UTF-8 become
// U+FFFD, because JSON has no way to write them.
func AppendString(dst []byte, s string) []byte {
	return append(appendEscaped(append(dst, '"'), s), '"')
}

// appendEscaped is AppendString without the quotes. It copies 8 bytes at a time, and goes back to the first of them
// that is not to stand as it is.
func appendEscaped(dst []byte, s string) []byte {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	out, n, i := dst[:cap(dst)], len(dst), 0
	for len(s)-i >= 8 {
		if len(out)-n < 8 {
			out = slices.Grow(out[:n], len(s)-i)
			out = out[:cap(out)]
		}
		b := s[i : i+8]
		word := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		binary.LittleEndian.PutUint64(out[n:], word)
		quote, backslash := word^('"'*ones), word^('\\'*ones)
		// A byte below k has its top bit set in word - k*ones, and so may one behind it, but none before it.
		odd := (word | (word - 0x20*ones) | (quote - ones) | (backslash - ones)) & tops
		if odd == 0 {
			n, i = n+8, i+8
			continue
		}
		plain := bits.TrailingZeros64(odd) / 8
		n, i = n+plain, i+plain
		if e := shortEscapes[s[i]]; e != 0 && len(out)-n >= 2 {
			out[n], out[n+1] = '\\', e
			n, i = n+2, i+1
			continue
		}
		dst, i = appendOdd(out[:n], s, i)
		out, n = dst[:cap(dst)], len(dst)
	}
	for dst = out[:n]; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf && !mustEscape(c) {
			dst = append(dst, c)
			i++
			continue
		}
		dst, i = appendOdd(dst, s, i)
	}
	return dst
}

// appendOdd appends the character to be escaped at s[i], or all characters beyond ASCII from there on. It returns the
// place behind.
func appendOdd(dst []byte, s string, i int) ([]byte, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return appendEscape(dst, c), i + 1
	}
	end := i
	for end < len(s) && s[end] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s[end:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		end += size
	}
	if end == i {
		return append(dst, "\ufffd"...), i + 1
	}
	return append(dst, s[i:end]...), end
}

// mustEscape reports whether a character of ASCII must not stand in a JSON string.
func mustEscape(c byte) bool { return c < 0x20 || c == '"' || c == '\\' }

// shortEscapes has the second byte of each escape of two bytes that appendEscape writes.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't'}

// appendEscape appends the escape of a character.
func appendEscape(dst []byte, c byte) []byte {
	if e := shortEscapes[c]; e != 0 {
		return append(dst, '\\', e)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// escapeLen returns the length of the escape at the beginning of b, if appendEscape has written it, and 0 otherwise.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && string(b[2:4]) == "00" && (b[4] == '0' || b[4] == '1') && bytes.IndexByte(hexDigits, b[5]) >= 0 {
			return 6
		}
	}
	return 0
}

var hexDigits = []byte("0123456789abcdef")

// appendCanonical appends the text of a valid JSON string as appendEscaped writes it. raw is the string without its
// quotes. It returns the size of the text in bytes, and whether it is escaped.
func appendCanonical(dst, raw []byte) (_ []byte, size int64, escaped bool) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), size + int64(len(raw)), escaped
		}
		dst = append(dst, raw[:i]...)
		r, n := unescape(raw[i:])
		raw = raw[i+n:]
		size += int64(i + utf8.RuneLen(r))
		if r < utf8.RuneSelf && mustEscape(byte(r)) {
			dst, escaped = appendEscape(dst, byte(r)), true
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
}

// appendUnescaped appends the text of a valid JSON string. raw is the string without its quotes.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		r, n := unescape(raw[i:])
		dst = utf8.AppendRune(append(dst, raw[:i]...), r)
		raw = raw[i+n:]
	}
}

// unescape returns the character of the escape at the beginning of raw, and the length of the escape.
func unescape(raw []byte) (r rune, n int) {
	switch c := raw[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		if r = hex4(raw[2:]); utf16.IsSurrogate(r) {
			return utf16.DecodeRune(r, hex4(raw[8:])), 12
		}
		return r, 6
	default: // a quote, a slash or a backslash
		return rune(c), 2
	}
}

// hex4 returns the value of four hexadecimal digits.
func hex4(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
