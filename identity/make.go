// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
)

// FieldsV1 are the fields of an AIC of v01.00. Letters may be of either case; a short field is filled with zeros on its
// left. An empty field takes the default beside it.
type FieldsV1 struct {
	Version  string // 1 character. 1
	Manager  string // the provider of identity management, 4 characters. 0001
	Registry string // the registering entity, 5 characters. 00001
	Year     int    // the year of registration, up to 46655. The present year
	Ontology string // the ontology's serial, 9 characters. All zeros
	Instance string // the instance's serial, 8 characters. Random
}

// MakeV1 makes an AIC of v01.00, with its check digits.
func MakeV1(f FieldsV1) (AIC, error) {
	if f.Year == 0 {
		f.Year = time.Now().Year()
	}
	if f.Year < 0 || f.Year >= 36*36*36 {
		return "", fmt.Errorf("the year is %d, and must be between 0 and 46655", f.Year)
	}
	var b strings.Builder
	for _, p := range []struct {
		name, value, unset string
		width              int
	}{
		{"version", f.Version, "1", 1},
		{"manager", f.Manager, "1", 4},
		{"registry", f.Registry, "1", 5},
		{"year", padded36(f.Year, 3), "", 3},
		{"ontology", f.Ontology, "0", 9},
		{"instance", f.Instance, randomSerial(8), 8},
	} {
		value := normalise(p.value)
		if value == "" {
			value = p.unset
		}
		if len(value) > p.width || !allBase36(value) {
			return "", fmt.Errorf("the field %s must have 1 to %d characters of 0-9 and A-Z", p.name, p.width)
		}
		b.WriteString(strings.Repeat("0", p.width-len(value)))
		b.WriteString(value)
	}
	body := b.String()
	return AIC(body + checkV1(body)), nil
}

// FieldsV2 are the levels of an AIC of v02.00 and later, after its fixed prefix. Letters may be of either case. An
// empty level takes the default beside it.
type FieldsV2 struct {
	Version   string // level 5, 1 character. 1
	Registrar string // level 6, up to 6 characters. 1
	Vendor    string // level 7, up to 6 characters. 1
	Ontology  string // level 8, up to 9 characters. 1
	Instance  string // level 9, up to 9 characters; all zeros means the ontology itself. Random
}

// MakeV2 makes an AIC of v02.00, with check digits for a salt of at least 2 bytes.
func MakeV2(f FieldsV2, salt []byte) (AIC, error) {
	if err := checkSalt(salt); err != nil {
		return "", err
	}
	s := prefixV2
	for i, value := range []string{f.Version, f.Registrar, f.Vendor, f.Ontology, f.Instance} {
		l := &levelsV2[i]
		value = normalise(value)
		switch {
		case value == "" && l.name == "instance serial":
			value = randomSerial(8)
		case value == "":
			value = "1"
		}
		if len(value) > l.max || !allBase36(value) {
			return "", fmt.Errorf("level %d (%s) must have %s characters of 0-9 and A-Z", 5+i, l.name, span(l.min, l.max))
		}
		s += "." + value
	}
	return AIC(s + "." + checkV2(s, salt)), nil
}

// randomSerial returns n random digits of base 36. The first one is not zero.
func randomSerial(n int) string {
	out := make([]byte, 0, n)
	var pool [64]byte
	for {
		rand.Read(pool[:]) // never fails
		for _, b := range pool {
			if b >= 252 || len(out) == 0 && b%36 == 0 { // 252 = 7×36: an even spread
				continue
			}
			if out = append(out, digits36[b%36]); len(out) == n {
				return string(out)
			}
		}
	}
}
