// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMakeV1(t *testing.T) {
	got, err := MakeV1(FieldsV1{Manager: "0001", Registry: "1", Year: 2025, Ontology: "12345e789",
		Instance: "ABCDEF23"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(AIC("10001000011K912345E789ABCDEF2353"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for want, f := range map[string]FieldsV1{
		"the field manager must have 1 to 4 characters of 0-9 and A-Z":  {Manager: "00001"},
		"the field instance must have 1 to 8 characters of 0-9 and A-Z": {Instance: "a.b"},
		"the year is 46656, and must be between 0 and 46655":            {Year: 46656},
		"the year is -1, and must be between 0 and 46655":               {Year: -1},
	} {
		_, err := MakeV1(f)
		if diff := cmp.Diff(want, errText(err)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", f, diff)
		}
	}
}

func TestMakeV2(t *testing.T) {
	got, err := MakeV2(FieldsV2{Vendor: "34c2", Ontology: "478BDF", Instance: "3GF546"}, specSalt)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(AIC("1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = MakeV2(FieldsV2{}, nil)
	if diff := cmp.Diff("the salt has 0 bytes, and must have at least 2", errText(err)); diff != "" {
		t.Errorf("without a salt (-want +got):\n%s", diff)
	}
	_, err = MakeV2(FieldsV2{Vendor: "1234567"}, specSalt)
	if diff := cmp.Diff("level 7 (vendor) must have 1 to 6 characters of 0-9 and A-Z", errText(err)); diff != "" {
		t.Errorf("a long vendor (-want +got):\n%s", diff)
	}
}

// TestOneWrongCharacterIsNoticed: a made AIC can be read, and one wrong character at any place is noticed.
func TestOneWrongCharacterIsNoticed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := make(map[AIC]bool)
	for range 25 {
		salt := []byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())}[:2+r.IntN(2)]
		v1, err := MakeV1(FieldsV1{Year: 2000 + r.IntN(100)})
		if err != nil {
			t.Fatal(err)
		}
		v2, err := MakeV2(FieldsV2{Ontology: padded36(r.Int(), 1+r.IntN(9))}, salt)
		if err != nil {
			t.Fatal(err)
		}
		c := Checker{Salt: salt}
		for _, aic := range []AIC{v1, v2} {
			if seen[aic] {
				t.Errorf("%s was made twice", aic)
			}
			seen[aic] = true
			if got, err := c.Parse(string(aic)); err != nil || got != aic {
				t.Fatalf("Parse(%s) = %s, %v", aic, got, err)
			}
			for i := range len(aic) {
				for _, wrong := range digits36 + ".-" {
					if byte(wrong) == aic[i] {
						continue
					}
					s := string(aic[:i]) + string(wrong) + string(aic[i+1:])
					if _, err := c.Parse(s); err == nil {
						t.Fatalf("%s was taken, which is %s with character %d wrong (salt %x)", s, aic, i+1, salt)
					}
				}
			}
		}
	}
}
