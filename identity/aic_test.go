// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var specSalt = []byte{0x12, 0x34}

// AICs of published certificates and specifications, each with right check digits.
var (
	validV1 = []string{
		"10001000011K912345E789ABCDEF2353",
		"10001000011K94ZH3VDXLP4S5EB63614",
		"10001000011K96TFZ2B9H9I1J85AUF77",
		"10001000011K9DX1GW14X1VSP2QQNG44",
		"10001000011K9DYON6XJTBBVHRZQGK28",
		"10001000011K9FS3CPI1Y3U0IP5M6L41",
		"10001000011K9TG3R62N7L14TSRCD015",
		"10001000011K920251018D8888JQKA91",
	}
	validV2 = []string{
		"1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4",
		"1.2.156.3088.1.1.34C2.478BDF.3GF547.0GGS",
		"1.2.156.3088.1.1.34C2.478BDF.3GF548.0P65",
		"1.2.156.3088.1.34C2.478BDF.3GF546.1.0SEN",
		// ACPs v02.00: registrar, vendor, ontology, instance and version
		"1.2.156.3088.0001.00001.YWG8FE.BBCJDC.1.0STI",
		"1.2.156.3088.34C2.478BDF.123456789.3GF546.1.0MKE",
	}
)

func TestParseAIC(t *testing.T) {
	salted := Checker{Salt: specSalt}
	for _, s := range append(validV1, validV2...) {
		for _, in := range []string{s, strings.ToLower(s), " \t" + s + "\r\n"} {
			for name, c := range map[string]Checker{"no salt": {}, "salt": salted} {
				got, err := c.Parse(in)
				if err != nil {
					t.Errorf("%s: Parse(%q): %v", name, in, err)
				}
				if diff := cmp.Diff(AIC(s), got); diff != "" {
					t.Errorf("%s: Parse(%q) (-want +got):\n%s", name, in, diff)
				}
			}
		}
	}
}

func TestParseAICRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "the AIC is empty"},
		{"agent-leader-aic", "the AIC has 16 characters, neither the 32 of an AIC of v01.00 nor the dots of a later one"},
		{"10001000011K912345E789ABCDEF235",
			"the AIC has 31 characters, neither the 32 of an AIC of v01.00 nor the dots of a later one"},
		{"10001000011K912345E789ABCDEF2354", "the check digits of the AIC are 54, and 53 would be right"},
		{"10001000011K912345E789ABCDEF235A", "character 32 of the AIC is 'A', and a check digit may only be 0-9"},
		{"1000-000011K912345E789ABCDEF2353", "character 5 of the AIC is '-', and may only be 0-9 or A-Z"},
		// The dotless i is two bytes and upper-cases to I by Unicode's rules.
		{"10001000011K96TFZ2B9H9ı1J85AU77", "character 23 of the AIC is 'Ä', and may only be 0-9 or A-Z"},
		{"1.2.156.3089.1.1.34C2.478BDF.3GF546.0JU4", "levels 1 to 4 of the AIC are not 1.2.156.3088"},
		{"1.2.156.3088.1.34C2.478BDF.3GF546.0JU4", "the AIC has 9 levels, and must have 10"},
		{"1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4.", "the AIC has 11 levels, and must have 10"},
		{"1.2.156.3088.12.1.34C2.478BDF.3GF546.0JU4", "level 5 of the AIC (version) has 2 characters, and must have 1"},
		{"1.2.156.3088.1..34C2.478BDF.3GF546.0JU4",
			"level 6 of the AIC (registrar) has 0 characters, and must have 1 to 6"},
		{"1.2.156.3088.1.1.34C2345.478BDF.3GF546.0JU4",
			"level 7 of the AIC (vendor) has 7 characters, and must have 1 to 6"},
		{"1.2.156.3088.1.1.34C2.478BDF4567.3GF546.0JU4",
			"level 8 of the AIC (ontology serial) has 10 characters, and must have 1 to 9"},
		{"1.2.156.3088.1.1.34C2.478BDF.3GF-46.0JU4",
			"level 9 of the AIC (instance serial) has a character other than 0-9 and A-Z"},
		{"1.2.156.3088.1.1.34C2.478BDF.3GF546.JU4", "level 10 of the AIC (check) has 3 characters, and must have 4"},
		{"1.2.156.3088.1.1.34C2.478BDF.3GF546.1EKG", "the check digits of the AIC are 1EKG, and cannot be above 1EKF"},
		{"1." + strings.Repeat("2", 60), "the AIC has 62 characters, and at most 53 are allowed"},
	} {
		_, err := ParseAIC(tt.in)
		if err == nil {
			t.Errorf("ParseAIC(%q) took it", tt.in)
			continue
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("ParseAIC(%q) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestCheckerWithSalt(t *testing.T) {
	wrong := "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU1"
	if _, err := ParseAIC(wrong); err != nil {
		t.Errorf("without a salt only the format counts: %v", err)
	}
	_, err := Checker{Salt: specSalt}.Parse(wrong)
	if diff := cmp.Diff("the check digits of the AIC are 0JU1, and 0JU4 would be right with this salt",
		errText(err)); diff != "" {
		t.Errorf("with a salt (-want +got):\n%s", diff)
	}
	_, err = Checker{Salt: []byte{1}}.Parse(validV2[0])
	if diff := cmp.Diff("the salt has 1 bytes, and must have at least 2", errText(err)); diff != "" {
		t.Errorf("with a short salt (-want +got):\n%s", diff)
	}
}

// One body has one AIC: 99, 00 and 01 are the same as 02, 97 and 98 mod 97, and are refused.
func TestCheckDigitsAreCanonical(t *testing.T) {
	aliases := map[string]string{"02": "99", "97": "00", "98": "01"}
	for len(aliases) > 0 {
		aic, err := MakeV1(FieldsV1{})
		if err != nil {
			t.Fatal(err)
		}
		check := string(aic[bodyV1:])
		alias, ok := aliases[check]
		if !ok {
			continue
		}
		if _, err := ParseAIC(string(aic[:bodyV1]) + alias); err == nil {
			t.Errorf("%s with check digits %s for %s was taken", aic, alias, check)
		}
		delete(aliases, check)
	}
}

func TestForm(t *testing.T) {
	for _, s := range validV1 {
		if got := AIC(s).Form(); got != FormV1 {
			t.Errorf("%s: form %s", s, got)
		}
	}
	for _, s := range validV2 {
		if got := AIC(s).Form(); got != FormV2 {
			t.Errorf("%s: form %s", s, got)
		}
	}
}

func FuzzParseAIC(f *testing.F) {
	for _, s := range append(validV1, validV2...) {
		f.Add(s)
		f.Add(strings.ToLower(s))
	}
	f.Add("1.2.156.3088..........")
	f.Add("ıſ")
	f.Fuzz(func(t *testing.T, s string) {
		aic, err := ParseAIC(s)
		if err != nil {
			if aic != "" {
				t.Errorf("%q: an AIC beside the error %v", s, err)
			}
			return
		}
		if len(aic) > maxAIC {
			t.Errorf("%q: %d bytes", s, len(aic))
		}
		if strings.Trim(string(aic), digits36+".") != "" {
			t.Errorf("%q gives %q, which is not normalised", s, aic)
		}
		for _, again := range []string{string(aic), strings.ToLower(string(aic))} {
			got, err := ParseAIC(again)
			if err != nil || got != aic {
				t.Errorf("%q gives %q, which gives %q, %v", s, aic, got, err)
			}
		}
		if !sameAIC(s, aic) {
			t.Errorf("%q parses as %q but is not the same as it", s, aic)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
