// SPDX-License-Identifier: Apache-2.0

package replay

import "strings"

// form is how some bytes of a shortened text are written. Ids are long, and no two of them are alike, but they have few
// different characters.
type form uint8

const (
	asIs   form = iota
	hex         // 4 bits for each digit
	uuid        // hex, of a text in the form of a UUID
	base32      // 5 bits for each digit

	formBits = 2
)

const (
	hexDigits    = "0123456789abcdef"
	base32Digits = "abcdefghijklmnopqrstuvwxyz234567"

	uuidLength = 36
	hyphens    = 8 // the digits of a UUID before its first hyphen
)

// isDigit has a bit for each form with a character as a digit.
var isDigit = func() (all [256]uint8) {
	for _, f := range []form{hex, base32} {
		digits, _ := f.digits()
		for _, c := range []byte(digits) {
			all[c] |= 1 << f
		}
	}
	return all
}()

// formOf returns the shortest form of a text.
func formOf(text []byte) form {
	if isUUID(text) {
		return uuid
	}
	forms := uint8(1<<hex | 1<<base32)
	for _, c := range text {
		if forms &= isDigit[c]; forms == 0 {
			return asIs
		}
	}
	if forms&(1<<hex) != 0 {
		return hex
	}
	return base32
}

// isUUID reports whether a text has the form of a UUID.
func isUUID(text []byte) bool {
	if len(text) != uuidLength || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return false
	}
	for i, c := range text {
		if isDigit[c]&(1<<hex) == 0 && !hyphen(i) {
			return false
		}
	}
	return true
}

// hyphen reports whether a UUID has a hyphen at a place.
func hyphen(i int) bool { return i == 8 || i == 13 || i == 18 || i == 23 }

// digits returns the digits of a form, and the bits of each.
func (f form) digits() (string, int) {
	if f == base32 {
		return base32Digits, 5
	}
	return hexDigits, 4
}

// append appends a text in its form to b.
func (f form) append(b, text []byte) []byte {
	if f == asIs {
		return append(b, text...)
	}
	digits, bits := f.digits()
	rest, n := 0, 0
	for i, c := range text {
		if f == uuid && hyphen(i) {
			continue
		}
		rest, n = rest<<bits|strings.IndexByte(digits, c), n+bits
		if n >= 8 {
			n -= 8
			b = append(b, byte(rest>>n))
			rest &= 1<<n - 1
		}
	}
	if n > 0 {
		b = append(b, byte(rest<<(8-n)))
	}
	return b
}

// read appends a text of n bytes to b, in its form at the beginning of short. It returns the rest of short.
func (f form) read(b, short []byte, n int) (_, left []byte) {
	if f == asIs {
		return append(b, short[:n]...), short[n:]
	}
	if f != base32 {
		return readHex(b, short, n, f == uuid)
	}
	rest, has, at := 0, 0, 0
	for range n {
		if has < 5 {
			rest, has, at = rest<<8|int(short[at]), has+8, at+1
		}
		has -= 5
		b = append(b, base32Digits[rest>>has])
		rest &= 1<<has - 1
	}
	return b, short[at:]
}

// readHex is read for digits of 4 bits.
func readHex(b, short []byte, n int, hyphens bool) (_, left []byte) {
	at := 0
	for i := range n {
		if hyphens && hyphen(i) {
			b = append(b, '-')
			continue
		}
		digit := short[at/2] >> 4
		if at%2 != 0 {
			digit = short[at/2] & 15
		}
		b = append(b, hexDigits[digit])
		at++
	}
	return b, short[(at+1)/2:]
}
