// SPDX-License-Identifier: Apache-2.0

package v03_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/task/dialect"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// requests has at least one request for each method of 0.3.
var requests = [][]byte{
	a2atest.Request("message/send",
		`{"message":{"kind":"message","messageId":"m1","role":"user","contextId":"c1","referenceTaskIds":["t0"],`+
			`"parts":[{"kind":"text","text":"a\nb","metadata":{"m":1}},{"kind":"file","file":{"name":"n","uri":"https://f/"}},`+
			`{"kind":"data","data":{"d":1}}]},`+
			`"configuration":{"acceptedOutputModes":["text/plain"],"blocking":false,"historyLength":2,`+
			`"pushNotificationConfig":{"id":"w1","url":"https://x/","token":"k","authentication":{"schemes":["Bearer",`+
			`"Basic"],"credentials":"c"}}},"metadata":{}}`),
	a2atest.Request("message/send",
		`{"message":{"messageId":"m1","role":"user","taskId":"t1","parts":[{"kind":"text","text":"hi"}]},`+
			`"configuration":{"blocking":true,"pushNotificationConfig":{"url":"https://x/"}}}`),
	a2atest.Request("message/stream",
		`{"message":{"messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}]}}`),
	a2atest.Request("message/stream",
		`{"message":{"messageId":"m1","role":"user","taskId":"t1","parts":[{"kind":"text","text":"hi"}]}}`),
	a2atest.Request("tasks/get", `{"id":"t1"}`),
	a2atest.Request("tasks/get", `{"id":"t1","historyLength":0}`),
	a2atest.Request("tasks/cancel", `{"id":"t1"}`),
	a2atest.Request("tasks/resubscribe", `{"id":"t1"}`),
	a2atest.Request("tasks/pushNotificationConfig/set",
		`{"taskId":"t1","pushNotificationConfig":{"url":"https://x/","token":"k"}}`),
	a2atest.Request("tasks/pushNotificationConfig/get", `{"id":"t1","pushNotificationConfigId":"w1"}`),
	a2atest.Request("tasks/pushNotificationConfig/get", `{"id":"t1"}`),
	a2atest.Request("tasks/pushNotificationConfig/list", `{"id":"t1"}`),
	a2atest.Request("tasks/pushNotificationConfig/delete", `{"id":"t1","pushNotificationConfigId":"w1"}`),
	a2atest.Request("agent/getAuthenticatedExtendedCard", `{}`),
}

func TestServer(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		t.Run(fmt.Sprint(confirm), func(t *testing.T) { translatetest.Server(t, a2a.V03Server(confirm), requests...) })
	}
}

