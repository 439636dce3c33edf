// SPDX-License-Identifier: Apache-2.0

package legacy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/task/dialect"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// requests has one request for each method of v0.1.
var requests = [][]byte{
	a2atest.Request("tasks/send",
		`{"id":"t1","sessionId":"s1","message":{"role":"user","parts":[{"type":"text","text":"a\nb","metadata":{"m":1}},`+
			`{"type":"file","file":{"name":"n","mimeType":"text/plain","bytes":"eA=="}},{"type":"data","data":{"d":1}}]},`+
			`"pushNotification":{"url":"https://x/","token":"k","authentication":{"schemes":["bearer"],"credentials":"c"}},`+
			`"historyLength":3,"metadata":{}}`),
	a2atest.Request("tasks/sendSubscribe",
		`{"id":"t1","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}`),
	a2atest.Request("tasks/get", `{"id":"t1","historyLength":10}`),
	a2atest.Request("tasks/cancel", `{"id":"t1"}`),
	a2atest.Request("tasks/resubscribe", `{"id":"t1"}`),
	a2atest.Request("tasks/pushNotification/set",
		`{"id":"t1","pushNotificationConfig":{"url":"https://x/","token":"k"}}`),
	a2atest.Request("tasks/pushNotification/get", `{"id":"t1"}`),
}

func TestServer(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		t.Run(fmt.Sprint(confirm),
			func(t *testing.T) { translatetest.Server(t, a2a.LegacyServer(confirm), requests...) })
	}
}

func TestDecode(t *testing.T) {
	message := func(c task.Command, items ...task.DataItem) task.Message {
		return task.Message{SenderRole: task.Leader, Command: c, TaskID: "t1", DataItems: items}
	}
	full := message(task.Start, task.DataItem{Kind: task.TextItem, Text: "a\nb", Metadata: []byte(`{"m":1}`)},
		task.DataItem{Kind: task.FileItem, Name: "n", MIMEType: "text/plain", Bytes: "eA=="},
		task.DataItem{Kind: task.DataKind, Data: []byte(`{"d":1}`)})
	full.SessionID, full.Extensions = "s1", []byte(`{"a2a":{"metadata":{}}}`)
	want := []translate.Call{
		{Method: "tasks/send", Call: task.Call{Message: full}, Policy: dialect.Policy{StartOrContinue: true, Begun: true},
			Blocking: true, History: 3,
			Webhook: &task.Webhook{ID: "default", TaskID: "t1", URL: "https://x/", Token: "k", Scheme: "bearer",
				Credentials: "c", Dialect: "a2a/legacy"}},
		{Method: "tasks/sendSubscribe", Call: task.Call{Message: message(task.Start, task.Text("hi"))},
			Policy: dialect.Policy{StartOrContinue: true, Begun: true, Snapshot: true}, Stream: true},
		{Method: "tasks/get", Call: task.Call{Message: message(task.Get)}, History: 10},
		{Method: "tasks/cancel", Call: task.Call{Message: message(task.Cancel)},
			Policy: dialect.Policy{Strict: true, Finished: true}},
		{Method: "tasks/resubscribe", Call: task.Call{Message: message(task.ReStream)},
			Policy: dialect.Policy{Snapshot: true}, Stream: true},
		{Method: "tasks/pushNotification/set", Op: translate.SetWebhook, Call: task.Call{Message: message(task.Get)},
			Webhook: &task.Webhook{ID: "default", TaskID: "t1", URL: "https://x/", Token: "k", Dialect: "a2a/legacy"}},
		{Method: "tasks/pushNotification/get", Op: translate.GetWebhooks, Call: task.Call{Message: message(task.Get)},
			Webhook: &task.Webhook{ID: "default", TaskID: "t1", Dialect: "a2a/legacy"}},
	}
	for i, body := range requests {
		got, err := a2atest.Decode(t, a2a.LegacyServer(false), body)
		if diff := cmp.Diff(want[i], got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", body, err, diff)
		}
	}
	// Early callers write null for missing values.
	got, err := a2atest.Decode(t, a2a.LegacyServer(true),
		a2atest.Request("tasks/send",
			`{"id":"t1","sessionId":null,"historyLength":null,"pushNotification":null,"metadata":null,`+
				`"acceptedOutputModes":null,`+
				`"message":{"role":"user","metadata":null,"parts":[{"type":"text","text":"hi","metadata":null},{"text":"no type"}`+
				`,{"kind":"text","text":"a later word"}]}}`))
	items := []task.DataItem{task.Text("hi"), task.Text("no type"), task.Text("a later word")}
	if diff := cmp.Diff(translate.Call{Method: "tasks/send", Blocking: true,
		Call: task.Call{Message: message(task.Start, items...)}, Policy: dialect.Policy{StartOrContinue: true, Begun: true}},
		got); diff != "" || err != nil {
		t.Errorf("nulls: %v (-want +got):\n%s", err, diff)
	}
}

