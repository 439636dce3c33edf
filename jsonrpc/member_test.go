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
