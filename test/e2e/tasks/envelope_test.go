// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// reply is an answer that is taken apart.
type reply struct {
	ID    json.RawMessage `json:"id"`
	Error *struct {
		Code int             `json:"code"`
		Data json.RawMessage `json:"data"`
	} `json:"error"`
	Result json.RawMessage `json:"result"`
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL + ` {
		limits {
			body 64KiB
		}
	}`})
	leader := site.LeaderOf(t, s.URL())
	good := func(taskID string) string { return site.StartBody(leader.Sender, taskID) }
	instead := func(old, by string) func(string) string {
		return func(body string) string {
			if !strings.Contains(body, old) {
				t.Fatalf("the good body has no %s", old)
			}
			return strings.Replace(body, old, by, 1)
		}
	}
	const id = `"req-1"`
	for _, tc := range []struct {
		name  string
		spoil func(string) string
		path  string // default /rpc
		code  int
		id    string
		data  map[string]any // members that data must have; details must be there in any case
	}{
		{"empty", func(string) string { return "" }, "", -32700, "null", nil},
		{"no JSON", func(string) string { return "hello" }, "", -32700, "null", nil},
		{"cut off", func(s string) string { return s[:len(s)-1] }, "", -32700, "null", nil},
		{"trailing bytes", func(s string) string { return s + "x" }, "", -32700, "null", nil},
		{"two values", func(s string) string { return s + s }, "", -32700, "null", nil},
		{"trailing comma", instead(`"sessionId":"session-1"}`, `"sessionId":"session-1",}`), "", -32700, "null", nil},
		{"invalid UTF-8", instead("hello", "\xff"), "", -32700, "null", nil},
		{"overlong UTF-8", instead("hello", "\xc0\xaf"), "", -32700, "null", nil},
		{"byte order mark", func(s string) string { return "\xef\xbb\xbf" + s }, "", -32700, "null",
			map[string]any{"offset": 0.0}},
		{"lone surrogate", instead("hello", `\ud83d`), "", -32700, "null", nil},
		{"low surrogate", instead("hello", `\ude00`), "", -32700, "null", nil},
		{"raw control character", instead("hello", "a\x01b"), "", -32700, "null", nil},
		{"NaN", instead(`"req-1"`, "NaN"), "", -32700, "null", nil},
		{"leading zero", instead(`"req-1"`, "01"), "", -32700, "null", nil},
		{"comment", func(s string) string { return "// hi\n" + s }, "", -32700, "null", nil},

		{"duplicate method", instead(`"method":"rpc"`, `"method":"rpc","method":"rpc"`), "", -32600, id,
			map[string]any{"field": "method"}},
		{"duplicate id", instead(`"id":"req-1"`, `"id":"req-1","id":"req-2"`), "", -32600, "null",
			map[string]any{"field": "id"}},
		{"duplicate taskId", instead(`"taskId":`, `"taskId":"other","taskId":`), "", -32600, id,
			map[string]any{"field": "params.message.taskId"}},
		{"duplicate, escaped", instead(`"taskId":`, `"t\u0061skId":"other","taskId":`), "", -32600, id,
			map[string]any{"field": "params.message.taskId"}},
		{"duplicate deep inside", instead(`"text":"hello"`, `"text":"hello","metadata":{"a":{"b":1,"b":2}}`), "", -32600, id,
			map[string]any{"field": "params.message.dataItems[0].metadata.a.b"}},
		{"too deep", instead(`"text":"hello"`, `"text":"hello","metadata":{"a":`+strings.Repeat("[", 70)+strings.Repeat("]",
			70)+`}`), "", -32600, id,
			map[string]any{"limit": "depth", "max": 64.0}},
		{"too large", instead("hello", strings.Repeat("a", 70_000)), "", -32600, id,
			map[string]any{"limit": "bytes", "max": 65536.0}},
		{"batch", func(s string) string { return "[" + s + "]" }, "", -32600, "null", nil},
		{"empty batch", func(string) string { return "[]" }, "", -32600, "null", nil},
		{"a string", func(string) string { return `"hello"` }, "", -32600, "null", nil},
		{"null", func(string) string { return `null` }, "", -32600, "null", nil},
		{"no jsonrpc", instead(`"jsonrpc":"2.0",`, ""), "", -32600, id, map[string]any{"field": "jsonrpc"}},
		{"wrong jsonrpc", instead(`"2.0"`, `"1.0"`), "", -32600, id, map[string]any{"field": "jsonrpc"}},
		{"numeric jsonrpc", instead(`"2.0"`, `2.0`), "", -32600, id, map[string]any{"field": "jsonrpc"}},
		{"no id", instead(`"id":"req-1",`, ""), "", -32600, "null", map[string]any{"field": "id"}},
		{"id is an object", instead(`"req-1"`, `{}`), "", -32600, "null", map[string]any{"field": "id"}},
		{"id is true", instead(`"req-1"`, `true`), "", -32600, "null", map[string]any{"field": "id"}},
		{"no method", instead(`"method":"rpc",`, ""), "", -32600, id, map[string]any{"field": "method"}},
		{"method is a number", instead(`"rpc"`, `1`), "", -32600, id, map[string]any{"field": "method"}},
		{"method against path", instead(`"rpc"`, `"stream"`), "", -32600, id, map[string]any{"field": "method"}},
		{"path against method", func(s string) string { return s }, "/stream", -32600, id, map[string]any{"field": "method"}},
		{"params is a string", func(string) string { return `{"jsonrpc":"2.0","id":"req-1","method":"rpc","params":"x"}` },
			"", -32600, id, map[string]any{"field": "params"}},

		{"unknown method", instead(`"rpc"`, `"dance"`), "/", -32601, id, nil},
		{"no params", func(string) string { return `{"jsonrpc":"2.0","id":"req-1","method":"rpc"}` }, "", -32602, id,
			map[string]any{"field": "params"}},
		{"params is an array", func(string) string { return `{"jsonrpc":"2.0","id":"req-1","method":"rpc","params":[]}` },
			"", -32602, id, map[string]any{"field": "params"}},
		{"no message", func(string) string { return `{"jsonrpc":"2.0","id":"req-1","method":"rpc","params":{}}` }, "",
			-32602, id, map[string]any{"field": "params.message"}},
		{"no taskId", instead(`"taskId":`, `"taskid":`), "", -32602, id, map[string]any{"field": "params.message.taskId"}},
		{"empty taskId", func(s string) string {
			at := strings.Index(s, `"taskId":"`) + len(`"taskId":"`)
			return s[:at] + s[at+strings.IndexByte(s[at:], '"'):]
		}, "", -32602, id, map[string]any{"field": "params.message.taskId"}},
		{"taskId is a number", instead(`"taskId":`, `"taskId":1,"x":`), "", -32602, id,
			map[string]any{"field": "params.message.taskId"}},
		{"taskId is too long", instead(`"taskId":"`, `"taskId":"`+strings.Repeat("a", 256)), "", -32602, id,
			map[string]any{"field": "params.message.taskId"}},
		{"taskId has a control character", instead(`"taskId":"`, `"taskId":"\u0000`), "", -32602, id,
			map[string]any{"field": "params.message.taskId"}},
		{"no command", instead(`"command":"start",`, ""), "", -32602, id, map[string]any{"field": "params.message.command"}},
		{"unknown command", instead(`"start"`, `"dance"`), "", -32602, id, map[string]any{"field": "params.message.command"}},
		{"command of a stream", instead(`"start"`, `"re-stream"`), "", -32602, id,
			map[string]any{"field": "params.message.command"}},
		{"no senderId", instead(`"senderId":`, `"sender":`), "", -32602, id,
			map[string]any{"field": "params.message.senderId"}},
		{"a partner commands", instead(`"leader"`, `"partner"`), "", -32602, id,
			map[string]any{"field": "params.message.senderRole"}},
		{"wrong type", instead(`"message","id"`, `"task","id"`), "", -32602, id,
			map[string]any{"field": "params.message.type"}},
		{"sentAt is no time", instead("2025-09-01T14:30:00+08:00", "yesterday"), "", -32602, id,
			map[string]any{"field": "params.message.sentAt"}},
		{"items are an object", instead(`[{"type":"text","text":"hello"}]`, `{}`), "", -32602, id,
			map[string]any{"field": "params.message.dataItems"}},
		{"item of no type", instead(`"type":"text",`, ``), "", -32602, id,
			map[string]any{"field": "params.message.dataItems[0].type"}},
		{"text is a number", instead(`"hello"`, `1`), "", -32602, id,
			map[string]any{"field": "params.message.dataItems[0].text"}},
		{"file with neither", instead(`"type":"text","text":"hello"`, `"type":"file"`), "", -32602, id,
			map[string]any{"field": "params.message.dataItems[0].uri"}},
		{"file with both", instead(`"type":"text","text":"hello"`, `"type":"file","uri":"http://x/","bytes":"aGk="`), "",
			-32602, id,
			map[string]any{"field": "params.message.dataItems[0].bytes"}},
		{"file with other base64", instead(`"type":"text","text":"hello"`, `"type":"file","bytes":"a_-="`), "", -32602, id,
			map[string]any{"field": "params.message.dataItems[0].bytes"}},
		{"timeout is negative", instead(`"command":"start"`, `"command":"start","commandParams":{"responseTimeout":-1}`), "",
			-32602, id,
			map[string]any{"field": "params.message.commandParams.responseTimeout"}},
		{"timeout is a string", instead(`"command":"start"`,
			`"command":"start","commandParams":{"awaitingInputTimeout":"1s"}`), "", -32602, id,
			map[string]any{"field": "params.message.commandParams.awaitingInputTimeout"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := tc.path
			if path == "" {
				path = "/rpc"
			}
			taskID := "task-of-" + strings.ReplaceAll(tc.name, " ", "-")
			res, body := leader.Post(path, []byte(tc.spoil(good(taskID))))
			var got reply
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatalf("the answer is no JSON: %v\n%s", err, body)
			}
			if res.StatusCode != http.StatusOK || got.Error == nil || got.Error.Code != tc.code || string(got.ID) != tc.id {
				t.Fatalf("HTTP %d, %s\nwant 200, error %d and id %s", res.StatusCode, body, tc.code, tc.id)
			}
			if media := res.Header.Get("Content-Type"); media != "application/json" {
				t.Errorf("Content-Type is %q", media)
			}
			members := site.Data(t, got.Error.Data)
			for key, want := range tc.data {
				if diff := cmp.Diff(want, members[key]); diff != "" {
					t.Errorf("data.%s (-want +got):\n%s\nin %s", key, diff, body)
				}
			}
			if details, _ := members["details"].(string); details == "" {
				t.Errorf("data has no details: %s", body)
			}
			if bytes.Contains(body, []byte("goroutine ")) || bytes.Contains(body, []byte(".go:")) {
				t.Errorf("the answer shows the inside: %s", body)
			}
			if refusal := leader.Refused(site.CommandCall(task.Get, taskID)); refusal.Code != -32001 {
				t.Errorf("something was stored: %s", refusal.Raw)
			}
		})
	}
	if n := len(agent.Requests("")); n != 0 {
		t.Errorf("the agent was asked %d times, want never", n)
	}
}

