// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// scanner checks in one pass everything taken on trust by gjson about a body: the grammar, the encoding of strings, the
// depth, and the absence of a name twice in one object.
type scanner struct {
	body  []byte
	depth int // the limit

	kind  byte    // first byte of the outermost value
	top   members // of the outermost object
	keys  []key   // of the open objects, outermost first
	twice int     // offset of the second of two equal keys of an object; -1 for none
	spans spans   // of the large values

	// The reason for stopping the scan.
	offset int
	why    string
	deep   bool
}

// key is one key of an open object.
type key struct {
	hash  uint64 // of the unescaped name
	start int    // offset of its opening quote
}

// seed makes the hashes of keys unpredictable, so that a caller cannot choose colliding keys.
var seed = maphash.MakeSeed()

// stop ends the scan. Every method for reading a value returns the offset behind it, or the result of stop.
func (s *scanner) stop(offset int, why string) int {
	s.offset, s.why = offset, why
	return -1
}

const byteOrderMark = "\xef\xbb\xbf"

func (s *scanner) document() bool {
	if len(s.body) >= 3 && string(s.body[:3]) == byteOrderMark {
		s.stop(0, "the body begins with a byte order mark; send plain UTF-8")
		return false
	}
	i := s.space(0)
	if i == len(s.body) {
		s.stop(i, "the body is empty")
		return false
	}
	s.kind = s.body[i]
	if i = s.value(i, 1); i < 0 {
		return false
	}
	if i = s.space(i); i < len(s.body) {
		s.stop(i, "something follows after the end of the JSON value")
		return false
	}
	return true
}

func (s *scanner) space(i int) int {
	for i < len(s.body) {
		switch s.body[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// value reads the value at i. depth is its depth if it is an object or an array.
func (s *scanner) value(i, depth int) int {
	if i >= len(s.body) {
		return s.stop(i, "the JSON value is cut off")
	}
	switch c := s.body[i]; c {
	case '"':
		end, has := s.str(i)
		s.spans.add(len(s.spans), i, end, has)
		return end
	case '{', '[':
		if depth > s.depth {
			s.deep = true
			return s.stop(i, "")
		}
		read, before := s.array, len(s.spans)
		if c == '{' {
			read = s.object
		}
		end := read(i, depth)
		s.spans.add(before, i, end, 0)
		return end
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	}
	return s.number(i)
}

func (s *scanner) object(i, depth int) int {
	first := len(s.keys)
	if i = s.space(i + 1); i < len(s.body) && s.body[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(s.body) || s.body[i] != '"' {
			return s.stop(i, "a key in double quotes is expected")
		}
		start := i
		end, has := s.str(start)
		if end < 0 {
			return end
		}
		name := view(s.body[start+1 : end-1])
		if has != 0 {
			name = s.name(start)
		}
		s.keys = append(s.keys, key{maphash.String(seed, name), start})
		if i = s.space(end); i >= len(s.body) || s.body[i] != ':' {
			return s.stop(i, "a colon is expected after a key")
		}
		from := s.space(i + 1)
		if i = s.value(from, depth+1); i < 0 {
			return i
		}
		if depth == 1 {
			s.top.set(name, view(s.body[from:i]), from)
		}
		i = s.space(i)
		switch {
		case i < len(s.body) && s.body[i] == ',':
			i = s.space(i + 1)
		case i < len(s.body) && s.body[i] == '}':
			s.unique(s.keys[first:])
			s.keys = s.keys[:first]
			return i + 1
		default:
			return s.stop(i, "a comma or the end of the object is expected")
		}
	}
}

func (s *scanner) array(i, depth int) int {
	if i = s.space(i + 1); i < len(s.body) && s.body[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth+1); i < 0 {
			return i
		}
		i = s.space(i)
		switch {
		case i < len(s.body) && s.body[i] == ',':
			i = s.space(i + 1)
		case i < len(s.body) && s.body[i] == ']':
			return i + 1
		default:
			return s.stop(i, "a comma or the end of the array is expected")
		}
	}
}

// unique records the second of two equal keys of one object.
func (s *scanner) unique(keys []key) {
	if s.twice >= 0 {
		return
	}
	const few = 16
	many := len(keys) > few
	if many { // every pair would be too much work: equal hashes shall stand together
		slices.SortFunc(keys, func(a, b key) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.start, b.start))
		})
	}
	for i := range keys {
		for j := i + 1; j < len(keys); j++ {
			if keys[i].hash == keys[j].hash {
				if s.name(keys[i].start) == s.name(keys[j].start) {
					s.twice = keys[j].start
					return
				}
			} else if many {
				break
			}
		}
	}
}

// name returns the unescaped string at start. The string was read before.
func (s *scanner) name(start int) string { return gjson.Parse(view(s.body[start:])).Str }

