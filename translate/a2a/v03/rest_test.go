// SPDX-License-Identifier: Apache-2.0

package v03_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// rest decodes a request to a path under the mount point.
func rest(method, path, body string) (translate.Call, error) {
	s := a2a.V03RESTServer(false)
	r, ok := s.Route(method, path)
	if !ok || r.Allow != "" {
		return translate.Call{}, task.Errorf(task.MethodNotFound, "no route, allow %q", r.Allow)
	}
	req := &translate.Request{HTTP: method, PathParams: r.PathParams}
	req.Method = r.Method
	if body != "" {
		params, bad := jsonrpc.ParseValue([]byte(body), jsonrpc.Limits{})
		if bad != nil {
			return translate.Call{}, bad
		}
		req.Params = params
	}
	return s.Decode(req)
}

func TestRESTRoutes(t *testing.T) {
	s := a2a.V03RESTServer(false)
	for path, want := range map[string]string{
		"POST v1/message:send": "SendMessage", "POST v1/message:stream": "SendStreamingMessage",
		"GET v1/message:send": "allow POST",
		"GET v1/tasks/t1":     "GetTask", "GET v1/tasks": "ListTasks", "POST v1/tasks/t1:cancel": "CancelTask",
		"GET v1/card":                "GetExtendedAgentCard",
		"POST v1/tasks/t1:subscribe": "SubscribeToTask", "GET v1/tasks/t1:subscribe": "SubscribeToTask",
		"POST v1/tasks/t1/pushNotificationConfigs":     "CreateTaskPushNotificationConfig",
		"GET v1/tasks/t1/pushNotificationConfigs/":     "ListTaskPushNotificationConfigs",
		"GET v1/tasks/t1/pushNotificationConfigs/c":    "GetTaskPushNotificationConfig",
		"DELETE v1/tasks/t1/pushNotificationConfigs/c": "DeleteTaskPushNotificationConfig",
		"POST message:send":                            "none", "GET v1/extendedAgentCard": "none", "POST v1": "none",
		"POST ":         "none",
		"POST v1/other": "none",
	} {
		method, path, _ := strings.Cut(path, " ")
		r, ok := s.Route(method, path)
		got := r.Method
		switch {
		case !ok:
			got = "none"
		case r.Allow != "":
			got = "allow " + r.Allow
		}
		if got != want || ok && !r.Unenveloped {
			t.Errorf("%s %s is %s, want %s", method, path, got, want)
		}
	}
}

