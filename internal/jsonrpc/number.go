// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"math"

	"github.com/tidwall/gjson"
)

// Int returns the value of a JSON number if it is an integer, in any spelling: 1, 1.0 and 10e-1 are the same one. ok is
// false for any other value. A number beyond an int64 is capped to the nearest one.
func Int(v gjson.Result) (n int64, ok bool) {
	if v.Type != gjson.Number {
		return 0, false
	}
	raw := v.Raw
	negative := raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	// The number is its digits without the point, times ten to the power of shift.
	digits, shift := raw, int64(0)
	for i := 0; i < len(raw); i++ {
		if raw[i] == 'e' || raw[i] == 'E' {
			digits, shift = raw[:i], exponent(raw[i+1:])
			break
		}
	}
	point := len(digits)
	for i := 0; i < len(digits); i++ {
		if digits[i] == '.' {
			point = i
			shift -= int64(len(digits) - i - 1)
			break
		}
	}
	// Zeros at the end belong to the power of ten.
	for len(digits) > 0 && (digits[len(digits)-1] == '0' || digits[len(digits)-1] == '.') {
		if digits[len(digits)-1] == '0' {
			shift++
		}
		digits = digits[:len(digits)-1]
	}
	for i := 0; i < len(digits); i++ {
		if i != point {
			n = tenfold(n, int64(digits[i]-'0'))
		}
	}
	switch {
	case n == 0:
		return 0, true
	case shift < 0:
		return 0, false
	}
	for ; shift > 0 && n < math.MaxInt64; shift-- {
		n = tenfold(n, 0)
	}
	if negative {
		n = -n
	}
	return n, true
}

// tenfold returns n*10+digit, or the greatest int64.
func tenfold(n, digit int64) int64 {
	if n > (math.MaxInt64-digit)/10 {
		return math.MaxInt64
	}
	return n*10 + digit
}

// exponent reads the exponent of a number. An exponent too large to matter is cut: no body has as many digits.
func exponent(s string) int64 {
	negative := s[0] == '-'
	if negative || s[0] == '+' {
		s = s[1:]
	}
	var n int64
	for i := 0; i < len(s) && n < 1<<48; i++ {
		n = n*10 + int64(s[i]-'0')
	}
	if negative {
		n = -n
	}
	return n
}