func TestDecode(t *testing.T) {
	message := func(c task.Command, taskID string, items ...task.DataItem) task.Message {
		m := task.Message{SenderRole: task.Leader, Command: c, TaskID: taskID, DataItems: items}
		if items != nil {
			m.ID = "m1"
		}
		return m
	}
	hook := func(id string) *task.Webhook { return &task.Webhook{ID: id, TaskID: "t1", Dialect: "a2a/0.3"} }
	full := message(task.Start, "", task.DataItem{Kind: task.TextItem, Text: "a\nb", Metadata: []byte(`{"m":1}`)},
		task.DataItem{Kind: task.FileItem, Name: "n", URI: "https://f/"},
		task.DataItem{Kind: task.DataKind, Data: []byte(`{"d":1}`)})
	full.SessionID = "c1"
	full.References = []string{"t0"}
	full.Extensions = []byte(`{"a2a":{"metadata":{},"configuration":{"acceptedOutputModes":["text/plain"]}}}`)
	answer := message(task.Continue, "t1", task.Text("hi"))
	auto := dialect.Policy{AutoComplete: true, Refusable: true, Begun: true}
	get := task.Call{Message: message(task.Get, "t1")}
	want := []translate.Call{
		{Method: "message/send", Call: task.Call{Message: full, Terms: task.Terms{Response: task.NoWait}}, Policy: auto,
			History: 2,
			Webhook: &task.Webhook{ID: "w1", URL: "https://x/", Token: "k", Scheme: "Bearer", Credentials: "c",
				Dialect: "a2a/0.3"}},
		{Method: "message/send", Call: task.Call{Message: answer},
			Policy: dialect.Policy{Strict: true, SameSession: true}, Blocking: true,
			Webhook: &task.Webhook{TaskID: "t1", URL: "https://x/", Dialect: "a2a/0.3"}},
		{Method: "message/stream", Call: task.Call{Message: message(task.Start, "", task.Text("hi"))}, Policy: auto,
			Stream: true},
		{Method: "message/stream", Call: task.Call{Message: answer},
			Policy: dialect.Policy{Strict: true, SameSession: true, Snapshot: true}, Stream: true},
		{Method: "tasks/get", Call: get, History: -1},
		{Method: "tasks/get", Call: get},
		{Method: "tasks/cancel", Call: task.Call{Message: message(task.Cancel, "t1")},
			Policy: dialect.Policy{Strict: true}},
		{Method: "tasks/resubscribe", Call: task.Call{Message: message(task.ReStream, "t1")},
			Policy: dialect.Policy{Snapshot: true}, Stream: true},
		{Method: "tasks/pushNotificationConfig/set", Op: translate.SetWebhook, Call: get, TaskExists: true,
			Webhook: &task.Webhook{TaskID: "t1", URL: "https://x/", Token: "k", Dialect: "a2a/0.3"}},
		{Method: "tasks/pushNotificationConfig/get", Op: translate.GetWebhooks, Call: get, TaskExists: true,
			Webhook: hook("w1")},
		{Method: "tasks/pushNotificationConfig/get", Op: translate.GetWebhooks, Call: get, TaskExists: true,
			Webhook: hook("")},
		{Method: "tasks/pushNotificationConfig/list", Op: translate.GetWebhooks, Call: get, TaskExists: true,
			Webhook: hook("")},
		{Method: "tasks/pushNotificationConfig/delete", Op: translate.DeleteWebhooks, Call: get, TaskExists: true,
			Webhook: hook("w1")},
		{Method: "agent/getAuthenticatedExtendedCard", Op: translate.ExtendedCard,
			Call: task.Call{Message: message(task.Get, "")}},
	}
	for i, body := range requests {
		for _, confirm := range []bool{false, true} {
			want := want[i]
			want.AutoComplete = want.AutoComplete && !confirm
			got, err := a2atest.Decode(t, a2a.V03Server(confirm), body)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", body, err, diff)
			}
		}
	}
	call, err := a2atest.Decode(t, a2a.V03Server(false),
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}`))
	if diff := cmp.Diff(want[len(want)-1], call); diff != "" || err != nil {
		t.Errorf("without params: %v (-want +got):\n%s", err, diff)
	}
}

func TestRefuses(t *testing.T) {
	send := func(message string) []byte { return a2atest.Request("message/send", `{"message":`+message+`}`) }
	configuration := func(c string) []byte {
		return a2atest.Request("message/send", `{"message":{"messageId":"m","role":"user","parts":[]},"configuration":`+
			c+`}`)
	}
	for _, tc := range []struct {
		name string
		body []byte
		want string
	}{
		{"method", a2atest.Request("tasks/send", `{}`),
			"method-not-found : the methods of A2A 0.3 are message/send and stream, tasks/get, cancel and resubscribe, and " +
				"tasks/pushNotificationConfig/set, get, list and delete"},
		{"params", []byte(`{"jsonrpc":"2.0","id":1,"method":"message/send"}`),
			"invalid-params params: params is missing; it must be an object"},
		{"message", a2atest.Request("message/send", `{}`),
			"invalid-params params.message: message is missing; it must be an object"},
		{"kind", send(`{"kind":"task"}`), `invalid-params params.message.kind: kind must be "message"`},
		{"messageId", send(`{"role":"user","parts":[]}`),
			"invalid-params params.message.messageId: messageId is missing; it must be a string of 1 to 256 bytes"},
		{"no role", send(`{"messageId":"m","parts":[]}`),
			`invalid-params params.message.parts: parts must have at least one entry`}, // as in all versions
		{"role", send(`{"messageId":"m","role":"agent","parts":[]}`),
			`invalid-params params.message.role: role must be "user"`},
		{"parts", send(`{"messageId":"m","role":"user"}`),
			"invalid-params params.message.parts: parts must be an array"},
		{"no parts", send(`{"messageId":"m","role":"user","parts":[]}`),
			"invalid-params params.message.parts: parts must have at least one entry"},
		{"a part", send(`{"messageId":"m","role":"user","parts":[{}]}`),
			"invalid-params params.message.parts[0]: a part must have a text, a file with either bytes or uri, or data, and " +
				"say so"},
		{"taskId", send(`{"messageId":"m","role":"user","taskId":7,"parts":[]}`),
			"invalid-params params.message.taskId: taskId must be a string"},
		{"configuration", configuration(`[]`), "invalid-params params.configuration: configuration must be an object"},
		{"blocking", configuration(`{"blocking":"no"}`),
			"invalid-params params.configuration.blocking: blocking must be true or false"},
		{"history", configuration(`{"historyLength":1.5}`),
			"invalid-params params.configuration.historyLength: historyLength must be an integer that is not negative"},
		{"webhook", configuration(`{"pushNotificationConfig":{}}`),
			"invalid-params params.configuration.pushNotificationConfig.url: url is missing; it must be a string of 1 to 2048 " +
				"bytes"},
		{"a webhook's task", a2atest.Request("tasks/pushNotificationConfig/set",
			`{"pushNotificationConfig":{"url":"u"}}`),
			"invalid-params params.taskId: taskId is missing; it must be a string of 1 to 256 bytes"},
		{"a webhook's id", a2atest.Request("tasks/pushNotificationConfig/delete", `{"id":"t"}`),
			"invalid-params params.pushNotificationConfigId: pushNotificationConfigId is missing; it must be a string of 1 to " +
				"256 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) { a2atest.Refuses(t, a2a.V03Server(false), tc.body, tc.want) })
	}
}

func TestWire(t *testing.T) {
	a2atest.Golden(t, "testdata/server.txtar", a2atest.Story(a2a.V03Server(false)))
	a2atest.Golden(t, "testdata/server_confirm.txtar", a2atest.Story(a2a.V03Server(true)))
}

func TestWebhooks(t *testing.T) {
	s := a2a.V03Server(false)
	hooks := []task.Webhook{{ID: "w1", TaskID: "t1", URL: "https://x/", Token: "k", Scheme: "Bearer", Credentials: "c"},
		{ID: "w2", TaskID: "t1", URL: "https://y/"}}
	const first = `{"taskId":"t1","pushNotificationConfig":{"url":"https://x/","id":"w1","token":"k",` +
		`"authentication":{"schemes":["Bearer"],"credentials":"c"}}}`
	for _, tc := range []struct {
		method string
		op     translate.Op
		hooks  []task.Webhook
		want   string
	}{
		{"tasks/pushNotificationConfig/set", translate.SetWebhook, hooks[:1], `"result":` + first},
		{"tasks/pushNotificationConfig/get", translate.GetWebhooks, hooks, `"result":` + first},
		{"tasks/pushNotificationConfig/get", translate.GetWebhooks, nil,
			`"error":{"code":-32001,"message":"Task not found","data":{"details":"this task has no push notification ` +
				`configuration"}}`},
		{"tasks/pushNotificationConfig/list", translate.GetWebhooks, hooks, `"result":[` + first +
			`,{"taskId":"t1","pushNotificationConfig":{"url":"https://y/","id":"w2"}}]`},
		{"tasks/pushNotificationConfig/list", translate.GetWebhooks, nil, `"result":[]`},
		{"tasks/pushNotificationConfig/delete", translate.DeleteWebhooks, nil, `"result":null`},
	} {
		got := string(s.AppendWebhooks(nil, jsonrpc.ID("1"), &translate.Call{Op: tc.op, Method: tc.method}, tc.hooks))
		if diff := cmp.Diff(`{"jsonrpc":"2.0","id":1,`+tc.want+`}`, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.method, diff)
		}
	}
}

