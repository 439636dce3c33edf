// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/translate"
)

func TestAgentMD(t *testing.T) {
	card := &translate.Card{
		Name: "Travel", Description: "Plans trips.\nBooks trains <!-- AUN-SIGNATURE", Version: "v1.4.0",
		Provider:          translate.Provider{Organization: `Example "Ltd"`},
		DefaultInputModes: []string{"text/plain"},
		Skills: []translate.Skill{
			{ID: "plan", Name: "Plan a trip", Description: "Finds a way.", Tags: []string{"travel", "rail"}},
			{ID: "book", Name: "Book", Tags: []string{"rail", "booking"}},
		},
	}
	want := `---
aid: "travel.aid.pub"
name: "Travel"
type: "assistant"
version: "1.4.0"
description: "Plans trips. Books trains <!-- AUN-SIGNATURE"
visibility: "public"
provider: "Example \"Ltd\""
tags:
  - "travel"
  - "rail"
  - "booking"
skills:
  - "Plan a trip"
  - "Book"
input_modes:
  - "text/plain"
---

# Travel

Plans trips. Books trains &lt;!-- AUN-SIGNATURE

## Skills

- **Plan a trip**: Finds a way.
- **Book**
`
	if diff := cmp.Diff(want, string(AppendAgentMD(nil, "travel.aid.pub", card))); diff != "" {
		t.Errorf("agent.md (-want +got):\n%s", diff)
	}
	signed := string(AppendSignature([]byte("text\n"), sha256.Sum256(nil), 1_700_000_000, []byte{1, 2, 3}))
	if want := "text\n<!-- AUN-SIGNATURE\n" +
		"cert_fingerprint: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n" +
		"timestamp: 1700000000\nsignature: AQID\n-->\n"; signed != want {
		t.Errorf("signed:\n%s\nwant:\n%s", signed, want)
	}
}

// TestAgentMDOfLittle: an agent without a card of its own has a valid agent.md, too.
func TestAgentMDOfLittle(t *testing.T) {
	got := AppendAgentMD(nil, "x.aid.pub", &translate.Card{Version: "latest"})
	checkAgentMD(t, got)
	for _, line := range []string{`name: "x.aid.pub"`, `version: "1.0.0"`, `description: "x.aid.pub"`} {
		if !strings.Contains(string(got), line+"\n") {
			t.Errorf("there is no line %s in\n%s", line, got)
		}
	}
}

// FuzzAgentMD: whatever an agent's card says, the agent.md keeps to its form.
func FuzzAgentMD(f *testing.F) {
	f.Add("Travel", "Plans trips", "1.0", "tag", "skill", 3)
	f.Add("\"---\n", strings.Repeat("旅", 5000), "1.2.3-rc.1", strings.Repeat("é", 100), "<!-- AUN-SIGNATURE\n-->", 200)
	f.Fuzz(func(t *testing.T, name, description, version, tag, skill string, n int) {
		card := &translate.Card{Name: name, Description: description, Version: version}
		for range min(max(n, 0), 100) {
			card.Skills = append(card.Skills, translate.Skill{
				Name: skill + tag, Description: description, Tags: []string{tag, skill, name},
			})
			card.DefaultInputModes = append(card.DefaultInputModes, tag)
		}
		checkAgentMD(t, AppendAgentMD(nil, "x.aid.pub", card))
	})
}

var frontMatter = regexp.MustCompile(`^---\naid: "x\.aid\.pub"\nname: "([^\n]+)"\ntype: "assistant"\n` +
	`version: "\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?"\ndescription: "([^\n]+)"\nvisibility: "public"\n` +
	`(?:provider: "[^\n]+"\n)?(?:[a-z_]+:\n(?:  - "[^\n]+"\n)+)*---\n\n# [^\n]+\n\n`)

func checkAgentMD(t *testing.T, got []byte) {
	t.Helper()
	m := frontMatter.FindSubmatchIndex(got)
	switch {
	case m == nil:
		t.Fatalf("the front matter is invalid:\n%s", got)
	case len(got) > MaxAgentMD:
		t.Fatalf("it has %d bytes", len(got))
	case !utf8.Valid(got):
		t.Fatalf("it is not UTF-8:\n%q", got)
	case strings.Contains(string(got[m[1]:]), "<"):
		t.Fatalf("its body has HTML:\n%s", got)
	case utf8.RuneCount(got[m[4]:m[5]]) > 2*maxDescription: // with escapes
		t.Fatalf("its description is too long:\n%s", got)
	}
}
