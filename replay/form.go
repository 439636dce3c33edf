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
)

// formOf returns the shortest form of a text.
func formOf(text []byte) form {
	isHex, isUUID, isBase32 := true, len(text) == uuidLength, true
	for i, c := range text {
		digit := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		isHex = isHex && digit
		isBase32 = isBase32 && (c >= 'a' && c <= 'z' || c >= '2' && c <= '7')
		if hyphen(i) {
			digit = c == '-'
		}
		if isUUID = isUUID && digit; !isHex && !isUUID && !isBase32 {
			return asIs
		}
	}
	switch {
	case isUUID:
		return uuid
	case isHex:
		return hex
	}
	return base32
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
func (f form) read(b []byte, short string, n int) ([]byte, string) {
	if f == asIs {
		return append(b, short[:n]...), short[n:]
	}
	digits, bits := f.digits()
	rest, has, at := 0, 0, 0
	for i := range n {
		if f == uuid && hyphen(i) {
			b = append(b, '-')
			continue
		}
		if has < bits {
			rest, has, at = rest<<8|int(short[at]), has+8, at+1
		}
		has -= bits
		b = append(b, digits[rest>>has])
		rest &= 1<<has - 1
	}
	return b, short[at:]
}