// A server of v0.1 reads the requests of a client of v0.1 as they were meant.
func TestTurnArrives(t *testing.T) {
	items := []task.DataItem{task.Text("a"), {Kind: task.FileItem, Name: "n", Bytes: "eA=="},
		{Kind: task.DataKind, Data: []byte(`{"d":[]}`), Metadata: []byte(`{"m":1}`)}}
	turn := &agent.Turn{Ref: agent.Ref{Task: "t1", Session: "s1"}, Message: task.Message{DataItems: items},
		Webhook: &task.Webhook{URL: "https://x/", Token: "k"}}
	hook := &task.Webhook{ID: "default", TaskID: "t1", URL: "https://x/", Token: "k", Dialect: "a2a/legacy"}
	for _, stream := range []bool{false, true} {
		call, err := a2atest.Decode(t, a2a.LegacyServer(false), a2a.Legacy().AppendTurn(nil, turn, stream))
		want := task.Message{SenderRole: task.Leader, Command: task.Start, TaskID: "t1", SessionID: "s1",
			DataItems: items}
		if diff := cmp.Diff(want, call.Message) + cmp.Diff(hook, call.Webhook); diff != "" || err != nil ||
			call.Stream != stream {
			t.Errorf("stream %t: %v (-want +got):\n%s", stream, err, diff)
		}
	}
	if h := a2a.Legacy().Header(); len(h) > 0 {
		t.Errorf("v0.1 has no header, and is sent %v", h)
	}
}

func TestRefuses(t *testing.T) {
	send := func(message string) []byte { return a2atest.Request("tasks/send", `{"id":"t","message":`+message+`}`) }
	config := func(config string) []byte {
		return a2atest.Request("tasks/pushNotification/set", `{"id":"t","pushNotificationConfig":`+config+`}`)
	}
	for _, tc := range []struct {
		name string
		body []byte
		want string
	}{
		{"method", a2atest.Request("message/send", `{}`),
			"method-not-found : the methods of A2A v0.1 are tasks/send, sendSubscribe, get, cancel, resubscribe and " +
				"pushNotification/set and get"},
		{"params", a2atest.Request("tasks/get", `[]`), "invalid-params params: params must be an object"},
		{"id", a2atest.Request("tasks/get", `{}`),
			"invalid-params params.id: id is missing; it must be a string of 1 to 256 bytes"},
		{"id's type", a2atest.Request("tasks/get", `{"id":1}`), "invalid-params params.id: id must be a string"},
		{"a long id", a2atest.Request("tasks/get", `{"id":"`+strings.Repeat("x", 257)+`"}`),
			"invalid-params params.id: id must be at most 256 bytes long and have no control characters"},
		{"history", a2atest.Request("tasks/get", `{"id":"t","historyLength":-1}`),
			"invalid-params params.historyLength: historyLength must be an integer that is not negative"},
		{"message", a2atest.Request("tasks/send", `{"id":"t"}`),
			"invalid-params params.message: message is missing; it must be an object"},
		{"role", send(`{"role":"agent","parts":[]}`), `invalid-params params.message.role: role must be "user"`},
		{"parts", send(`{"role":"user"}`), "invalid-params params.message.parts: parts must be an array"},
		{"a part", send(`{"parts":[{"type":"text","text":"x"},7]}`),
			"invalid-params params.message.parts[1]: a part must be an object"},
		{"a part's type", send(`{"parts":[{"type":"video","text":"x"}]}`),
			"invalid-params params.message.parts[0]: a part must have a text, a file with either bytes or uri, or data, and " +
				"say so"},
		{"metadata", send(`{"parts":[{"type":"text","text":"x","metadata":[]}]}`),
			"invalid-params params.message.parts[0].metadata: metadata must be an object"},
		{"base64", send(`{"parts":[{"type":"file","file":{"bytes":"e_=="}}]}`),
			"invalid-params params.message.parts[0].file.bytes: bytes must be standard base64 with padding"},
		{"too many parts", send(`{"parts":[` + strings.TrimSuffix(strings.Repeat(`{"text":""},`, 1001), ",") + `]}`),
			"invalid-params params.message.parts: parts must have at most 1000 entries"},
		{"config", config(`1`),
			"invalid-params params.pushNotificationConfig: pushNotificationConfig must be an object with the member url"},
		{"url",
			config(`{}`),
			"invalid-params params.pushNotificationConfig.url: url is missing; it must be a string of 1 to 2048 bytes"},
		{"token", config(`{"url":"u","token":"a\nb"}`),
			"invalid-params params.pushNotificationConfig.token: token must be at most 4096 bytes long and have no control " +
				"characters"},
		{"schemes", config(`{"url":"u","authentication":{"schemes":"x"}}`),
			"invalid-params params.pushNotificationConfig.authentication.schemes: schemes must be an array of strings"},
		{"a scheme", config(`{"url":"u","authentication":{"schemes":["a b"]}}`),
			"invalid-params params.pushNotificationConfig.authentication.schemes[0]: a scheme must be one word, such as Bearer"},
		{"authentication", config(`{"url":"u","authentication":1}`),
			"invalid-params params.pushNotificationConfig.authentication: authentication must be an object"},
	} {
		t.Run(tc.name, func(t *testing.T) { a2atest.Refuses(t, a2a.LegacyServer(false), tc.body, tc.want) })
	}
}