// TestID proves that an id comes back as it was sent, byte for byte.
func TestID(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	for i, id := range []string{
		`"req-1"`, `""`, `1`, `0`, `-0`, `1.0`, `1e2`, `1E+02`, `123456789012345678901234567890`, `0.1000`, `null`,
		`"\u0041"`, `"\/\"\\\b"`, `"\ud83d\ude00"`, `"😀"`, `"<a>&"`, `"\u2028"`, "\"\u2028\"", `"` +
			strings.Repeat("x", 5000) + `"`,
	} {
		taskID := fmt.Sprintf("task-%d", i)
		body := strings.Replace(site.StartBody(leader.Sender, taskID), `"id":"req-1"`, `"id": `+id+` `, 1)
		_, answer := leader.Post("/rpc", []byte(body))
		var got reply
		if err := json.Unmarshal(answer, &got); err != nil || got.Result == nil {
			t.Errorf("%s: %v, %s", id, err, answer)
			continue
		}
		if string(got.ID) != id {
			t.Errorf("the id %s comes back as %s", id, got.ID)
		}
		_, answer = leader.Post("/rpc", []byte(strings.Replace(body, `"start"`, `"dance"`, 1)))
		got = reply{}
		if err := json.Unmarshal(answer, &got); err != nil || got.Error == nil {
			t.Errorf("%s: %v, %s", id, err, answer)
			continue
		}
		if string(got.ID) != id {
			t.Errorf("with an error, the id %s comes back as %s", id, got.ID)
		}
	}
}