func TestRESTDecode(t *testing.T) {
	start := func(items ...task.DataItem) translate.Call {
		var c translate.Call
		c.Message = task.Message{ID: "m1", SenderRole: task.Leader, Command: task.Start, DataItems: items}
		c.AutoComplete, c.Refusable, c.Begun, c.Blocking = true, true, true, true
		return c
	}
	about := func(command task.Command, change func(*translate.Call)) translate.Call {
		var c translate.Call
		c.Message = task.Message{SenderRole: task.Leader, Command: command, TaskID: "t1"}
		c.History = -1
		if change != nil {
			change(&c)
		}
		return c
	}
	hook := func(id string) *task.Webhook {
		return &task.Webhook{ID: id, TaskID: "t1", URL: "https://x/", Token: "k", Scheme: "Bearer", Credentials: "c",
			Dialect: "a2a/0.3"}
	}
	set := func(w *task.Webhook) translate.Call {
		return about(task.Get, func(c *translate.Call) {
			c.Op, c.Webhook, c.TaskExists = translate.SetWebhook, w,
				true
		})
	}
	const config = `{"url":"https://x/","token":"k","authentication":{"schemes":["Bearer"],"credentials":"c"}`
	file := task.DataItem{Kind: task.FileItem, Name: "n", MIMEType: "text/plain", Bytes: "aGVsbG8="}
	for name, tt := range map[string]struct {
		method, path, body string
		want               translate.Call
	}{
		"the schema's words": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"}]}}`, start(task.Text("hi"))},
		"JSON-RPC's words": {"POST", "v1/message:send",
			`{"message":{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}]}}`,
			start(task.Text("hi"))},
		"a file, encoded twice": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","content":[{"file":{"fileWithBytes":"YUdWc2JHOD0=","mimeType":"text/plain",` +
				`"name":"n"}}]}}`,
			start(file)},
		"a file, encoded once": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","content":[{"file":{"fileWithBytes":"aGVsbG8=","mimeType":"text/plain","name":"n"}}` +
				`]}}`,
			start(file)},
		"a file of JSON-RPC": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","parts":[{"kind":"file","file":{"bytes":"aGVsbG8=","mimeType":"text/plain",` +
				`"name":"n"}}]}}`,
			start(file)},
		"a file's place": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","content":[{"file":{"fileWithUri":"https://f/"}}]}}`,
			start(task.DataItem{Kind: task.FileItem, URI: "https://f/"})},
		"data": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","content":[{"data":{"data":{"a":1}},"metadata":{"k":1}}]}}`,
			start(task.DataItem{Kind: task.DataKind, Data: []byte(`{"a":1}`), Metadata: []byte(`{"k":1}`)})},
		"data of JSON-RPC": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","parts":[{"kind":"data","data":{"data":{"a":1}}}]}}`,
			start(task.DataItem{Kind: task.DataKind, Data: []byte(`{"data":{"a":1}}`)})},
		"not blocking": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","content":[{"text":"hi"}]},"configuration":{"historyLength":2}}`,
			func() translate.Call {
				c := start(task.Text("hi"))
				c.Blocking, c.Terms.Response, c.History = false, task.NoWait, 2
				return c
			}()},
		"blocking, with a webhook": {"POST", "v1/message:send",
			`{"message":{"messageId":"m1","content":[{"text":"hi"}]},"configuration":{"blocking":true,"pushNotification":` +
				config + `,"id":"w"}}}`, func() translate.Call {
				c := start(task.Text("hi"))
				c.Webhook = hook("w")
				c.Webhook.TaskID = ""
				return c
			}()},
		"a stream that continues a task": {"POST", "v1/message:stream",
			`{"message":{"messageId":"m1","taskId":"t1","contextId":"c1","role":"ROLE_USER","content":[{"text":"hi"}]}}`,
			func() translate.Call {
				c := start(task.Text("hi"))
				c.Message.Command, c.Message.TaskID, c.Message.SessionID = task.Continue, "t1", "c1"
				c.AutoComplete, c.Refusable, c.Begun, c.Blocking = false, false, false, false
				c.Strict, c.Stream, c.Snapshot = true, true, true
				c.SameSession = true
				return c
			}()},
		"by the names of the schema": {"POST", "v1/message:stream",
			`{"message":{"message_id":"m1","task_id":"t1","context_id":"c1","role":"ROLE_USER","content":[{"file":` +
				`{"file_with_uri":"u","mime_type":"a/b"}}]},"configuration":{"history_length":2,"push_notification_config":null}}`,
			func() translate.Call {
				c := start(task.DataItem{Kind: task.FileItem, MIMEType: "a/b", URI: "u"})
				c.Message.Command, c.Message.TaskID, c.Message.SessionID = task.Continue, "t1", "c1"
				c.AutoComplete, c.Refusable, c.Begun, c.Blocking = false, false, false, false
				c.Strict, c.Stream, c.Snapshot = true, true, true
				c.SameSession, c.History, c.Terms.Response = true, 2, task.NoWait
				return c
			}()},
		"get": {"GET", "v1/tasks/t1", "", about(task.Get, nil)},
		"cancel": {"POST", "v1/tasks/t1:cancel", `{}`,
			about(task.Cancel, func(c *translate.Call) { c.Strict = true })},
		"subscribe": {"GET", "v1/tasks/t1:subscribe", "",
			about(task.ReStream, func(c *translate.Call) { c.Stream, c.Snapshot = true, true })},
		"a webhook, by Go": {"POST", "v1/tasks/t1/pushNotificationConfigs",
			`{"parent":"tasks/t1","configId":"w","config":{"name":"tasks/t1/pushNotificationConfigs/w",` +
				`"pushNotificationConfig":` +
				config + `}}}`,
			set(hook("w"))},
		"a webhook, by JavaScript": {"POST", "v1/tasks/t1/pushNotificationConfigs",
			`{"name":"tasks/t1/pushNotificationConfigs/","pushNotificationConfig":` + config + `}}`, set(hook(""))},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := rest(tt.method, tt.path, tt.body)
			if d := cmp.Diff(tt.want, got); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

func TestRESTRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"message":{"messageId":"m1","content":[]}}`: "message.parts: parts " +
			"must have at least one entry",
		`{"message":{"messageId":"m1","content":[{}]}}`: "message.parts[0]: a " +
			"part must have a text, a file with its bytes or its place, or data",
		`{"message":{"messageId":"m1","content":[1]}}`: "message.parts[0]: a " +
			"part must have a text, a file with its bytes or its place, or data",
		`{"message":{"messageId":"m1","content":[{"file":{"fileWithBytes":"a!"}}]}}`: "message.parts[0].file: " +
			"the bytes of a file must be base64",
		`{"message":{"messageId":"m1","content":[{"text":"x","metadata":1}]}}`: "message.parts[0].metadat" +
			"a: metadata must be an object",
		`{"message":{"messageId":"m1","role":"agent","content":[{"text":"x"}]}}`: "message.role: role must " +
			"be ROLE_USER: callers are users here",
		`{"message":{"messageId":"m1","content":[{"text":"x"}]},"configuration":{"blocking":1}}`: "configuration.blocking: " +
			"blocking must be true or false",
		`{"message":{"messageId":"m1","content":[{"text":"x"}]},"configuration":{"pushNotification":{"token":"t"},` +
			`"blocking":true}}`: "configuration.pushNotification.url: url is missing; it must be a string of 1 to 2048 bytes",
	} {
		_, err := rest("POST", "v1/message:send", body)
		if e, ok := err.(*task.Error); !ok || e.Field+": "+e.Detail != want {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}

func TestRESTWrites(t *testing.T) {
	s := a2a.V03RESTServer(false)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	tk := &task.Task{
		ID: "t1", SessionID: "c1",
		Status: task.Status{State: task.Canceled, ChangedAt: at, DataItems: []task.DataItem{task.Text("x")}},
		Products: []task.Product{{ID: "p", DataItems: []task.DataItem{
			{Kind: task.FileItem, Name: "n", MIMEType: "text/plain", Bytes: "aGVsbG8="},
			{Kind: task.FileItem, URI: "https://f/"},
			{Kind: task.DataKind, Data: []byte(`{"a":1}`), Metadata: []byte(`{"k":1}`)}, {Kind: task.DataKind},
		}}},
		MessageHistory: []task.Message{{ID: "m1", SenderRole: task.Leader,
			DataItems: []task.DataItem{task.Text("hi")}}},
	}
	const status = `{"state":"TASK_STATE_CANCELLED","message":{"messageId":"t1-nwajuo-mjwaid1q","role":"ROLE_AGENT",` +
		`"content":[{"text":"x"}],"taskId":"t1","contextId":"c1"},"timestamp":"2026-01-02T03:04:05.006Z"}`
	const artifact = `{"artifactId":"p","parts":[{"file":{"fileWithBytes":"YUdWc2JHOD0=","mimeType":"text/plain",` +
		`"name":"n"}},{"file":{"fileWithUri":"https://f/"}},` +
		`{"data":{"data":{"a":1}},"metadata":{"k":1}},{"data":{"data":{}}}]}`
	const whole = `{"id":"t1","contextId":"c1","status":` + status + `,"artifacts":[` + artifact + `],` +
		`"history":[{"messageId":"m1","role":"ROLE_USER","content":[{"text":"hi"}],"taskId":"t1","contextId":"c1"}]}`
	get, send := &translate.Call{History: -1}, &translate.Call{History: -1}
	get.Message.Command, send.Message.Command = task.Get, task.Start
	one := &translate.Call{Op: translate.SetWebhook}
	hooks := []task.Webhook{{ID: "w", TaskID: "t1", URL: "https://x/", Token: "k", Scheme: "Bearer", Credentials: "c"}}
	const config = `{"name":"tasks/t1/pushNotificationConfigs/w","pushNotificationConfig":{"url":"https://x/","id":"w",` +
		`"token":"k","authentication":{"schemes":["Bearer"],"credentials":"c"}}}`
	stream := s.NewStream(nil, send, tk)
	for name, tt := range map[string]struct {
		got  []byte
		want string
	}{
		"get":        {s.AppendTask(nil, nil, get, tk), whole},
		"send":       {s.AppendTask(nil, nil, send, tk), `{"task":` + whole + `}`},
		"a snapshot": {stream.Snapshot(nil, tk).Data, `{"task":` + whole + `}`},
		"a status": {stream.Event(nil, &task.Event{Status: &tk.Status}).Data,
			`{"statusUpdate":{"taskId":"t1","contextId":"c1","status":` + status + `,"final":true}}`},
		"news": {stream.Event(nil, &task.Event{Status: &task.Status{State: task.Working}}).Data,
			`{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"},"final":false}}`},
		"a piece": {stream.Event(nil,
			&task.Event{Chunk: &task.Chunk{Product: tk.Products[0], Append: true, Last: true}}).Data,
			`{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":` + artifact +
				`,"append":true,"lastChunk":true}}`},
		"a webhook": {s.AppendWebhooks(nil, nil, one, hooks), config},
		"webhooks": {s.AppendWebhooks(nil, nil, &translate.Call{Op: translate.GetWebhooks}, hooks),
			`{"configs":[` + config + `],"nextPageToken":""}`},
		"none":           {s.AppendWebhooks(nil, nil, &translate.Call{Op: translate.DeleteWebhooks}, nil), `{}`},
		"a card":         {s.(translate.CardServer).AppendCard(nil, nil, []byte(`{"name":"n"}`)), `{"name":"n"}`},
		"a notification": {s.AppendNotification(nil, tk)[:12], `{"kind":"tas`},
		"an error": {s.AppendError([]byte("+"), nil,
			task.Errorf(task.TaskNotFound, "gone").WithData("taskId", "t1"))[1:],
			`{"code":-32001,"message":"Task not found","data":{"taskId":"t1","details":"gone"},"error":{"code":404,` +
				`"status":"NOT_FOUND","message":"gone",` +
				`"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND",` +
				`"domain":"a2a-protocol.org","metadata":{"taskId":"t1"}}]}}`},
	} {
		if d := cmp.Diff(tt.want, string(tt.got)); d != "" || name != "a notification" && !json.Valid(tt.got) {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for _, k := range task.Kinds() {
		err := task.Errorf(k, "x")
		if body := s.AppendError(nil, nil, err); !json.Valid(body) || s.(translate.Statuser).Status(err) < 400 {
			t.Errorf("%s: %d %s", k, s.(translate.Statuser).Status(err), body)
		}
	}
	if got := s.(translate.Statuser).Status(task.Errorf(task.TaskNotCancelable, "x")); got != 409 {
		t.Errorf("a refusal to cancel is %d", got)
	}
}

// FuzzRESTDecode: a message once read can be written in a history, and is read as the same.
func FuzzRESTDecode(f *testing.F) {
	for _, s := range []string{
		`{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hi"},{"file":{"fileWithBytes":"YUdWc2JHOD0=",` +
			`"name":"n"}},{"data":{"data":{"a":1}},"metadata":{"k":1}}]}}`,
		`{"message":{"messageId":"m","parts":[{"kind":"file","file":{"bytes":"aGVsbG8="}},{"kind":"data","data":{"data":1}}` +
			`]},"configuration":{"blocking":true,"pushNotification":{"url":"u"}}}`,
		`{"message":{"messageId":"m","content":[{"file":{"fileWithUri":"u","fileWithBytes":"QQ"}}]}}`, `1`,
		`{"config":{"pushNotificationConfig":{"url":"u"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, bad := jsonrpc.ParseValue(body, jsonrpc.Limits{}); bad != nil {
			return
		}
		for _, path := range []string{"v1/message:send", "v1/tasks/t/pushNotificationConfigs"} {
			call, err := rest("POST", path, string(body))
			if err != nil {
				if e, ok := err.(*task.Error); !ok || e.Detail == "" || e.Field == "" {
					t.Fatalf("%v", err)
				}
				continue
			}
			if call.Op != translate.Command {
				continue
			}
			tk := &task.Task{ID: "t", Status: task.Status{State: task.Working},
				MessageHistory: []task.Message{call.Message}}
			get := &translate.Call{History: -1}
			get.Message.Command = task.Get
			var shown struct{ History []json.RawMessage }
			if err := json.Unmarshal(a2a.V03RESTServer(false).AppendTask(nil, nil, get, tk), &shown); err != nil ||
				len(shown.History) != 1 {
				t.Fatalf("%v: %s", err, shown.History)
			}
			again, err := rest("POST", path, `{"message":`+string(shown.History[0])+`}`)
			if err != nil {
				t.Fatalf("%v, for %s", err, shown.History[0])
			}
			for i, it := range call.Message.DataItems {
				if got := again.Message.DataItems[i]; got.Kind != it.Kind || got.Text != it.Text ||
					got.Bytes != it.Bytes || got.URI != it.URI || got.Name != it.Name {
					t.Fatalf("%+v is not %+v, for %s", got, it, shown.History[0])
				}
			}
		}
	})
}
