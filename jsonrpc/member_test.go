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
