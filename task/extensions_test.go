// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFoldExtensions: a Task keeps the extensions of all of its states, and a product its last ones.
func TestFoldExtensions(t *testing.T) {
	var f Fold
	report := func(extra string) Event {
		return Event{Status: &Status{State: Working, TaskExtensions: json.RawMessage(extra),
			Extensions: json.RawMessage(`{"a2a":{"s":1}}`)}}
	}
	piece := func(extra string, add bool) Event {
		return Event{Chunk: &Chunk{Product: Product{ID: "p", Extensions: json.RawMessage(extra)}, Append: add,
			Extensions: json.RawMessage(`{"a2a":{"not":"kept"}}`)}}
	}
	first := json.RawMessage(`{"a2a":{"x":1,"metadata":{"a":{"deep":1}}}}`)
	for _, ev := range []Event{
		{Task: &Task{ID: "t", Extensions: first}}, report(`{"a2a":{"metadata":{"b":2,"\u0061":{"new":1}}},"aip":{}}`),
		report(``), report(`{"a2a":{"x":[3]}}`),
		piece(`{"a2a":{"v":1}}`, false), piece(``, true), piece(`{"a2a":{"v":2}}`, true), piece(``, true),
	} {
		f.Apply(ev)
	}
	want := Task{
		ID: "t", Extensions: json.RawMessage(`{"a2a":{"x":[3],"metadata":{"a":{"new":1},"b":2}},"aip":{}}`),
		Status:   Status{State: Working, Extensions: json.RawMessage(`{"a2a":{"s":1}}`)},
		Products: []Product{{ID: "p", Extensions: json.RawMessage(`{"a2a":{"v":2}}`)}},
	}
	want.StatusHistory = []Status{{}, {State: Working, Extensions: want.Status.Extensions}}
	if d := cmp.Diff(want, *f.Task()); d != "" {
		t.Error(d)
	}
	if string(first) != `{"a2a":{"x":1,"metadata":{"a":{"deep":1}}}}` {
		t.Errorf("an event has changed: %s", first)
	}
	large := `{"a2a":{"y":"` + strings.Repeat("y", MaxExtensions-100) + `"}}`
	f.Apply(report(large))
	f.Apply(report(`{"a2a":{"z":"` + strings.Repeat("z", 200) + `"}}`))
	if len(f.Task().Extensions) > MaxExtensions || !strings.HasPrefix(string(f.Task().Extensions), `{"a2a":{"z":`) {
		t.Errorf("the task's extensions have %d bytes", len(f.Task().Extensions))
	}
}

// TestDiffExtensions: other extensions are a piece without data items, and lost extensions are no piece.
func TestDiffExtensions(t *testing.T) {
	p := func(extra string, items ...DataItem) []Product {
		return []Product{{ID: "p", DataItems: items, Extensions: json.RawMessage(extra)}}
	}
	piece := p(`{"a2a":{"v":2}}`)[0]
	if d := cmp.Diff([]Chunk{{Product: piece, Append: true}}, Diff(p(``, Text("t")),
		p(`{"a2a":{"v":2}}`, Text("t")))); d != "" {
		t.Error(d)
	}
	if got := Diff(p(`{"a2a":{"v":2}}`, Text("t")), p(``, Text("t"))); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

// TestReplaceStrings: names and values are replaced in whatever way they are written, and the rest stays as it is.
func TestReplaceStrings(t *testing.T) {
	for value, want := range map[string]string{
		``: ``, `1`: `1`, ` { "b" : [ "\n" , "\u0062" ] } `: ` { "b" : [ "\n" , "\u0062" ] } `,
		`{"a":["\u0061","b\n",{"a":1}],"c":"a\\"}`: `{"\"":["\"","b\n",{"\"":1}],"c":"a\\"}`,
		`["a","a`: `["\"","a`,
	} {
		before := []byte(value)
		got := ReplaceStrings(before, func(text string) string {
			if text == "a" {
				return `"`
			}
			return text
		})
		if string(got) != want || string(before) != value {
			t.Errorf("%s is %s, want %s", value, got, want)
		}
	}
}

// FuzzMembers holds the reader of objects against encoding/json, and has it read anything.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[{"c":"}"}],"\u0063":"\\\""}`, ` { "a" : { } , "b" : null } `, `{}`, `[1]`,
		``, `{"a"`, `{"a":`, `{"a":1,`, `{,}`, `{"a":"`, `{"a":]}`, `{a:1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := make(map[string]string)
		eachMember(data, func(key, v []byte) bool {
			got[unquote(key)] = string(v)
			return true
		})
		var want map[string]json.RawMessage
		if !json.Valid(data) || json.Unmarshal(data, &want) != nil {
			return
		}
		for key, v := range want {
			if strings.ContainsRune(key, '\ufffd') {
				return // anything but UTF-8 is not read alike
			}
			if got[key] != strings.TrimSpace(string(v)) {
				t.Fatalf("the member %q is %q, want %q", key, got[key], v)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d members, want %d", len(got), len(want))
		}
	})
}
