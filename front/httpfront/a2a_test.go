// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// everyCaller makes a gateway serve all dialects, as callers aip aip/2 a2a does.
func everyCaller(h *setup) {
	h.Callers = []translate.Server{aip.Server(), aip.ServerV2(""), a2a.V1Server(false), a2a.V1RESTServer(false),
		a2a.V03Server(false), a2a.LegacyServer(false)}
}

// TestRequestsWithoutID: A2A callers first get the other error, AIP callers the error about the id.
func TestRequestsWithoutID(t *testing.T) {
	g := open(t, everyCaller)
	const message = `{"kind":"message","role":"user","messageId":"m","parts":[{"kind":"text","text":"hello"}]}`
	for name, c := range map[string]struct{ body, says string }{
		"0.3, nothing else":        {`"method":"message/send","params":{"message":` + message + `}`, `-32600`},
		"0.3, no message":          {`"method":"message/send","params":{}`, `-32602`},
		"0.3, params are a string": {`"method":"message/send","params":"not_a_dict"`, `-32602`},
		"0.3, no such task":        {`"method":"tasks/get","params":{"id":"gw-aaaaaaaaaaaaaaaaaaaaaaaaaa"}`, `-32600`},
		"legacy, params":           {`"method":"tasks/send","params":[]`, `-32602`},
		"1.0, nothing else":        {`"method":"GetTask","params":{"id":"t"}`, `-32600`},
		"1.0, params":              {`"method":"GetTask","params":{}`, `-32602`},
		"1.0, params are a string": {`"method":"SendMessage","params":"x"`, `-32602`},
		"no such method":           {`"method":"no/such","params":{}`, `-32600`},
		"no method":                {`"params":{}`, `-32600`},
		"aip":                      {`"method":"rpc","params":{}`, `-32600`},
		"aip, params":              {`"method":"rpc","params":"x"`, `-32600`},
	} {
		t.Run(name, func(t *testing.T) {
			_, body := g.post("/agents/one", `{"jsonrpc":"2.0",`+c.body+`}`)
			if !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":null,"error":{"code":`+c.says) {
				t.Errorf("got %s, want %s", body, c.says)
			}
		})
	}
	t.Run("with an id", func(t *testing.T) {
		_, body := g.post("/agents/one", `{"jsonrpc":"2.0","id":7,"method":"rpc","params":"x"}`)
		if !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`) {
			t.Errorf("got %s", body)
		}
	})
	if n := g.requests.Load(); n != 0 {
		t.Errorf("the agent was asked %d times", n)
	}
	t.Run("only A2A is served", func(t *testing.T) {
		g := open(t, func(h *setup) { everyCaller(h); h.Callers = h.Callers[2:] })
		_, body := g.post("/agents/one", `{"jsonrpc":"2.0","method":"no/such","params":{}}`)
		if !strings.Contains(body, `-32600`) {
			t.Errorf("got %s, as nowhere else", body)
		}
	})
}

// request sends a request by any method of HTTP, with one header field.
func (g *gate) request(method, path, field, value, body string) (*http.Response, string) {
	g.t.Helper()
	req, err := http.NewRequest(method, g.server.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if field != "" {
		req.Header.Set(field, value)
	}
	res, err := g.server.Client().Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res, string(content)
}

// started starts a task by A2A 1.0 over plain HTTP, and returns its id.
func (g *gate) started(text string) string {
	g.t.Helper()
	_, body := g.post("/agents/one/message:send",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"`+text+`"}]}}`)
	var answer struct{ Task struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Task.ID == "" {
		g.t.Fatalf("got %s", body)
	}
	return answer.Task.ID
}

// TestWebhooksOfTasks: callers with tasks named by the gateway have webhooks only for existing tasks, and may delete
// one twice.
func TestWebhooksOfTasks(t *testing.T) {
	g := open(t, everyCaller, func(h *setup) { h.webhooks = notify.Config{Egress: &egress.Policy{}} })
	const gone = "gw-aaaaaaaaaaaaaaaaaaaaaaaaaa"
	there := g.started("ask")
	rpc := func(method, params string) func(id string) (*http.Response, string) {
		return func(id string) (*http.Response, string) {
			return g.post("/agents/one",
				`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+strings.ReplaceAll(params, "$", id)+`}`)
		}
	}
	rest := func(method, path, body string) func(id string) (*http.Response, string) {
		return func(id string) (*http.Response, string) {
			return g.request(method, "/agents/one/tasks/"+id+path, "", "", body)
		}
	}
	const url = `"url":"https://hooks.example.com/x"`
	for _, c := range []struct {
		name   string
		call   func(id string) (*http.Response, string)
		status int
		says   string
	}{
		{"0.3 set", rpc("tasks/pushNotificationConfig/set",
			`{"taskId":"$","pushNotificationConfig":{`+url+`,"id":"a"}}`), 0, `"result":{`},
		{"0.3 list", rpc("tasks/pushNotificationConfig/list", `{"id":"$"}`), 0, `"result":[{`},
		{"0.3 get", rpc("tasks/pushNotificationConfig/get", `{"id":"$","pushNotificationConfigId":"a"}`), 0,
			`"result":{`},
		{"0.3 delete", rpc("tasks/pushNotificationConfig/delete", `{"id":"$","pushNotificationConfigId":"a"}`), 0,
			`"result":null`},
		{"0.3 delete again", rpc("tasks/pushNotificationConfig/delete", `{"id":"$","pushNotificationConfigId":"a"}`),
			0, `"result":null`},
		{"0.3 list none", rpc("tasks/pushNotificationConfig/list", `{"id":"$"}`), 0, `"result":[]`},
		{"1.0 create", rpc("CreateTaskPushNotificationConfig", `{"taskId":"$","id":"b",`+url+`}`), 0, `"result":{`},
		{"1.0 list", rpc("ListTaskPushNotificationConfigs", `{"taskId":"$"}`), 0, `"configs":[{`},
		{"1.0 delete", rpc("DeleteTaskPushNotificationConfig", `{"taskId":"$","id":"b"}`), 0, `"result":{}`},
		{"1.0 delete again", rpc("DeleteTaskPushNotificationConfig", `{"taskId":"$","id":"b"}`), 0, `"result":{}`},
		{"REST create", rest("POST", "/pushNotificationConfigs", `{"id":"c",`+url+`}`), 404, `"c"`},
		{"REST list", rest("GET", "/pushNotificationConfigs", ""), 404, `"configs":[{`},
		{"REST delete", rest("DELETE", "/pushNotificationConfigs/c", ""), 404, `{}`},
		{"REST delete again", rest("DELETE", "/pushNotificationConfigs/c", ""), 404, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res, body := c.call(there); res.StatusCode != 200 || !strings.Contains(body, c.says) ||
				strings.Contains(body, `"error"`) {
				t.Errorf("of a task that is there: %d %s, want %s", res.StatusCode, body, c.says)
			}
			res, body := c.call(gone)
			if want := cmp.Or(c.status, 200); res.StatusCode != want || !strings.Contains(body, "-32001") &&
				!strings.Contains(body, `"TASK_NOT_FOUND"`) {
				t.Errorf("of a task that is not there: %d %s", res.StatusCode, body)
			}
		})
	}
	t.Run("a webhook that is not there", func(t *testing.T) {
		if _, body := rpc("GetTaskPushNotificationConfig", `{"taskId":"$","id":"b"}`)(there); !strings.Contains(body,
			"-32001") {
			t.Errorf("got %s", body)
		}
	})
	t.Run("AIP sets them before a task", func(t *testing.T) {
		_, body := rpc("notification/set", `{"taskId":"$","token":"t",`+url+`}`)("to come")
		if !strings.Contains(body, `"result":{"id":"notification-`) {
			t.Errorf("got %s", body)
		}
		if _, body = rpc("notification/delete",
			`{"taskId":"$","notificationConfigId":"none"}`)("to come"); !strings.Contains(body, "-32001") {
			t.Errorf("got %s", body)
		}
	})
}

// TestSubscribingToEnded: in A2A 1.0 it is an error before there is a stream.
func TestSubscribingToEnded(t *testing.T) {
	g := open(t, everyCaller)
	id := g.started("hello")
	for name, c := range map[string]struct {
		method, path, field, value, body string
		status                           int
		media, says                      string
	}{
		"JSON-RPC": {"POST", "", "Accept", "text/event-stream, application/json",
			`{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"` + id + `"}}`,
			200, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32004,`},
		"JSON-RPC, nothing but events": {"POST", "", "Accept", "text/event-stream",
			`{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"` + id + `"}}`,
			200, "text/event-stream", `data: {"jsonrpc":"2.0","id":1,"error":{"code":-32004,`},
		"REST": {"POST", "/tasks/" + id + ":subscribe", "Accept", "text/event-stream", "", 400,
			"application/json", `"UNSUPPORTED_OPERATION"`},
		"REST, by GET": {"GET", "/tasks/" + id + ":subscribe", "", "", "", 400, "application/json",
			`"UNSUPPORTED_OPERATION"`},
		"REST, again": {"GET", "/tasks/" + id + ":subscribe", "Last-Event-ID", "1", "", 200, "text/event-stream",
			`"TASK_STATE_COMPLETED"`},
		"REST, again, by a parameter": {"GET", "/tasks/" + id + ":subscribe?lastEventId=1", "", "", "", 200,
			"text/event-stream", `"TASK_STATE_COMPLETED"`},
		"REST, again, by both": {"GET", "/tasks/" + id + ":subscribe?lastEventId=none", "Last-Event-ID", "1", "", 200,
			"text/event-stream", `"TASK_STATE_COMPLETED"`},
		"REST, no task": {"POST", "/tasks/none:subscribe", "", "", "", 404, "application/json", `"TASK_NOT_FOUND"`},
		"0.3, which has": {"POST", "", "", "",
			`{"jsonrpc":"2.0","id":1,"method":"tasks/resubscribe","params":{"id":"` + id + `"}}`, 200,
			"text/event-stream", `"final"`},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := g.request(c.method, "/agents/one"+c.path, c.field, c.value, c.body)
			if name == "0.3, which has" {
				c.says = `"completed"`
			}
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != c.media ||
				!strings.Contains(body, c.says) {
				t.Errorf("got %d, %s: %s; want %d, %s with %s", res.StatusCode, res.Header.Get("Content-Type"), body,
					c.status, c.media, c.says)
			}
		})
	}
}

// TestMediaTypes holds A2A 1.0 to its rules on Content-Type, and leaves the others without any.
func TestMediaTypes(t *testing.T) {
	g := open(t, everyCaller)
	const a2aJSON = "application/a2a+json"
	const send = `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`
	rpc := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + send + `}`
	for name, c := range map[string]struct {
		path, media, body string
		status            int
		want, says        string
	}{
		"JSON-RPC":          {"", "application/json", rpc, 200, "application/json", `"result"`},
		"JSON-RPC, charset": {"", "Application/JSON; charset=utf-8", rpc, 200, "application/json", `"result"`},
		"JSON-RPC, a2a":     {"", a2aJSON, rpc, 200, "application/json", `"result"`},
		"JSON-RPC, text":    {"", "text/plain", rpc, 200, "application/json", `"code":-32005`},
		"REST":              {"/message:send", "application/json", send, 200, a2aJSON, `"task"`},
		"REST, a2a":         {"/message:send", a2aJSON + "; charset=utf-8", send, 200, a2aJSON, `"task"`},
		"REST, none":        {"/message:send", "", send, 200, a2aJSON, `"task"`},
		"REST, text": {"/message:send", "text/plain", send, 400, "application/json",
			`"CONTENT_TYPE_NOT_SUPPORTED"`},
		"REST, text that is no JSON": {"/message:send", "text/plain", "{", 400, "application/json",
			`"CONTENT_TYPE_NOT_SUPPORTED"`},
		"REST, not found": {"/tasks/none:cancel", "application/json", `{}`, 404, "application/json",
			`"TASK_NOT_FOUND"`},
		"REST, without body": {"/tasks/none:cancel", "text/plain", ``, 404, "application/json", `"TASK_NOT_FOUND"`},
		"0.3": {"", "text/plain",
			`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"gw-aaaaaaaaaaaaaaaaaaaaaaaaaa"}}`, 200,
			"application/json", `-32001`},
		"aip": {"", "text/plain", message("rpc", "get", "none", ""), 200, "application/json", `-32001`},
	} {
		t.Run(name, func(t *testing.T) {
			field := ""
			if c.media != "" {
				field = "Content-Type"
			}
			res, body := g.request("POST", "/agents/one"+c.path, field, c.media, c.body)
			got := []any{res.StatusCode, res.Header.Get("Content-Type")}
			if d := gocmp.Diff([]any{c.status, c.want}, got); d != "" || !strings.Contains(body, c.says) {
				t.Errorf("%s\n%s", body, d)
			}
		})
	}
}
