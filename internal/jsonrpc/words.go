// SPDX-License-Identifier: Apache-2.0

package jsonrpc

// Strings are looked at by words of 8 bytes, the first of them the lowest.
const (
	ones = 0x0101010101010101 // 1 in each byte of a word
	tops = 0x8080808080808080 // the top bit of each
)

// odd marks by its top bit the first byte of a word that is a quote, a backslash or a control character, and perhaps
// others behind it. It is 0 if there is none.
func odd(word uint64) uint64 {
	// A byte below k sets its top bit in word - k*ones, and takes from the next one. None before the first does.
	return ((word - 0x20*ones) | ((word ^ '"'*ones) - ones) | ((word ^ '\\'*ones) - ones)) &^ word & tops
}

// escapes says which escapes a string has.
type escapes uint8

const (
	anyEscape     escapes = 1 << iota
	unusualEscape         // any but \", \\, \n, \r and \t
)

// escapeKinds has the kind of each escape of two bytes, by the second of them.
var escapeKinds = [256]escapes{
	'"': anyEscape, '\\': anyEscape, 'n': anyEscape, 'r': anyEscape, 't': anyEscape,
	'/': anyEscape | unusualEscape, 'b': anyEscape | unusualEscape, 'f': anyEscape | unusualEscape,
}

// shortEscapes has the character of each escape of two bytes, by the second of them.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