// str reads the string at i, and returns its end, and its escapes.
func (s *scanner) str(i int) (end int, has escapes) {
	start := i
	i++
	var high uint64 // has a top bit when the string is not ASCII
	for {
		for i+8 <= len(s.body) {
			word := binary.LittleEndian.Uint64(s.body[i:])
			marks := odd(word)
			if marks == 0 {
				high |= word
				i += 8
				continue
			}
			n := bits.TrailingZeros64(marks) / 8
			high |= word & (1<<(8*n) - 1)
			if i += n; s.body[i] != '\\' || i+1 == len(s.body) {
				break
			}
			kind := escapeKinds[s.body[i+1]]
			if kind == 0 {
				break
			}
			has |= kind
			i += 2
		}
		if i >= len(s.body) {
			return s.stop(i, "a string is not closed"), 0
		}
		c := s.body[i]
		switch {
		case c == '"':
			if high&tops != 0 && !utf8.Valid(s.body[start:i]) {
				return s.stop(start, "a string is not valid UTF-8"), 0
			}
			return i + 1, has
		case c == '\\':
			at := i
			if i = s.escape(i); i < 0 {
				return i, 0
			}
			if has |= escapeKinds[s.body[at+1]]; s.body[at+1] == 'u' {
				has |= anyEscape | unusualEscape
			}
		case c < 0x20:
			return s.stop(i, "a control character in a string must be escaped"), 0
		default:
			high |= uint64(c)
			i++
		}
	}
}

// escape reads the escape at i, or both of a pair of surrogates.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.body) {
		return s.stop(i, "a string is not closed")
	}
	switch c := s.body[i+1]; {
	case shortEscapes[c] != 0:
		return i + 2
	case c != 'u':
		return s.stop(i, "a string has an unknown escape")
	}
	switch r := s.hex(i + 2); {
	case r < 0:
		return s.stop(i, `\u needs four hexadecimal digits`)
	case r < 0xd800 || r > 0xdfff:
		return i + 6
	case r < 0xdc00 && i+7 < len(s.body) && s.body[i+6] == '\\' && s.body[i+7] == 'u':
		if low := s.hex(i + 8); low >= 0xdc00 && low <= 0xdfff {
			return i + 12
		}
	}
	return s.stop(i, `a \u escape is one half of a surrogate pair`)
}

// hex returns the value of the four hexadecimal digits at i, and -1 if they are none.
func (s *scanner) hex(i int) rune {
	if i+4 > len(s.body) {
		return -1
	}
	var r rune
	for _, c := range s.body[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

func (s *scanner) literal(i int, want string) int {
	if len(s.body)-i < len(want) || string(s.body[i:i+len(want)]) != want {
		return s.stop(i, "a JSON value is expected")
	}
	return i + len(want)
}

func (s *scanner) number(i int) int {
	start := i
	if s.body[i] == '-' {
		i++
	}
	digits := i
	switch i = s.digits(i); {
	case i == start:
		return s.stop(start, "a JSON value is expected")
	case i == digits:
		return s.stop(start, "a number needs a digit")
	case s.body[digits] == '0' && i-digits > 1:
		return s.stop(start, "a number must not begin with a zero")
	}
	if i < len(s.body) && s.body[i] == '.' {
		from := i + 1
		if i = s.digits(from); i == from {
			return s.stop(start, "a number needs a digit after its point")
		}
	}
	if i < len(s.body) && (s.body[i] == 'e' || s.body[i] == 'E') {
		i++
		if i < len(s.body) && (s.body[i] == '+' || s.body[i] == '-') {
			i++
		}
		from := i
		if i = s.digits(from); i == from {
			return s.stop(start, "a number needs a digit in its exponent")
		}
	}
	return i
}

func (s *scanner) digits(i int) int {
	for i < len(s.body) && s.body[i] >= '0' && s.body[i] <= '9' {
		i++
	}
	return i
}

// maxPath is the greatest length of a path in an error, in bytes: keys are the sender's, and may be long.
const maxPath = 256

// path returns the path of the key with its quote at offset at of body. body is valid JSON.
func path(body []byte, at int) string {
	type frame struct {
		key   string // of an object; empty for an array
		index int
		array bool
	}
	var open []frame
	for i := 0; i <= at; i++ {
		switch body[i] {
		case '{', '[':
			open = append(open, frame{array: body[i] == '['})
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			open[len(open)-1].index++
		case '"':
			str := gjson.Parse(view(body[i:]))
			i += len(str.Raw) - 1
			// A value in an object overwrites its own key, as the key is not needed any more.
			open[len(open)-1].key = str.Str
		}
	}
	var b strings.Builder
	for i, f := range open {
		switch {
		case f.array:
			b.WriteString("[" + strconv.Itoa(f.index) + "]")
		case i > 0:
			b.WriteString("." + f.key)
		default:
			b.WriteString(f.key)
		}
	}
	p := b.String()
	if len(p) > maxPath {
		n := maxPath
		for !utf8.RuneStart(p[n]) {
			n--
		}
		p = p[:n] + "…"
	}
	return p
}
