// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"fmt"
	"testing"
)

// cursorShape reads {"s":string,"b":boolean,"i":integer,"x":scalar,"l":[{"s":string}]} and shows the values read.
func cursorShape(body []byte) (shown string, ok bool) {
	c := NewCursor(body)
	names := Names{"s", "b", "i", "x", "l"}
	ok = c.Object(names, func(i int) bool {
		switch names[i] {
		case "s":
			raw, escaped, ok := c.String()
			shown += fmt.Sprintf("s=%s,%t ", raw, escaped)
			return ok
		case "b":
			v, ok := c.Bool()
			shown += fmt.Sprintf("b=%t ", v)
			return ok
		case "i":
			n, ok := c.Int()
			shown += fmt.Sprintf("i=%d ", n)
			return ok
		case "x":
			return c.Scalar()
		}
		return c.Only(func() bool { return c.Object(Names{"s"}, func(int) bool { return c.Scalar() }) })
	})
	return shown, ok && c.End()
}

func TestCursor(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{`{"s":"a","b":true,"i":15,"x":-1.5e3,"l":[{"s":"x"}]}`, "s=a,false b=true i=15 "},
		{" { \"i\" : 0 , \"s\" : \"\\u00e9\\n\" }\r\n\t", `i=0 s=\u00e9\n,true `},
		{`{"b":false,"x":"text","l":[{"s":null}]}`, "b=false "},
		{`{"s":null,"b":null,"i":null,"x":null,"l":null}`, ""},
		{`{"i":999999999999999}`, "i=999999999999999 "},
		{`{"x":true}`, ""},
	} {
		if got, ok := cursorShape([]byte(tc.body)); !ok || got != tc.want {
			t.Errorf("%s: %t, %q, want %q", tc.body, ok, got, tc.want)
		}
	}
	for _, body := range []string{
		``, ` `, `{}`, `[]`, `{"s":"a"`, `{"s":"a"}}`, `{"s":"a"} x`, `{"s":"a",}`, `{"s":"a" "b":true}`, `{"s" "a"}`,
		`{"s":"a","s":"b"}`, `{"s":null,"s":null}`, `{"\u0073":"a"}`, `{"S":"a"}`, `{"y":1}`, `{"ss":"a"}`, `{s:"a"}`,
		`{"s":1}`, `{"s":"\ud800"}`, `{"s":"\q"}`, "{\"s\":\"\n\"}", "{\"s\":\"\xff\"}", "\ufeff" + `{"s":"a"}`,
		`{"b":1}`, `{"b":tru}`, `{"i":-1}`, `{"i":1.0}`, `{"i":1e3}`, `{"i":01}`, `{"i":1000000000000000}`, `{"i":"1"}`,
		`{"x":{}}`, `{"x":[]}`, `{"x":01}`, `{"x":nul}`, `{"l":[]}`, `{"l":{}}`, `{"l":[{"s":"x"},{"s":"y"}]}`,
		`{"l":[null]}`,
	} {
		if got, ok := cursorShape([]byte(body)); ok {
			t.Errorf("%s is read as %q", body, got)
		}
	}
}

// FuzzCursor checks that a value read by a Cursor is valid as Parse judges it.
func FuzzCursor(f *testing.F) {
	f.Add([]byte(`{"s":"a\n\ud83d\ude00","b":true,"i":15,"x":-1.5e3,"l":[{"s":"x"}]}`))
	f.Add([]byte("{ \"i\":0 , \"s\" :\"\u00e9\" }\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, ok := cursorShape(body); ok {
			if _, err := ParseValue(body, Limits{}); err != nil {
				t.Fatalf("%v: %q", err, body)
			}
		}
	})
}
