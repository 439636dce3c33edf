// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRest(t *testing.T) {
	for name, tt := range map[string]struct {
		add      [][2]string
		metadata string
		want     string
	}{
		"nothing":             {nil, ``, ``},
		"metadata alone":      {nil, `{"a":1}`, `{"a":1}`},
		"members alone":       {[][2]string{{"a\n", "[1.0,\r\n2]"}, {"b", `null`}}, ``, `{"f":{"a\n":[1.0,2],"b":null}}`},
		"both":                {[][2]string{{"b", `2`}}, `{ "a" : 1 }`, `{"a":1,"f":{"b":2}}`},
		"empty metadata":      {[][2]string{{"b", `2`}}, `{}`, `{"f":{"b":2}}`},
		"the name is taken":   {[][2]string{{"b", `2`}}, `{"f":5}`, `{"f":{"metadata":{"f":5},"b":2}}`},
		"known names":         {[][2]string{{"b", `2`}, {"Known", `1`}, {"kn_own", `1`}, {"Metadata", `1`}}, ``, `{"f":{"b":2}}`},
		"known names alone":   {[][2]string{{"KNOWN", `1`}}, `{"a":1}`, `{"a":1}`},
		"it is, with escapes": {nil, `{"\u0066":{}}`, `{"f":{"metadata":{"\u0066":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var r Rest
			for _, m := range tt.add {
				r.Add(m[0], m[1])
			}
			if d := cmp.Diff(tt.want, string(r.Join(json.RawMessage(tt.metadata), "f", "one known"))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRestIsBounded(t *testing.T) {
	half := `"` + strings.Repeat("x", MaxExtensions/2-100) + `"`
	var fits, large, inner, outer Rest
	fits.Add("a", half)
	fits.Add("b", half)
	if n := len(fits.Extra("f", "known")); n < MaxExtensions-200 || n > MaxExtensions {
		t.Errorf("what fits has %d bytes", n)
	}
	for range 3 {
		large.Add("a", half)
	}
	large.Add("small", "1")
	if got := large.Extra("f", "known"); got != nil {
		t.Errorf("what is too large has %d bytes", len(got))
	}
	inner.Add("a", half)
	outer.Add("b", half)
	outer.AddObject("c", &inner, "known")
	outer.AddObject("d", &inner, "known")
	if got := outer.Extra("f", "known"); got != nil {
		t.Errorf("what is too large together has %d bytes", len(got))
	}
	if got := fits.Join(json.RawMessage(`{"m":`+half+`}`), "f", "known"); Bounded(got) != nil {
		t.Errorf("with the metadata it has %d bytes", len(got))
	}
}

// TestObjectsOfRest: what is in a member that is an object is judged by its own names, and the member stays.
func TestObjectsOfRest(t *testing.T) {
	var inner, lookalikes, outer Rest
	inner.Add("inner", "1")
	inner.Add("Inner2", "2")
	lookalikes.Add("INNER2", "3")
	outer.Add("a", "1")
	outer.Add("B", "2")
	outer.AddObject("b", &inner, "inner2")
	outer.AddObject("c", &lookalikes, "inner2")
	if d := cmp.Diff(`{"f":{"a":1,"b":{"inner":1}}}`, string(outer.Extra("f", "b c"))); d != "" {
		t.Error(d)
	}
}

func TestAppendExtra(t *testing.T) {
	for name, tt := range map[string]struct {
		own, extra, key, want string
	}{
		"nothing":            {``, ``, ``, ``},
		"own":                {`{"x":1,"known":2,"kn\u006fwn":3,"KNOWN":4,"_kno_wn":5}`, `{"f":{"x":1}}`, ``, `,"x":1`},
		"own metadata":       {`{"metadata":{"a":1},"x":1}`, ``, ``, `,"x":1,"metadata":{"a":1}`},
		"empty metadata":     {`{"metadata":{}}`, ``, ``, `,"metadata":{}`},
		"no object":          {`{"metadata":"m"}`, `{"g":1}`, `k`, `,"metadata":"m"`},
		"of others":          {``, `{"g":{"y":1},"f":{}}`, ``, `,"metadata":{"g":{"y":1}}`},
		"no family":          {``, `{"f":5}`, ``, `,"metadata":{"f":5}`},
		"both":               {`{"metadata":{"a":1,"g":2}}`, `{"f":{},"g":{"y":1},"h":3}`, ``, `,"metadata":{"a":1,"g":2,"h":3}`},
		"one more":           {`{"metadata":{"a":1}}`, `{"h":3}`, `k`, `,"metadata":{"a":1,"h":3,"k":"v"}`},
		"one more alone":     {``, ``, `k`, `,"metadata":{"k":"v"}`},
		"one more, there":    {`{"metadata":{"\u006b":1}}`, ``, `k`, `,"metadata":{"\u006b":1}`},
		"one more, of other": {``, `{"k":1}`, `k`, `,"metadata":{"k":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := AppendExtensions([]byte("{"), json.RawMessage(tt.own), json.RawMessage(tt.extra), "f", "b known a", tt.key, "v")
			if d := cmp.Diff("{"+tt.want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestForm: what a family wrote stands where it wrote it, and never in the place of something else.
func TestForm(t *testing.T) {
	extra := json.RawMessage(`{"aip":{"x":1,"id":"no","state":2},"a2a":{"y":2}}`)
	s := Status{State: Working, DataItems: []DataItem{{Kind: TextItem, Text: "t", Metadata: json.RawMessage(`{"aip":{"text":"no","z":3}}`)}}, Extensions: extra, TaskExtensions: extra}
	want := `{"state":"working","stateChangedAt":"0001-01-01T00:00:00Z","dataItems":[{"type":"text","text":"t","z":3}],"x":1,"id":"no","metadata":{"a2a":{"y":2}}}`
	if d := cmp.Diff(want, string(Form("aip").AppendStatus(nil, &s))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(`,"x":1,"state":2,"metadata":{"a2a":{"y":2}}`, string(Form("aip").AppendEventExtensions(nil, &s))); d != "" {
		t.Error(d)
	}
	p := Product{ID: "p", Extensions: extra}
	if d := cmp.Diff(`{"id":"p","dataItems":[],"x":1,"state":2,"metadata":{"a2a":{"y":2}}}`, string(Form("aip").AppendProduct(nil, &p))); d != "" {
		t.Error(d)
	}
}

// TestFoldExtra: a Task keeps what was said of it along with its states, and a product what was said last.
func TestFoldExtra(t *testing.T) {
	var f Fold
	said := func(extra string) Event {
		return Event{Status: &Status{State: Working, TaskExtensions: json.RawMessage(extra), Extensions: json.RawMessage(`{"a2a":{"s":1}}`)}}
	}
	piece := func(extra string, add bool) Event {
		return Event{Chunk: &Chunk{Product: Product{ID: "p", Extensions: json.RawMessage(extra)}, Append: add, Extensions: json.RawMessage(`{"a2a":{"not":"kept"}}`)}}
	}
	first := json.RawMessage(`{"a2a":{"x":1,"metadata":{"a":{"deep":1}}}}`)
	for _, ev := range []Event{
		{Task: &Task{ID: "t", Extensions: first}}, said(`{"a2a":{"metadata":{"b":2,"\u0061":{"new":1}}},"aip":{}}`), said(``), said(`{"a2a":{"x":[3]}}`),
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
	if d := cmp.Diff(want, f.Task); d != "" {
		t.Error(d)
	}
	if string(first) != `{"a2a":{"x":1,"metadata":{"a":{"deep":1}}}}` {
		t.Errorf("an event has changed: %s", first)
	}
	large := `{"a2a":{"y":"` + strings.Repeat("y", MaxExtensions-100) + `"}}`
	f.Apply(said(large))
	f.Apply(said(`{"a2a":{"z":"` + strings.Repeat("z", 200) + `"}}`))
	if len(f.Task.Extensions) > MaxExtensions || Member(Member(f.Task.Extensions, "a2a"), "z") == nil {
		t.Errorf("the task's Extra has %d bytes", len(f.Task.Extensions))
	}
}

// TestDiffExtra: another Extra is told without the data items, and one that is gone is not told.
func TestDiffExtra(t *testing.T) {
	p := func(extra string, items ...DataItem) []Product {
		return []Product{{ID: "p", DataItems: items, Extensions: json.RawMessage(extra)}}
	}
	told := p(`{"a2a":{"v":2}}`)[0]
	if d := cmp.Diff([]Chunk{{Product: told, Append: true, Last: true}}, Diff(p(``, Text("t")), p(`{"a2a":{"v":2}}`, Text("t")))); d != "" {
		t.Error(d)
	}
	if got := Diff(p(`{"a2a":{"v":2}}`, Text("t")), p(``, Text("t"))); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}

// FuzzMembers holds the reader of objects against encoding/json, and sees to it that it reads anything.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[{"c":"}"}],"\u0063":"\\\""}`, ` { "a" : { } , "b" : null } `, `{}`, `[1]`, ``, `{"a"`, `{"a":`, `{"a":1,`, `{,}`, `{"a":"`, `{"a":]}`, `{a:1}`} {
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
				return // what is no UTF-8 is not read alike
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

// TestNoExtraIsFree: an object without an Extra costs no memory.
func TestNoExtraIsFree(t *testing.T) {
	m, buf := Message{ID: "m", DataItems: []DataItem{Text("t")}}, make([]byte, 0, 1000)
	if n := testing.AllocsPerRun(100, func() {
		var r Rest
		m.Extensions = r.Extra("a2a", "known")
		buf = AppendExtensions(Form("aip").AppendMessage(buf[:0], &m), Member(m.Extensions, "a2a"), m.Extensions, "a2a", "", "", "")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
