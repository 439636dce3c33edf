// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"net/http"
	"strings"
	"testing"
)

func TestPathsAndMethods(t *testing.T) {
	g := open(t)
	start := func(id string) string { return message("rpc", "start", id, "hello") }
	for _, c := range []struct {
		path, body string
		status     int
		contains   string
	}{
		{"/agents/one/rpc", start("a"), 200, `"awaiting-completion"`},
		{"/agents/one/rpc/", start("b"), 200, `"awaiting-completion"`},
		{"/agents/one", start("c"), 200, `"awaiting-completion"`},
		{"/agents/one/", start("d"), 200, `"awaiting-completion"`},
		{"/agents/one/stream", start("e"), 200, `"field":"method"`},
		{"/agents/one/group", `{"jsonrpc":"2.0","id":1,"method":"group"}`, 200, `-32007`},
		{"/agents/one/notification/set", `{"jsonrpc":"2.0","id":1,"method":"notification/set","params":{}}`, 200,
			`"field":"params.taskId"`},
		{"/agents/one", `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{}}`, 200, `-32601`},
		{"/agents/one/rpc", `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{}}`, 200, `-32601`},
		{"/agents/one/notification/get", `{"jsonrpc":"2.0","id":1,"method":"rpc/x"}`, 200, `-32601`},
		{"/agents/one/rpc", `{"jsonrpc":"1.0","id":1,"method":"tasks/send"}`, 200, `-32600`},
		{"/agents/one/rpc", `{"jsonrpc":"2.0","id":1}`, 200, `-32600`},
		{"/agents/one/rpc", `{"jsonrpc":"2.0","id":1,"method":"stream"}`, 200, `-32600`},
		{"/agents/one/rpc", `{"jsonrpc":"2.0","id":1,"method":`, 200, `-32700`},
		{"/agents/one/rpc", `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"x":"` + strings.Repeat("y", 20<<10) +
			`"}}`, 200, `"limit":"bytes"`},
		{"/agents/one/other", start("f"), 404,
			"nothing is served at this path; the Partner is mounted at /agents/one/ " +
				"and takes POST requests there (aip); by GET it serves .well-known/acs.json, " +
				"agent_spec.json, acs, health below it\n"},
		{"/agents/onemore/rpc", start("g"), 404, ""},
		{"/rpc", start("h"), 404, ""},
	} {
		res, body := g.post(c.path, c.body)
		if res.StatusCode != c.status || !strings.Contains(body, c.contains) {
			t.Errorf("POST %s: got %d %s, want %d with %s", c.path, res.StatusCode, body, c.status, c.contains)
		}
		if c.status == 200 && res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("POST %s: content type %q", c.path, res.Header.Get("Content-Type"))
		}
	}
	res, err := g.server.Client().Get(g.server.URL + "/agents/one/rpc")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST" {
		t.Errorf("GET: got %d, Allow %q", res.StatusCode, res.Header.Get("Allow"))
	}
	if n := g.requests.Load(); n != 4 {
		t.Errorf("the agent was asked %d times, want 4", n)
	}
}

func TestNothingOfACallReachesTheLog(t *testing.T) {
	g := open(t)
	g.post("/agents/one/rpc", message("rpc", "start", "t1", "fail with the words of the payload"))
	g.post("/agents/one/rpc", message("rpc", "start", "t2", "the words of the payload", `,"token":"s3cret"`))
	g.post("/agents/one/rpc", message("rpc", "nonsense", "t3", "the words of the payload"))
	log := g.log.String()
	if strings.Contains(log, "words of the payload") || strings.Contains(log, "s3cret") {
		t.Errorf("the log shows the content of messages:\n%s", log)
	}
	if !strings.Contains(log, "task=t1 leader=leader state=failed") {
		t.Errorf("the log does not name the task that failed:\n%s", log)
	}
}
