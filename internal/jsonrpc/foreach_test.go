// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tidwall/gjson"
)

// member is what ForEach gives of a value, and of the values in it.
type member struct {
	Key, V gjson.Result
	In     []member
}

func membersBy(v gjson.Result, each func(gjson.Result, func(key, v gjson.Result) bool)) (list []member) {
	if !v.IsObject() && !v.IsArray() {
		return nil
	}
	each(v, func(key, v gjson.Result) bool {
		list = append(list, member{key, v, membersBy(v, each)})
		return true
	})
	return list
}

// places are what gjson says of some values only, and what ForEach takes the ends of values from.
var places = cmpopts.IgnoreFields(gjson.Result{}, "Index", "Indexes")

func gjsons(v gjson.Result, f func(key, v gjson.Result) bool) { v.ForEach(f) }

var walked = []string{
	`{}`, `[]`, `[[],{}]`, ` { "a" : 1 , "b" : [ true , false , null , -1.5e3 ] } `, `{"a":"b","c":{"d":["e",{"f":"g"}]}}`,
	`{"k\n\"":"\" \\ \/ \b \f \n \r \t \u00e9 \ud83d\ude00 é 😀"}`, `["` + strings.Repeat("x", 100) + `\\","]","}"]`,
	`{"":""}`, `["a\\","b"]`, `{"a":{"b":"}\"]"},"c":1}`, `[1,2.0,0,"\u0000"]`, `"text"`, `12`, `null`,
	`["12345678","1234567\"","123456\\\"8","é2345678é"]`,
	` { "a" : [ "` + strings.Repeat("x", large) + `" ,{ "b":"` + strings.Repeat(`\"]}`, large) + `" } ] , "c" : [] } `,
	`["` + strings.Repeat("x", large-3) + `","` + strings.Repeat("x", large-2) + `",1]`,
	`["` + strings.Repeat("x", large-1) + `","` + strings.Repeat("é", large/2) + `"]`,
	strings.Repeat("[", 9) + `"` + strings.Repeat("x", large) + `"` + strings.Repeat(",1]", 9),
	`[` + strings.Repeat(`["`+strings.Repeat("x", large)+`"],`, maxSpans) + `{"a":"b"}]`,
}

// TestForEach holds ForEach to gjson, on values that were checked.
func TestForEach(t *testing.T) {
	for _, body := range walked {
		v, bad := ParseValue([]byte(body), Limits{})
		if bad != nil {
			t.Fatal(body, bad)
		}
		if diff := cmp.Diff(membersBy(v, gjsons), membersBy(v, ForEach), places); diff != "" {
			t.Errorf("%s (-gjson +here):\n%s", body, diff)
		}
	}
}

// TestSpans: the values of a part of a body, whose large ones are known, are those of that part alone.
func TestSpans(t *testing.T) {
	text := strings.Repeat(`\"]}`, large)
	req, bad := Parse([]byte(` {"jsonrpc":"2.0","id":1,"method":"m","params":{"n":[{"t":"`+text+`"},2],"o":3}}`), Limits{})
	if bad != nil {
		t.Fatal(bad)
	}
	if req.Params.Indexes == nil {
		t.Error("the ends of large values are not known")
	}
	n := Member(req.Params, "n")
	alone, bad := ParseValue([]byte(n.Raw), Limits{})
	if bad != nil {
		t.Fatal(bad)
	}
	if diff := cmp.Diff(membersBy(alone, gjsons), membersBy(n, ForEach), places); diff != "" {
		t.Errorf("(-alone +in a body):\n%s", diff)
	}
	if v := gjson.Get(`{"a":[{"b":[1]},{"b":[2]}]}`, "a.#.b"); within(&v) != nil {
		t.Error("what gjson has found is taken for spans")
	}
}

// TestForEachEnds ends at the first value refused.
func TestForEachEnds(t *testing.T) {
	n := 0
	ForEach(gjson.Parse(`[1,2,3]`), func(_, v gjson.Result) bool { n++; return v.Num < 2 })
	if n != 2 {
		t.Errorf("%d values were given, want 2", n)
	}
}

// FuzzForEach holds ForEach to gjson on checked values, and has it end within any other.
func FuzzForEach(f *testing.F) {
	for _, body := range walked {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		v, bad := ParseValue([]byte(body), Limits{})
		if bad != nil {
			membersBy(gjson.Result{Type: gjson.JSON, Raw: body}, ForEach)
			return
		}
		if diff := cmp.Diff(membersBy(v, gjsons), membersBy(v, ForEach), places); diff != "" {
			t.Errorf("%s (-gjson +here):\n%s", body, diff)
		}
	})
}

// BenchmarkForEach reads all values of a short message, and of texts of 16 KiB without escapes and with many.
func BenchmarkForEach(b *testing.B) {
	for name, text := range map[string]string{
		"short":   "hello there",
		"plain":   strings.Repeat("0123456789abcdef", 1<<10),
		"escaped": strings.Repeat(`if a == \"b\" {\n\t\treturn`, 600),
	} {
		v, bad := ParseValue([]byte(`{"type":"message","id":"msg-1","senderRole":"leader","senderId":"leader",`+
			`"command":"start","dataItems":[{"type":"text","text":"`+text+`"}],"taskId":"task-1","n":12}`), Limits{})
		if bad != nil {
			b.Fatal(bad)
		}
		for how, each := range map[string]func(gjson.Result, func(key, v gjson.Result) bool){
			"gjson": gjsons, "here": ForEach,
		} {
			b.Run(name+"/"+how, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					visit(v, each)
				}
			})
		}
	}
}

func visit(v gjson.Result, each func(gjson.Result, func(key, v gjson.Result) bool)) {
	each(v, func(_, v gjson.Result) bool {
		if v.Type == gjson.JSON {
			visit(v, each)
		}
		return true
	})
}
