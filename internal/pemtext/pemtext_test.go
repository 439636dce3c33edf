// SPDX-License-Identifier: Apache-2.0

package pemtext

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func block(label, content string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: []byte(content)}))
}

// TestBlocks reads texts as people put them together.
func TestBlocks(t *testing.T) {
	one, two, key := block("A", "one"), block("A", "two"), block("KEY", "key")
	for _, test := range []struct {
		name, text, err string
		want            []string
	}{
		{"nothing", "", "", nil},
		{"one", one, "", []string{"one"}},
		{"two", one + two, "", []string{"one", "two"}},
		{"a second label", one + block("B", "two"), "", []string{"one", "two"}},
		{"another label between", one + key + two, "", []string{"one", "two"}},
		{"text around", "Issuer: CN=x\n" + one + "# next\n\n" + two + "end\n", "", []string{"one", "two"}},
		{"no line end between", strings.TrimSpace(one) + two, "", []string{"one", "two"}},
		{"lines of Windows", strings.ReplaceAll(one+two, "\n", "\r\n"), "", []string{"one", "two"}},
		{"byte order marks", mark + one + mark + two, "", []string{"one", "two"}},
		{"commented out", one + "# " + strings.ReplaceAll(strings.TrimSpace(two), "\n", "\n# ") + "\n", "",
			[]string{"one"}},
		{"damaged", one + strings.Replace(two, "dHdv", "d!dv", 1) + two, `PEM block 2, "A", is damaged`, []string{"one"}},
		{"cut", one + two[:len(two)-8], `PEM block 2, "A", is damaged`, []string{"one"}},
		{"no end before the next one", one[:18] + two, `PEM block 1, "A", is damaged`, nil},
		{"another label damaged", one + key[:20] + "\n" + two, "", []string{"one", "two"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for block, err := range Blocks([]byte(test.text), "A", "B") {
				if err != nil {
					if err.Error() != test.err {
						t.Errorf("%v, want %q", err, test.err)
					}
					test.err = ""
					continue
				}
				got = append(got, string(block.Bytes))
			}
			if test.err != "" {
				t.Errorf("there is no error, want %q", test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzBlocks: a read block stands in the text.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte(block("A", "one") + "text" + block("A", "two")))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		for block, err := range Blocks(text, "A") {
			if err == nil && block.Type != "A" {
				t.Errorf("a block %q", block.Type)
			}
			n++
		}
		if n > strings.Count(string(text), begin) {
			t.Errorf("%d blocks", n)
		}
	})
}
