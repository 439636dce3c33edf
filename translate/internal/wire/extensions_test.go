// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
)

func TestExtensions(t *testing.T) {
	for name, tt := range map[string]struct {
		add      [][2]string
		metadata string
		want     string
	}{
		"nothing":           {nil, ``, ``},
		"metadata alone":    {nil, `{"a":1}`, `{"a":1}`},
		"members alone":     {[][2]string{{"a\n", "[1.0,\r\n2]"}, {"b", `null`}}, ``, `{"f":{"a\n":[1.0,2]}}`},
		"both":              {[][2]string{{"b", `2`}}, `{ "a" : 1 }`, `{"a":1,"f":{"b":2}}`},
		"empty metadata":    {[][2]string{{"b", `2`}}, `{}`, `{"f":{"b":2}}`},
		"the name is taken": {[][2]string{{"b", `2`}}, `{"f":5}`, `{"f":{"metadata":{"f":5},"b":2}}`},
		"known names": {[][2]string{{"b", `2`}, {"Known", `1`}, {"kn_own", `1`}, {"Metadata", `1`}}, ``,
			`{"f":{"b":2}}`},
		"known names alone":   {[][2]string{{"KNOWN", `1`}}, `{"a":1}`, `{"a":1}`},
		"it is, with escapes": {nil, `{"\u0066":{}}`, `{"f":{"metadata":{"\u0066":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var x Extensions
			for _, m := range tt.add {
				x.Add(m[0], gjson.Parse(m[1]))
			}
			if d := cmp.Diff(tt.want, string(x.Join(json.RawMessage(tt.metadata), "f", "one known"))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWithout(t *testing.T) {
	for extensions, want := range map[string]string{
		"": "", `{}`: "", `{"f":1}`: "", `{"f":{},"g":[1,` + "\n" + `2],"F":3}`: `{"g":[1,2],"F":3}`, `{"a":1}`: `{"a":1}`,
	} {
		if got := string(Family("f").Without(json.RawMessage(extensions))); got != want {
			t.Errorf("%s is left as %s, want %s", extensions, got, want)
		}
	}
}

func TestExtensionsAreBounded(t *testing.T) {
	half := `"` + strings.Repeat("x", task.MaxExtensions/2-100) + `"`
	var fits, large, inner, outer Extensions
	fits.Add("a", gjson.Parse(half))
	fits.Add("b", gjson.Parse(half))
	if n := len(fits.JSON("f", "known")); n < task.MaxExtensions-200 || n > task.MaxExtensions {
		t.Errorf("what fits has %d bytes", n)
	}
	for range 3 {
		large.Add("a", gjson.Parse(half))
	}
	large.Add("small", gjson.Parse("1"))
	if got := large.JSON("f", "known"); got != nil {
		t.Errorf("what is too large has %d bytes", len(got))
	}
	inner.Add("a", gjson.Parse(half))
	outer.Add("b", gjson.Parse(half))
	outer.AddObject("c", &inner, "known")
	outer.AddObject("d", &inner, "known")
	if got := outer.JSON("f", "known"); got != nil {
		t.Errorf("what is too large together has %d bytes", len(got))
	}
	if got := fits.JSONWith(json.RawMessage(`{"m":`+half+`}`), "f", "known"); got != nil {
		t.Errorf("with the metadata it has %d bytes", len(got))
	}
}

// TestObjectsOfExtensions: the members of an inner object are judged by its own names, and the object stays.
func TestObjectsOfExtensions(t *testing.T) {
	var inner, lookalikes, outer Extensions
	inner.Add("inner", gjson.Parse("1"))
	inner.Add("Inner2", gjson.Parse("2"))
	lookalikes.Add("INNER2", gjson.Parse("3"))
	outer.Add("a", gjson.Parse("1"))
	outer.Add("B", gjson.Parse("2"))
	outer.AddObject("b", &inner, "inner2")
	outer.AddObject("c", &lookalikes, "inner2")
	if d := cmp.Diff(`{"f":{"a":1,"b":{"inner":1}}}`, string(outer.JSON("f", "b c"))); d != "" {
		t.Error(d)
	}
}

func TestAppend(t *testing.T) {
	for name, tt := range map[string]struct {
		own, extra, key, want string
	}{
		"nothing":        {``, ``, ``, ``},
		"own":            {`{"x":1,"known":2,"kn\u006fwn":3,"KNOWN":4,"_kno_wn":5}`, `{"f":{"x":1}}`, ``, `,"x":1`},
		"own metadata":   {`{"metadata":{"a":1},"x":1}`, ``, ``, `,"x":1,"metadata":{"a":1}`},
		"empty metadata": {`{"metadata":{}}`, ``, ``, `,"metadata":{}`},
		"no object":      {`{"metadata":"m"}`, `{"g":1}`, `k`, `,"metadata":"m"`},
		"of others":      {``, `{"g":{"y":1},"f":{}}`, ``, `,"metadata":{"g":{"y":1}}`},
		"no family":      {``, `{"f":5}`, ``, `,"metadata":{"f":5}`},
		"both": {`{"metadata":{"a":1,"g":2}}`, `{"f":{},"g":{"y":1},"h":3}`, ``,
			`,"metadata":{"a":1,"g":2,"h":3}`},
		"one more":           {`{"metadata":{"a":1}}`, `{"h":3}`, `k`, `,"metadata":{"a":1,"h":3,"k":"v"}`},
		"one more alone":     {``, ``, `k`, `,"metadata":{"k":"v"}`},
		"one more, there":    {`{"metadata":{"\u006b":1}}`, ``, `k`, `,"metadata":{"\u006b":1}`},
		"one more, of other": {``, `{"k":1}`, `k`, `,"metadata":{"k":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := Family("f").AppendWith([]byte("{"), json.RawMessage(tt.own), json.RawMessage(tt.extra), "b known a", tt.key,
				"v")
			if d := cmp.Diff("{"+tt.want, string(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestNoExtensionsAreFree: an object without extensions costs no memory.
func TestNoExtensionsAreFree(t *testing.T) {
	const family Family = "f"
	buf := make([]byte, 0, 1000)
	if n := testing.AllocsPerRun(100, func() {
		var x Extensions
		extensions := x.JSON(family, "known")
		buf = family.Append(buf[:0], family.Of(extensions), extensions, "known")
	}); n != 0 || len(buf) != 0 {
		t.Errorf("%v allocations, for %q", n, buf)
	}
}