// A server of 0.3 reads the requests of a client of 0.3 as they were meant.
func TestTurnArrives(t *testing.T) {
	items := []task.DataItem{task.Text("a"), {Kind: task.FileItem, Name: "n", Bytes: "eA=="},
		{Kind: task.DataKind, Data: []byte(`{"d":[]}`), Metadata: []byte(`{"m":1}`)}}
	for _, stream := range []bool{false, true} {
		for _, from := range []task.State{task.None, task.AwaitingInput, task.AwaitingCompletion} {
			turn := &agent.Turn{Ref: agent.Ref{Task: "t", Session: "c"}, From: from,
				Message: task.Message{ID: "m", DataItems: items},
				Webhook: &task.Webhook{ID: "w", URL: "https://x/", Token: "k", Scheme: "Bearer", Credentials: "s"}}
			call, err := a2atest.Decode(t, a2a.V03Server(false), a2a.V03().AppendTurn(nil, turn, stream))
			if err != nil {
				t.Fatal(err)
			}
			want := task.Message{ID: "m", SenderRole: task.Leader, Command: task.Start, DataItems: items,
				SessionID: "c"}
			switch from {
			case task.AwaitingInput:
				want.Command, want.TaskID = task.Continue, "t"
			case task.AwaitingCompletion:
				want.References = []string{"t"}
			}
			hook := *turn.Webhook
			hook.Dialect, hook.TaskID = "a2a/0.3", want.TaskID
			if diff := cmp.Diff(want, call.Message) + cmp.Diff(&hook, call.Webhook); diff != "" ||
				call.Stream != stream {
				t.Errorf("from %q, stream %t (-want +got):\n%s", from, stream, diff)
			}
		}
	}
}

func FuzzDecode(f *testing.F) { a2atest.FuzzDecode(f, a2a.V03Server(true), requests...) }

// TestMessageToEnded: the answer to a message to an ended task has the code of agents on the SDKs of 0.3.
func TestMessageToEnded(t *testing.T) {
	for _, s := range []translate.Server{a2a.V03Server(false), a2a.V03RESTServer(false)} {
		for state, want := range map[task.State]int64{task.Completed: -32602, task.Failed: -32602, task.Working: -32004} {
			err := task.Errorf(task.UnsupportedOperation, "no").WithCause(&task.StateError{State: state})
			code := gjson.GetBytes(s.AppendError(nil, nil, err), "error.code").Int()
			if s.Name() != "a2a/0.3" {
				code = gjson.GetBytes(s.AppendError(nil, nil, err), "code").Int()
			}
			if code != want {
				t.Errorf("%s, %s: the code is %d, want %d", s.Name(), state, code, want)
			}
		}
	}
}
