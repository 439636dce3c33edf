// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// TestSpelling has a spelling that no writer would make, so that it shows where it is used.
func TestSpelling(t *testing.T) {
	const text, odd, plain = "a\nb", `"a\u000ab"`, `"a\nb"`
	spelled := Text(text)
	spelled.Spell(odd)
	copied, set, longer, moved, owned := spelled, spelled, spelled, spelled, spelled
	set.Text = "c"
	longer.Text += "c"
	moved.Text = strings.Clone(text)
	owned.OwnText()
	for name, tt := range map[string]struct {
		it   DataItem
		want string
	}{
		"as it was read":       {spelled, odd},
		"a copy":               {copied, odd},
		"an owned one":         {owned, odd},
		"another text":         {set, `"c"`},
		"a longer one":         {longer, `"a\nbc"`},
		"a like one elsewhere": {moved, plain},
		"none":                 {Text(text), plain},
	} {
		if got := string(tt.it.AppendText(nil)); got != tt.want {
			t.Errorf("%s is written %s, want %s", name, got, tt.want)
		}
	}
	if !spelled.Equal(Text(text)) {
		t.Error("the same text in another spelling is another item")
	}
	m := Message{DataItems: []DataItem{spelled, Text(text)}}
	if got := m.SpellingSize(); got != int64(len(odd)) {
		t.Errorf("the spellings have %d bytes, want %d", got, len(odd))
	}
}

// TestOwnText overwrites the memory from which a text was read.
func TestOwnText(t *testing.T) {
	for _, raw := range []string{`"plain"`, `"a\nb"`, `""`} {
		b := []byte(raw)
		body := unsafe.String(&b[0], len(b))
		var it DataItem
		switch {
		case strings.Contains(raw, `\`):
			it = Text("a\nb")
		default:
			it = Text(body[1 : len(body)-1])
		}
		it.Spell(body)
		want, json := strings.Clone(it.Text), string(it.AppendText(nil))
		it.OwnText()
		clear(b)
		if it.Text != want || string(it.AppendText(nil)) != json {
			t.Errorf("%s is %q, and written %s", raw, it.Text, it.AppendText(nil))
		}
	}
	it := Text("view")
	it.OwnText()
	if got := string(it.AppendText(nil)); got != `"view"` {
		t.Errorf("a text without a spelling is written %s", got)
	}
}

// TestRest folds spelled texts of all kinds. At rest none has a spelling, and what readers hold stays as it is.
func TestRest(t *testing.T) {
	spelled := func() []DataItem {
		it := Text("a\nb")
		it.Spell(`"a\u000ab"`)
		return []DataItem{Text("first"), it}
	}
	f := NewFold(Task{
		Status: Status{DataItems: spelled()}, Products: []Product{{ID: "p", DataItems: spelled()}, {ID: "q"}},
		MessageHistory: []Message{{ID: "m"}, {ID: "n", DataItems: spelled()}},
		StatusHistory:  []Status{{DataItems: spelled()}},
	})
	f.Withdrawn = []Product{{ID: "w", DataItems: spelled()}}
	held := *f.Task()
	before := string(AppendTask(nil, &held))
	f.Rest()
	if diff := cmp.Diff(strings.ReplaceAll(before, `\u000a`, `\n`), string(AppendTask(nil, f.Task()))); diff != "" {
		t.Errorf("at rest (-want +got):\n%s", diff)
	}
	if got := string(Form(nil).AppendProducts(nil, f.Withdrawn)); strings.Contains(got, `\u`) {
		t.Errorf("the withdrawn products are %s", got)
	}
	if diff := cmp.Diff(before, string(AppendTask(nil, &held))); diff != "" {
		t.Errorf("what a reader holds (-want +got):\n%s", diff)
	}
}
