// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import "bytes"

// Repaired returns a copy of a body without the known deviations of programs from the letter of JSON. It leaves out a
// byte order mark, or the separator of JSON text sequences (RFC 7464), at its beginning. Half of a surrogate pair, from
// a text cut in the middle of a character, is U+FFFD; and NaN, Infinity and -Infinity are null. With nothing to repair,
// it returns nil. It is for a refused answer of an agent only: the sender of a request must send JSON. It does not
// check the rest.
func Repaired(body []byte) []byte {
	var out []byte
	from := 0 // begin of the part of body not in out yet
	replace := func(at, n int, by string) {
		out = append(append(out, body[from:at]...), by...)
		from = at + n
	}
	for {
		mark := len(byteOrderMark)
		if from < len(body) && body[from] == recordSeparator {
			mark = 1
		} else if !bytes.HasPrefix(body[from:], []byte(byteOrderMark)) {
			break
		}
		replace(from, mark, "")
	}
	s := scanner{body: body}
	inString := false
	for i := from; i < len(body); {
		switch c := body[i]; {
		case c == '"':
			inString = !inString
			i++
		case c == '\\' && inString:
			if end := s.escape(i); end >= 0 {
				i = end
				continue
			}
			r := rune(-1)
			if i+1 < len(body) && body[i+1] == 'u' {
				r = s.hex(i + 2)
			}
			if r < 0 { // no escape at all
				i += 2
				continue
			}
			replace(i, 6, `\ufffd`)
			i += 6
		case inString:
			i++
		default:
			n := len(notNumber(body[i:]))
			if n > 0 {
				replace(i, n, "null")
			}
			i += max(n, 1)
		}
	}
	if from == 0 {
		return nil
	}
	return append(out, body[from:]...)
}

// recordSeparator stands before each JSON text of a sequence (RFC 7464).
const recordSeparator = 0x1E

// notNumber returns the word at the beginning of b if programs write a number with it that JSON does not have.
func notNumber(b []byte) string {
	for _, word := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return word
		}
	}
	return ""
}
