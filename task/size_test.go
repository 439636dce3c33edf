// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestSizeCountsEverything makes each text of a task long in turn, and finds its size larger by as much: an uncounted
// text is not bounded.
func TestSizeCountsEverything(t *testing.T) {
	item := func() DataItem {
		return DataItem{Data: json.RawMessage("{}"), Metadata: json.RawMessage("{}")}
	}
	status := func() Status {
		return Status{DataItems: []DataItem{item()}, Extensions: json.RawMessage("{}"), TaskExtensions: json.RawMessage("{}")}
	}
	whole := Task{
		Status: status(), StatusHistory: []Status{status()}, Extensions: json.RawMessage("{}"),
		Products: []Product{{DataItems: []DataItem{item()}, Extensions: json.RawMessage("{}")}},
		MessageHistory: []Message{{Mentions: []string{""}, Params: json.RawMessage("{}"), DataItems: []DataItem{item()},
			Extensions: json.RawMessage("{}")}},
	}
	const long = 1000
	before, texts := whole.Size(), 0
	var visit func(v reflect.Value, path string)
	visit = func(v reflect.Value, path string) {
		grown := func() {
			t.Helper()
			texts++
			if more := whole.Size() - before; more < long-2 {
				t.Errorf("%s: the size is larger by %d for %d bytes more", path, more, long)
			}
		}
		switch {
		case v.Type() == reflect.TypeFor[json.RawMessage]():
			old := v.Bytes()
			v.SetBytes(make([]byte, long))
			grown()
			v.SetBytes(old)
		case v.Type() == reflect.TypeFor[State](), v.Type() == reflect.TypeFor[Role](),
			v.Type() == reflect.TypeFor[Command](),
			v.Type() == reflect.TypeFor[ItemKind]():
		case v.Kind() == reflect.String:
			v.SetString(strings.Repeat("x", long))
			grown()
			v.SetString("")
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i), path+"[]")
			}
		case v.Kind() == reflect.Struct && v.Type().PkgPath() == reflect.TypeFor[Task]().PkgPath():
			for i := range v.NumField() {
				visit(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	}
	visit(reflect.ValueOf(&whole).Elem(), "Task")
	if texts < 40 {
		t.Errorf("only %d texts were found", texts)
	}
}
