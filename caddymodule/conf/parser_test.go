// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
)

// settings are those of a directive that has an option of each kind.
type settings struct {
	Word   string
	Words  []string
	Joined string
	Of     map[string][]string
	Pair   [2]string
	Flag   bool
	Wait   caddy.Duration
	Number int
	Zero   *int
	Size   int64
	Inner  struct{ Word string }
}

func init() { Register(Grammar{Repeatable: []string{"directive of"}}) }

func known(p *Parser, s *settings) Options {
	return Options{
		"word":   p.Word(&s.Word),
		"words":  p.Words(&s.Words),
		"joined": p.Joined(&s.Joined),
		"of":     p.WordsOf(&s.Of, "a name and its words"),
		"pair":   p.Pair("two values", func(first, second string) { s.Pair = [2]string{first, second} }),
		"flag":   p.Flag(&s.Flag),
		"wait":   p.Duration(&s.Wait),
		"number": p.Number(&s.Number),
		"zero":   Optional(p, &s.Zero, p.Number),
		"size":   Size(p, &s.Size),
		"inner":  p.Section(Options{"word": p.Word(&s.Inner.Word)}),
	}
}

// read reads a directive with a block, whose number must not be negative.
func read(block string) (s settings, err error) {
	d := caddyfile.NewTestDispenser("directive {\n" + block + "\n}")
	return s, ReadOptions(d, &s, known, func(s *settings) error {
		return errors.Join(NotNegativeNumber("number", s.Number), NotNegative("wait", s.Wait))
	})
}

// TestOptions: what each kind of option sets.
func TestOptions(t *testing.T) {
	got, err := read(`word a
		words a b
		joined 50/s burst 100
		of x a b
		of x c
		pair a b
		flag
		wait 2d
		number 3
		zero 0
		size 64KiB
		inner {
			word b
		}`)
	if err != nil {
		t.Fatal(err)
	}
	want := settings{Word: "a", Words: []string{"a", "b"}, Joined: "50/s burst 100",
		Of: map[string][]string{"x": {"a", "b", "c"}}, Pair: [2]string{"a", "b"}, Flag: true,
		Wait: caddy.Duration(48 * time.Hour), Number: 3, Zero: new(int), Size: 64 << 10,
		Inner: struct{ Word string }{"b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// An environment variable that is not set leaves the default.
	if got, err = read("wait \"\"\nnumber \"\"\nzero \"\"\nsize \"\""); err != nil || !cmp.Equal(got, settings{}) {
		t.Errorf("of empty values: %+v, %v", got, err)
	}
}

// TestOptionMistakes: the error about an option names it, and its line.
func TestOptionMistakes(t *testing.T) {
	for block, want := range map[string]string{
		"word":                    "word needs exactly one value, at Testfile:2",
		"word a\nword b":          "word is given twice in directive, at Testfile:3",
		"words":                   "words needs at least one value, at Testfile:2",
		"of x":                    "of needs a name and its words, at Testfile:2",
		"pair a":                  "pair needs two values, at Testfile:2",
		"flag yes":                "flag takes no value, at Testfile:2",
		"wait soon":               `wait is "soon", but must be a duration, such as 30s or 24h, at Testfile:2`,
		"number {env.N}":          "number cannot have the placeholder {env.N}; in a Caddyfile, write {$N}, which is",
		"size 2PiB":               `size is "2PiB", but must be a size, such as 64MiB, at Testfile:2`,
		"flag\nnumber -1":         "number is -1, but must not be negative, at Testfile:3",
		"wait -1s\nnumber 1":      "wait is -1s, but must not be negative, at Testfile:2",
		"inner {\nword\n}":        "word needs exactly one value, at Testfile:3",
		"inner {\nwrd a\n}":       `there is no "wrd" in inner; did you mean "word"?, at Testfile:3`,
		"inner {\nword a\nnone\n": `there is no "none" in inner, at Testfile:4`,
	} {
		if _, err := read(block); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of\n%s\nis said %v, want %s", block, err, want)
		}
	}
	if err := ReadDirective(caddyfile.NewTestDispenser("directive x")); err == nil {
		t.Error("a directive that takes no arguments has one")
	}
}

// TestMisplaced: an option in the wrong block is told apart from one that there is not.
func TestMisplaced(t *testing.T) {
	g := Grammar{Text: "site {\n\tfront <url> {\n\t}\n}\naip {\n\tback {\n\t}\n}\n", Read: func(p *Parser) {
		var s string
		p.Next()
		p.Block("site", Options{"front": func() {
			p.Word(&s)()
			p.Block("front", Options{"timeout": p.Word(&s)})
		}})
		p.Next()
		p.Block("aip", Options{"back": p.Section(Options{"timeout": p.Word(&s), "keep": p.Word(&s)})})
	}}
	if err := g.Each(func(Block) {}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, option, want string }{
		{"site", "timeout", `"timeout" belongs into front: write front <url> { timeout ... }`},
		{"aip", "timeout", `"timeout" belongs into back: write back { timeout ... }`},
		{"other", "timeout", `"timeout" belongs into front or the global option aip: write site { front <url> { ` +
			`timeout ... } }`},
		{"site", "keep", `"keep" belongs into the global option aip: write aip { back { keep ... } }`},
		{"site", "aip_console", `"aip_console" belongs into the site, beside site: write aip_console`},
		{"site", "bind", `"bind" belongs into the site, beside site: write bind <address>`},
		{"site", "frnt", `there is no "frnt" in site; did you mean "front"?`},
	} {
		got := g.misplaced([]string{tt.path}, tt.option, Options{"front": nil})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s in %s (-want +got):\n%s", tt.option, tt.path, diff)
		}
	}
}
