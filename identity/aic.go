// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"strings"
)

// AIC is an Agent Identity Code, normalised to upper case, so two of them compare with ==. There are two forms: 32
// characters (ACPs v01.00) and ten levels with dots between them (ACPs v02.00 and later).
type AIC string

// Form is one of the two forms of an AIC.
type Form string

// The two forms of an AIC.
const (
	FormV1 Form = "v1" // 32 characters
	FormV2 Form = "v2" // ten levels
)

// Form returns the form of a.
func (a AIC) Form() Form {
	if strings.Contains(string(a), ".") {
		return FormV2
	}
	return FormV1
}

const (
	lengthV1  = 32
	bodyV1    = 30 // without the check digits
	prefixV2  = "1.2.156.3088"
	maxAIC    = 53     // the longest of either form, in bytes
	maxCRC    = "1EKF" // 0xFFFF in base 36
	maxSender = 256    // the longest senderId, in bytes
)

// level is a level of the v2 form after the prefix, after levels 1 to 4.
type level struct {
	name     string
	min, max int // characters
}

// The levels of the v2 form, in ACPs v02.01 and later, and in v02.00, with the version last before the check.
var (
	levelsV2 = [...]level{
		{"version", 1, 1},
		{"registrar", 1, 6},
		{"vendor", 1, 6},
		{"ontology serial", 1, 9},
		{"instance serial", 1, 9},
		{"check", 4, 4},
	}
	levelsV200 = [...]level{levelsV2[1], levelsV2[2], levelsV2[3], levelsV2[4], levelsV2[0], levelsV2[5]}
)

// ParseAIC reads an AIC of either form, in either case, with or without white space around it. The check digits of a v1
// AIC are verified. Those of a v2 AIC depend on a salt known only to its registrar, so only their format is: a Checker
// with the salt verifies them.
func ParseAIC(s string) (AIC, error) { return Checker{}.Parse(s) }

// Checker reads AICs as ParseAIC does, and verifies the check digits of v2 AICs if it has a salt.
type Checker struct {
	Salt []byte // the registrar's; at least 2 bytes, or none
}

// Parse reads an AIC. Its errors name the wrong character or level.
func (c Checker) Parse(s string) (AIC, error) {
	s = normalise(s)
	switch {
	case s == "":
		return "", errors.New("the AIC is empty")
	case strings.Contains(s, "."):
		return c.parseV2(s)
	default:
		return parseV1(s)
	}
}

func parseV1(s string) (AIC, error) {
	if len(s) != lengthV1 {
		return "", fmt.Errorf(
			"the AIC has %d characters, neither the 32 of an AIC of v01.00 nor the dots of a later one", len(s))
	}
	for i := range lengthV1 {
		if !base36(s[i]) {
			return "", fmt.Errorf("character %d of the AIC is %q, and may only be 0-9 or A-Z", i+1, s[i])
		}
		if i >= bodyV1 && s[i] > '9' {
			return "", fmt.Errorf("character %d of the AIC is %q, and a check digit may only be 0-9", i+1, s[i])
		}
	}
	// Checking mod 97 alone would take 00, 01 and 99 for 97, 98 and 02: one body has one AIC.
	if want := checkV1(s[:bodyV1]); s[bodyV1:] != want {
		return "", fmt.Errorf("the check digits of the AIC are %s, and %s would be right", s[bodyV1:], want)
	}
	return AIC(s), nil
}

func (c Checker) parseV2(s string) (AIC, error) {
	if len(s) > maxAIC {
		return "", fmt.Errorf("the AIC has %d characters, and at most %d are allowed", len(s), maxAIC)
	}
	rest, ok := strings.CutPrefix(s, prefixV2+".")
	if !ok {
		return "", errors.New("levels 1 to 4 of the AIC are not " + prefixV2)
	}
	levels := strings.Split(rest, ".")
	if len(levels) != len(levelsV2) {
		return "", fmt.Errorf("the AIC has %d levels, and must have 10", 4+len(levels))
	}
	if err := checkLevels(levels, levelsV2[:]); err != nil && checkLevels(levels, levelsV200[:]) != nil {
		return "", err
	}
	check := levels[len(levels)-1]
	if check > maxCRC {
		return "", fmt.Errorf("the check digits of the AIC are %s, and cannot be above %s", check, maxCRC)
	}
	if c.Salt != nil {
		if err := checkSalt(c.Salt); err != nil {
			return "", err
		}
		if want := checkV2(s[:len(s)-len(check)-1], c.Salt); check != want {
			return "", fmt.Errorf("the check digits of the AIC are %s, and %s would be right with this salt", check, want)
		}
	}
	return AIC(s), nil
}