func TestWire(t *testing.T) {
	a2atest.Golden(t, "testdata/server.txtar", a2atest.Story(a2a.LegacyServer(false)))
	a2atest.Golden(t, "testdata/server_confirm.txtar", a2atest.Story(a2a.LegacyServer(true)))
}

func TestWebhooks(t *testing.T) {
	s := a2a.LegacyServer(false)
	hooks := []task.Webhook{{ID: "default", TaskID: "t1", URL: "https://x/", Token: "k", Scheme: "bearer"}}
	for _, tc := range []struct {
		op    translate.Op
		hooks []task.Webhook
		want  string
	}{
		{translate.SetWebhook, hooks,
			`{"jsonrpc":"2.0","id":1,"result":{"id":"t1","pushNotificationConfig":{"url":"https://x/","token":"k",` +
				`"authentication":{"schemes":["bearer"]}}}}`},
		{translate.GetWebhooks, hooks,
			`{"jsonrpc":"2.0","id":1,"result":{"id":"t1","pushNotificationConfig":{"url":"https://x/","token":"k",` +
				`"authentication":{"schemes":["bearer"]}}}}`},
		{translate.GetWebhooks, nil,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found","data":{"details":"this task has no ` +
				`push notification configuration"}}}`},
	} {
		if diff := cmp.Diff(tc.want,
			string(s.AppendWebhooks(nil, jsonrpc.ID("1"), &translate.Call{Op: tc.op}, tc.hooks))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// An artifact's index is the place of its product in the task, wherever a stream begins.
func TestIndex(t *testing.T) {
	now := &task.Task{ID: "t", Status: task.Status{State: task.Working}, Products: []task.Product{{ID: "a"}, {ID: "b"}}}
	chunk := func(id string) *task.Event { return &task.Event{Chunk: &task.Chunk{Product: task.Product{ID: id}}} }
	index := func(e translate.Encoder, id string) string {
		_, rest, _ := strings.Cut(string(e.Event(nil, chunk(id)).Data), `"index":`)
		return rest[:1]
	}
	s := a2a.LegacyServer(false)
	known := s.NewStream(nil, new(translate.Call), now)
	snapshot := s.NewStream(nil, new(translate.Call), &task.Task{ID: "t"})
	snapshot.Snapshot(nil, now)
	started := s.NewStream(nil, new(translate.Call), &task.Task{ID: "t"})
	started.Event(nil, &task.Event{Task: now})
	for name, e := range map[string]translate.Encoder{"known": known, "snapshot": snapshot, "started": started} {
		if got := index(e, "b") + index(e, "c") + index(e, "a") + index(e, "c"); got != "1202" {
			t.Errorf("%s: the indexes are %s, want 1202", name, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	a2atest.FuzzDecode(f, a2a.LegacyServer(false), requests...)
}
