// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// TestIDsInPaths: an id with a slash, or with the name of a verb at its end, is one id if it is escaped.
func TestIDsInPaths(t *testing.T) {
	g := open(t, func(h *setup) {
		h.Callers = []translate.Server{a2a.LegacyServer(false), a2a.V1RESTServer(false), a2a.V03RESTServer(false)}
	})
	for id, escaped := range map[string]string{
		"orders/7": "orders%2F7", "t:cancel": "t%3Acancel", "50%/a": "50%25%2Fa", "a%2Fb": "a%252Fb", "a b": "a%20b",
	} {
		g.post("/agents/one", `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"`+id+
			`","message":{"role":"user","parts":[{"type":"text","text":"ask"}]}}}`)
		for _, path := range []string{"/agents/one/tasks/", "/agents/one/v1/tasks/", "/agents/%6Fne/tasks/"} {
			res, body := g.request("GET", path+escaped, "", "", "")
			if res.StatusCode != http.StatusOK || !strings.Contains(body, `"id":"`+id+`"`) {
				t.Errorf("the task %q at %s: %d %s", id, path, res.StatusCode, body)
			}
		}
		res, body := g.post("/agents/one/tasks/"+escaped+":cancel", " null\n")
		if res.StatusCode != http.StatusOK || !strings.Contains(body, `"TASK_STATE_CANCELED"`) {
			t.Errorf("%q is canceled by a body of null: %d %s", id, res.StatusCode, body)
		}
	}
	if res, _ := g.request("GET", "/agents%2Fone/tasks/t", "", "", ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("an escaped slash in the mount point: %d", res.StatusCode)
	}
}

// TestNullIsNoBody: a request without an envelope may have null for an empty body.
func TestNullIsNoBody(t *testing.T) {
	g := open(t, func(h *setup) { h.Callers = []translate.Server{a2a.V1Server(false), a2a.V1RESTServer(false)} })
	res, body := g.post("/agents/one/message:send", "null")
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, `message is missing`) {
		t.Errorf("a message by a body of null: %d %s", res.StatusCode, body)
	}
}