// checkLevels returns the fault in the form of an AIC's levels after the prefix.
func checkLevels(levels []string, want []level) error {
	for i, level := range levels {
		switch l := want[i]; {
		case len(level) < l.min || len(level) > l.max:
			return fmt.Errorf("level %d of the AIC (%s) has %d characters, and must have %s",
				5+i, l.name, len(level), span(l.min, l.max))
		case !allBase36(level):
			return fmt.Errorf("level %d of the AIC (%s) has a character other than 0-9 and A-Z", 5+i, l.name)
		}
	}
	return nil
}

func checkSalt(salt []byte) error {
	if len(salt) < 2 {
		return fmt.Errorf("the salt has %d bytes, and must have at least 2", len(salt))
	}
	return nil
}

func span(lo, hi int) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// checkV1 returns the check digits of a v1 body: ISO 7064 MOD 97-10 over the body read as a number in base 36.
func checkV1(body string) string {
	r := 0
	for i := range len(body) {
		r = (r*36 + digit(body[i])) % 97
	}
	check := 98 - r*100%97
	return string([]byte{byte('0' + check/10), byte('0' + check%10)})
}

// checkV2 returns the check level of levels 1 to 9: CRC-16/CCITT-FALSE over their text and the salt, in base 36.
func checkV2(levels string, salt []byte) string {
	crc := uint16(0xffff)
	add := func(b byte) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	for i := range len(levels) {
		add(levels[i])
	}
	for _, b := range salt {
		add(b)
	}
	return padded36(int(crc), 4)
}

const digits36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// padded36 returns the last width digits of n in base 36.
func padded36(n, width int) string {
	out := make([]byte, width)
	for i := width - 1; i >= 0; i-- {
		out[i] = digits36[n%36]
		n /= 36
	}
	return string(out)
}

func base36(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' }

func allBase36(s string) bool {
	for i := range len(s) {
		if !base36(s[i]) {
			return false
		}
	}
	return true
}

func digit(c byte) int {
	if c <= '9' {
		return int(c - '0')
	}
	return int(c-'A') + 10
}

// normalise trims s and turns its ASCII letters to upper case. Only ASCII: Unicode's rules would turn mere lookalikes,
// such as the dotless i, into letters of an AIC.
func normalise(s string) string {
	s = trimmed(s)
	for i := range len(s) {
		if s[i] >= 'a' && s[i] <= 'z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = upper(b[i])
			}
			return string(b)
		}
	}
	return s
}

// trimmed returns s without white space at its ends. Mostly there is none.
func trimmed(s string) string {
	if n := len(s); n == 0 || s[0] > ' ' && s[n-1] > ' ' {
		return s
	}
	return strings.Trim(s, " \t\r\n")
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}

// Is reports whether a text is the AIC, in either case. It allocates nothing.
func (a AIC) Is(s string) bool { return sameAIC(s, a) }

// AICPrefix is the beginning of AICs, with the whole of the field at its end.
type AICPrefix string

// fieldsV1 are the ends of fields in the v1 form, and levelsOf the numbers of levels up to a field in v02.01 and later.
var (
	fieldsV1 = map[string]int{"registrar": 5, "vendor": 10, "ontology": 22}
	levelsOf = map[string]int{"registrar": 6, "vendor": 7, "ontology": 8}
)

// ParseAICPrefix reads the beginning of an AIC up to a field (registrar, vendor or ontology), as an AIC of its
// generation has it. In the v1 form the registrar is the provider of identity management, and the vendor the
// registering entity. In the v2 form the first four levels are those of every AIC.
func ParseAICPrefix(field, s string) (AICPrefix, error) {
	s = normalise(s)
	if !strings.Contains(s, ".") {
		if want := fieldsV1[field]; len(s) != want || !allBase36(s) {
			return "", fmt.Errorf("%q is neither the first %d characters of an AIC of v01.00, nor levels of a later one",
				s, want)
		}
		return AICPrefix(s), nil
	}
	rest, ok := strings.CutPrefix(s, prefixV2+".")
	levels := strings.Split(rest, ".")
	wanted := func(forms []level) bool { return ok && checkLevels(levels, forms[:len(levels)]) == nil }
	n := levelsOf[field] - 4
	// In v02.00 the registrar comes first. One of a single character is taken for the version.
	if !(len(levels) == n && wanted(levelsV2[:])) &&
		!(len(levels) == n-1 && len(levels[0]) > 1 && wanted(levelsV200[:])) {
		return "", fmt.Errorf("%q is not the first %d levels of an AIC, such as %s.1.1", s, n+4, prefixV2)
	}
	return AICPrefix(s), nil
}

// Begins reports whether an AIC, in either case, begins so. It allocates nothing.
func (p AICPrefix) Begins(aic string) bool {
	if len(aic) <= len(p) {
		return false
	}
	aic = trimmed(aic)
	if len(aic) <= len(p) || !sameAIC(aic[:len(p)], AIC(p)) {
		return false
	}
	if strings.Contains(string(p), ".") {
		return aic[len(p)] == '.'
	}
	return len(aic) == lengthV1 && !strings.Contains(aic, ".")
}
