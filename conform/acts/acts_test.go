// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMatch(t *testing.T) {
	for name, c := range map[string]struct {
		assertion, value string
		want             []Mismatch
	}{
		"a scalar":            {`"a"`, `"a"`, nil},
		"another scalar":      {`"a"`, `"b"`, []Mismatch{{"", `"a"`, `"b"`}}},
		"numbers by worth":    {`{"n": 1}`, `{"n": 1.0}`, nil},
		"members":             {`{"a": {"b": 1}}`, `{"a": {"b": 2, "c": 3}}`, []Mismatch{{"a.b", "1", "2"}}},
		"no member":           {`{"a": 1}`, `{}`, []Mismatch{{"a", "1", "no such member"}}},
		"a member named type": {`{"type": "task"}`, `{"type": "task"}`, nil},
		"an operator named type": {`{"id": {"type": "string"}}`, `{"id": 1}`,
			[]Mismatch{{"id", `a value of type "string"`, "1"}}},
		"first elements":   {`[1]`, `[1, 2]`, nil},
		"too few elements": {`[1, 2]`, `[1]`, []Mismatch{{"", "at least 2 elements", "[1]"}}},
		"no elements":      {`[]`, `[1]`, []Mismatch{{"", "an empty array", "[1]"}}},
		"absent": {`{"a": {"absent": true}}`, `{"a": null}`,
			[]Mismatch{{"a", "no such member", "null"}}},
		"exists": {`{"a": {"exists": true}}`, `{"a": null}`, nil},
		"exists not": {`{"a": {"exists": true}}`, `{}`,
			[]Mismatch{{"a", `{"exists":true}`, "no such member"}}},
		"text":                    {`{"matches": "^a.c$", "contains": "b"}`, `"abc"`, nil},
		"range":                   {`{"gte": 1, "lt": 2}`, `2`, []Mismatch{{"", "a number that is lt 2", "2"}}},
		"count":                   {`{"count": 2, "type": "array"}`, `[1, 2]`, nil},
		"one of, with assertions": {`{"one_of": [1, {"type": "string"}]}`, `"x"`, nil},
		"not": {`{"not": {"one_of": ["a"]}}`, `"a"`,
			[]Mismatch{{"", `not {"one_of":["a"]}`, `"a"`}}},
		"each": {`{"each": {"type": "string"}}`, `["a", 1]`,
			[]Mismatch{{"[1]", `a value of type "string"`, "1"}}},
		"only":   {`{"only": ["a"]}`, `{"a": 1, "b": 2}`, []Mismatch{{"b", "no such member", "2"}}},
		"a time": {`{"format": "date-time"}`, `"2026-01-02T03:04:05.5+08:00"`, nil},
		"no time": {`{"format": "date-time"}`, `"yesterday"`,
			[]Mismatch{{"", `a text in the format "date-time"`, `"yesterday"`}}},
		"equals, where members": {`{"equals": {"type": "string"}}`, `{"type": "string"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Match(decode(t, c.assertion), decode(t, c.value))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPath(t *testing.T) {
	value := decode(t, `{"a": {"b": [{"c": 1}, {"c": 2}]}}`)
	for text, want := range map[string]string{
		"": `[{"a": {"b": [{"c": 1}, {"c": 2}]}}]`, "a.b[1].c": `[2]`, "a.b[*].c": `[1, 2]`, "a.x": `null`,
		"a.b[2]": `null`,
	} {
		path, err := ParsePath(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var wanted []any
		if w, ok := decode(t, want).([]any); ok {
			wanted = w
		}
		if diff := cmp.Diff(wanted, path.Of(value)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", text, diff)
		}
	}
	for _, text := range []string{"a..b", "a[", "a[x]", "a[1]b"} {
		if _, err := ParsePath(text); err == nil {
			t.Errorf("%s: want an error", text)
		}
	}
}

func TestResolve(t *testing.T) {
	vars := Vars(func(e string) (any, bool) {
		v, ok := map[string]any{"n": json.Number("5"), "send.id": "t1"}[e]
		return v, ok
	})
	got, err := vars.Resolve(map[string]any{"whole": "{{n}}", "part": "id {{send.id}}/{{ n }}", "gone": Absent,
		"list": []any{Absent, "x"}})
	want := map[string]any{"whole": json.Number("5"), "part": "id t1/5", "list": []any{"x"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	var unknown *UnknownError
	if _, err := vars.Resolve("{{other}}"); !errors.As(err, &unknown) || unknown.Expression != "other" {
		t.Errorf("got %v, want the expression that has no value", err)
	}
}

func TestMerge(t *testing.T) {
	got := Merge(map[string]any{"a": map[string]any{"b": 1, "c": 2}, "d": 3},
		map[string]any{"a": map[string]any{"b": Absent, "e": 4}})
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"c": 2, "e": 4}, "d": 3}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoad(t *testing.T) {
	const head = "acts_version: \"1.0\"\nspec_version: \"01.00\"\n"
	const test = `suites:
  - id: s
    name: S
    tests:
      - id: A-1
        name: one
        level: must
        steps: [{id: x, operation: get}]
`
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"a document": {map[string]string{"a.yaml": head + test}, ""},
		"an unknown key": {map[string]string{"a.yaml": head + "odd: 1\n" + test},
			"a.yaml: yaml: unmarshal errors:\n  line 3: field odd"},
		"nothing in it":  {map[string]string{"a.yaml": head}, "a.yaml has neither suites nor include"},
		"a missing file": {map[string]string{"a.yaml": head + "include: [b.yaml]\n"}, "open b.yaml"},
		"an id twice": {map[string]string{"a.yaml": head + "include: [b.yaml]\n" + test, "b.yaml": head + test},
			"b.yaml: test A-1: the id is that of a test in a.yaml"},
		"itself": {map[string]string{"a.yaml": head + "include: [a.yaml]\n" + test}, ""},
		"a step without any": {map[string]string{"a.yaml": head + strings.Replace(test, "operation: get", "as: other", 1)},
			"step x has 0 actions"},
		"a level": {map[string]string{"a.yaml": head + strings.Replace(test, "must",
			"shall", 1)}, `the level is "shall"`},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for name, content := range c.files {
				files[name] = &fstest.MapFile{Data: []byte(content)}
			}
			documents, err := Load(files, "a.yaml")
			if c.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := documents[0].Suites[0].Tests[0].Line; got != 7 && got != 8 {
					t.Errorf("the test begins on line %d", got)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
}
