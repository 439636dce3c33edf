// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"testing"

	"github.com/tidwall/gjson"
)

func TestMember(t *testing.T) {
	if v := Member(gjson.Parse(`{"a":1,"b":null,"A":{"c":2}}`), "A"); v.Raw != `{"c":2}` {
		t.Errorf("got %s", v.Raw)
	}
	for _, json := range []string{`[{"a":1}]`, `"a"`, ``, `{"b":1}`} {
		if v := Member(gjson.Parse(json), "a"); v.Exists() {
			t.Errorf("%s has the member %s", json, v.Raw)
		}
	}
}

// TestMembers: several members are found as each of them alone.
func TestMembers(t *testing.T) {
	for _, json := range []string{
		`{"a":1,"b":null,"A":{"c":2}}`, `{"b":"x","a":[1],"b":"y","a":2}`, `{"b":null,"b":1,"c":{"a":3}}`, `{"\u0061":1}`,
		`{}`, `[{"a":1}]`, `"a"`, `null`, ``,
	} {
		object := gjson.Parse(json)
		a, b, c := gjson.Parse(`"of before"`), gjson.Result{}, gjson.Result{}
		Members(object, Named{"a", &a}, Named{"b", &b}, Named{"c", &c})
		for name, found := range map[string]gjson.Result{"a": a, "b": b, "c": c} {
			if want := Member(object, name); found.Raw != want.Raw || found.Exists() != want.Exists() {
				t.Errorf("%s in %s: %q, want %q", name, json, found.Raw, want.Raw)
			}
		}
	}
}

// TestReadBegin: the members at the begin of a request are read, also if the begin ends in the midst of a value.
func TestReadBegin(t *testing.T) {
	const whole = `{"jsonrpc":"2.0","id":"a1","method":"stream","params":{"message":{"type":"task-command",` +
		`"text":"xxxx"}}}`
	for name, c := range map[string]struct{ begin, id, method, kind string }{
		"all":               {whole, `"a1"`, "stream", "task-command"},
		"a part":            {whole[:len(whole)-9], `"a1"`, "stream", "task-command"},
		"no params":         {whole[:46], `"a1"`, "stream", ""},
		"a part of a name":  {whole[:38], `"a1"`, "", ""},
		"a part of an id":   {`{"method":"rpc","id":12`, "", "rpc", ""},
		"the id is no id":   {`{"method":"rpc","id":{"a":1},"x":1`, "", "rpc", ""},
		"the id is no JSON": {`{"method":"rpc","id":"a` + "\x01" + `","x":1`, "", "rpc", ""},
		"params are a list": {`{"method":"rpc","id":1,"params":["message"`, "1", "rpc", ""},
		"not JSON":          {"hello", "", "", ""},
		"nothing":           {"", "", "", ""},
	} {
		r := ReadBegin([]byte(c.begin))
		kind := Member(Member(r.Params, "message"), "type").Str
		if string(r.ID) != c.id || r.Method != c.method || kind != c.kind {
			t.Errorf("%s: id %s, method %q, type %q", name, r.ID, r.Method, kind)
		}
	}
}