// TestPaths proves what belongs to the Partner and what to the next handler.
func TestPaths(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Handle: `
	aip_gateway /agents/one* a2a/legacy ` + agent.URL + `
	handle_path /agents/two* {
		aip_gateway a2a/legacy ` + agent.URL + `
	}
	respond "the next handler" 418`})
	leader := site.LeaderOf(t, s.URL())
	for i, tc := range []struct {
		method, path string
		want         int
	}{
		{"POST", "/agents/one/rpc", 200}, {"POST", "/agents/one/rpc/", 200}, {"POST", "/agents/one", 200},
		{"POST", "/agents/one/", 200},
		{"POST", "/agents/two/rpc", 200}, {"POST", "/agents/two/", 200}, {"POST", "/agents/two", 200},
		{"POST", "/", 418}, {"POST", "/rpc", 418}, {"GET", "/agents/one/other", 418}, {"POST", "/agents/one/rpc/more", 418},
		{"POST", "/agents/onerous/rpc", 418}, {"POST", "/agents/one/RPC", 418}, {"POST", "/agents//one/rpc", 418},
	} {
		body := site.StartBody(leader.Sender, fmt.Sprintf("task-%d", i))
		res, answer := leader.Exchange(tc.method, tc.path, []byte(body))
		if res.StatusCode != tc.want || (tc.want == 200) != bytes.Contains(answer, []byte(`"result"`)) {
			t.Errorf("%s %s: HTTP %d, %s, want %d", tc.method, tc.path, res.StatusCode, answer, tc.want)
		}
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
		res, _ := leader.Exchange(method, "/agents/one/rpc", nil)
		if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST" {
			t.Errorf("%s on rpc: HTTP %d, Allow %q", method, res.StatusCode, res.Header.Get("Allow"))
		}
	}
}
