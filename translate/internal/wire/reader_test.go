// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestReader: a value of the right type is read, null and no value are the zero value, and anything else is an error
// with the name of its field.
func TestReader(t *testing.T) {
	long := `"` + strings.Repeat("x", MaxID+1) + `"`
	const control = `"a\u0000b"`
	for name, tt := range map[string]struct {
		read    func(r *Reader, v gjson.Result) any
		good    map[string]any // by their JSON
		bad     []string
		missing string // the error if there is no value; empty if this is allowed
	}{
		"Text": {
			read: func(r *Reader, v gjson.Result) any { return r.Text(v, "f") },
			good: map[string]any{`"é\n"`: "é\n", `null`: ""}, bad: []string{`1`, `{}`, `[]`, `true`},
		},
		"ID": {
			read: func(r *Reader, v gjson.Result) any { return r.ID(v, "f") },
			good: map[string]any{`"a"`: "a", `""`: "", `null`: ""}, bad: []string{`1`, long, control},
		},
		"RequiredID": {
			read: func(r *Reader, v gjson.Result) any { return r.RequiredID(v, "f") },
			good: map[string]any{`"a"`: "a"}, bad: []string{`""`, `null`, long, control, `1`},
			missing: "f is missing; it must be a string of 1 to 256 bytes",
		},
		"Word": {
			read: func(r *Reader, v gjson.Result) any { r.Word(v, "f", "user"); return nil },
			good: map[string]any{`"user"`: nil, `null`: nil}, bad: []string{`"User"`, `""`, `1`},
		},
		"Count": {
			read: func(r *Reader, v gjson.Result) any { return r.Count(v, "f") },
			good: map[string]any{`0`: int64(0), `1.0`: int64(1), `null`: int64(0), `1e99`: int64(1<<63 - 1)},
			bad:  []string{`-1`, `1.5`, `"1"`, `{}`},
		},
		"Flag": {
			read: func(r *Reader, v gjson.Result) any { return r.Flag(v, "f") },
			good: map[string]any{`true`: true, `false`: false, `null`: false}, bad: []string{`"true"`, `1`},
		},
		"Base64": {
			read: func(r *Reader, v gjson.Result) any { return r.Base64(v, "f") },
			good: map[string]any{`"QUJD"`: "QUJD", `"QUI="`: "QUI=", `""`: "", `null`: ""},
			bad:  []string{`"QUI"`, `"Q==="`, `"QU-_"`, `"QUI=\n"`, `1`},
		},
		"Object": {
			read: func(r *Reader, v gjson.Result) any { return r.Object(v, "f") },
			good: map[string]any{`{}`: true}, bad: []string{`null`, `[]`, `"x"`},
			missing: "f is missing; it must be an object",
		},
		"JSON": {
			read: func(r *Reader, v gjson.Result) any { return string(r.JSON(v, "f")) },
			good: map[string]any{"{\"a\":\n1.0}": `{"a":1.0}`, `{ }`: `{ }`, `null`: ""}, bad: []string{`[]`, `"x"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for json, want := range tt.good {
				r := Reader{Prefix: "params."}
				if got := tt.read(&r, gjson.Parse(json)); r.Err != nil || got != want {
					t.Errorf("%s is read as %v, %v", json, got, r.Err)
				}
			}
			for _, json := range tt.bad {
				r := Reader{Prefix: "params."}
				tt.read(&r, gjson.Parse(json))
				if r.Err == nil || r.Err.Kind != task.InvalidParams || r.Err.Field != "params.f" ||
					!strings.HasPrefix(r.Err.Detail, "f ") {
					t.Errorf("%s is refused as %v", json, r.Err)
				}
			}
			r := Reader{Prefix: "params."}
			tt.read(&r, gjson.Result{})
			if got := r.Err; got == nil != (tt.missing == "") || got != nil && got.Detail != tt.missing {
				t.Errorf("no value is refused as %v, want %q", got, tt.missing)
			}
		})
	}
}

// TestEach: an error in an entry has the whole path, and the first error ends the reading.
func TestEach(t *testing.T) {
	read := func(json string) (got []string, err *task.Error) {
		r := Reader{Prefix: "params."}
		r.Each(gjson.Parse(json), "list", 3, func(entry gjson.Result) {
			got = append(got, r.RequiredID(entry, "")+r.Text(jsonrpc.Member(entry, "m"), ".m"))
		})
		if r.Prefix != "params." {
			t.Errorf("the prefix has become %q", r.Prefix)
		}
		return got, r.Err
	}
	for _, tt := range []struct {
		json   string
		read   int
		field  string
		detail string
	}{
		{`["a","b","c"]`, 3, "", ""},
		{`[]`, 0, "", ""},
		{`{}`, 0, "params.list", "list must be an array"},
		{`["a","","c"]`, 2, "params.list[1]", "an entry must be a string of 1 to 256 bytes"},
		{`["a",null]`, 2, "params.list[1]", "an entry is missing; it must be a string of 1 to 256 bytes"},
		{`["a","b","c","d"]`, 3, "params.list", "list must have at most 3 entries"},
	} {
		got, err := read(tt.json)
		if err == nil {
			err = new(task.Error)
		}
		if len(got) != tt.read || err.Field != tt.field || err.Detail != tt.detail {
			t.Errorf("%s: %d entries, %q at %q", tt.json, len(got), err.Detail, err.Field)
		}
	}
	r := Reader{Prefix: "params."}
	r.Each(gjson.Parse(`[{"m":1}]`), "list", 3, func(entry gjson.Result) { r.Text(jsonrpc.Member(entry, "m"), ".m") })
	if r.Err == nil || r.Err.Field != "params.list[0].m" || r.Err.Detail != "m must be a string" {
		t.Errorf("a member of an entry is refused as %v", r.Err)
	}
}

// TestOwn: an owned string is no view of the body.
func TestOwn(t *testing.T) {
	body := []byte(`{"a":"one","b":"t\u0077o","c":""}`)
	v := gjson.ParseBytes(body)
	a, b, c := jsonrpc.Member(v, "a").Str, jsonrpc.Member(v, "b").Str, jsonrpc.Member(v, "c").Str
	Own(&a, &b, &c)
	if got := fmt.Sprint(a, b, c); got != "onetwo" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		m := jsonrpc.Member(v, name)
		if got := Owned(m, m.Str); got != m.Str {
			t.Errorf("got %q", got)
		}
	}
}

func TestMembers(t *testing.T) {
	var names []string
	object := gjson.Parse(`{"a":1,"b":null,"A":{"c":2}}`)
	Members(object, func(name string, _ gjson.Result) { names = append(names, name) })
	if d := cmp.Diff([]string{"a", "A"}, names); d != "" {
		t.Error(d)
	}
	Members(gjson.Parse(`[1]`), func(name string, _ gjson.Result) { t.Errorf("an array has the member %q", name) })
	for json, want := range map[string]string{"{\"a\":\r\n1}": `{"a":1}`, `[1.0]`: `{"value":[1.0]}`,
		`null`: `{"value":null}`} {
		if got := string(Object(gjson.Parse(json))); got != want {
			t.Errorf("Object(%q) = %s, want %s", json, got, want)
		}
	}
}

func TestErrorData(t *testing.T) {
	for want, e := range map[string]*task.Error{
		``:                        {},
		`{"details":"d"}`:         {Detail: "d"},
		`{"field":"a","max":7}`:   task.Errorf(task.InvalidParams, "").WithField("a").WithData("max", 7),
		`{"limit":"x\n","max":1}`: {Data: map[string]any{"max": 1, "limit": "x\n", "field": "no", "func": func() {}}},
	} {
		if got := string(ErrorData(e, "")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := string(ErrorData(task.Errorf(task.Internal, "d"), "TYPE")); got != `{"errorType":"TYPE","details":"d"}` {
		t.Errorf("got %s", got)
	}
}
