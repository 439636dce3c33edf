// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

func TestRest(t *testing.T) {
	for name, c := range map[string]struct {
		operation acts.Operation
		params    map[string]any
		want      string
	}{
		"a path": {acts.Operation{HTTP: "GET", Below: "/tasks/{id}"}, map[string]any{"id": "a/b"}, "GET /tasks/a%2Fb "},
		"a query": {acts.Operation{HTTP: "GET", Below: "/tasks"}, map[string]any{"n": 1, "s": "a b"},
			"GET /tasks?n=1&s=a+b "},
		"a body": {acts.Operation{HTTP: "POST", Below: "/tasks/{id}:cancel"}, map[string]any{"id": "t", "n": 1},
			`POST /tasks/t:cancel {"n":1}`},
	} {
		r := wire.Request{URL: "/", Headers: make(map[string]string)}
		if err := rest(&r, c.operation, c.params); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, r.Method+" "+r.URL+" "+string(r.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
