// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/dialect"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// legacyRequest wraps the params of a request.
func legacyRequest(method, params string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
}

// legacyDecode reads a request, from memory that is used for something else right after.
func legacyDecode(t testing.TB, s translate.Server, body []byte) (translate.Call, error) {
	t.Helper()
	body = append([]byte(nil), body...)
	req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
	if bad != nil {
		t.Fatalf("%v, for\n%s", bad, body)
	}
	call, err := s.Decode(&translate.Request{Request: req, HTTP: "POST"})
	for i := range body {
		body[i] = '#'
	}
	return call, err
}

// legacyRequests has one request for each method of v0.1.
var legacyRequests = [][]byte{
	legacyRequest("tasks/send", `{"id":"t1","sessionId":"s1","message":{"role":"user","parts":[{"type":"text","text":"a\nb","metadata":{"m":1}},{"type":"file","file":{"name":"n","mimeType":"text/plain","bytes":"eA=="}},{"type":"data","data":{"d":1}}]},`+
		`"pushNotification":{"url":"https://x/","token":"k","authentication":{"schemes":["bearer"],"credentials":"c"}},"historyLength":3,"metadata":{}}`),
	legacyRequest("tasks/sendSubscribe", `{"id":"t1","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}`),
	legacyRequest("tasks/get", `{"id":"t1","historyLength":10}`),
	legacyRequest("tasks/cancel", `{"id":"t1"}`),
	legacyRequest("tasks/resubscribe", `{"id":"t1"}`),
	legacyRequest("tasks/pushNotification/set", `{"id":"t1","pushNotificationConfig":{"url":"https://x/","token":"k"}}`),
	legacyRequest("tasks/pushNotification/get", `{"id":"t1"}`),
}

func TestLegacyServer(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		t.Run(fmt.Sprint(confirm), func(t *testing.T) { translatetest.Server(t, a2a.LegacyServer(confirm), legacyRequests...) })
	}
}

func TestLegacyDecode(t *testing.T) {
	message := func(c task.Command, items ...task.DataItem) task.Message {
		return task.Message{SenderRole: task.Leader, Command: c, TaskID: "t1", DataItems: items}
	}
	full := message(task.Start, task.DataItem{Kind: task.TextItem, Text: "a\nb", Metadata: []byte(`{"m":1}`)},
		task.DataItem{Kind: task.FileItem, Name: "n", MIMEType: "text/plain", Bytes: "eA=="}, task.DataItem{Kind: task.DataKind, Data: []byte(`{"d":1}`)})
	full.SessionID, full.Extensions = "s1", []byte(`{"a2a":{"metadata":{}}}`)
	want := []translate.Call{
		{Method: "tasks/send", Call: task.Call{Message: full}, Policy: dialect.Policy{StartOrContinue: true}, Blocking: true, History: 3,
			Webhook: &task.Webhook{ID: "default", TaskID: "t1", URL: "https://x/", Token: "k", Scheme: "bearer", Credentials: "c", Dialect: "a2a/legacy"}},
		{Method: "tasks/sendSubscribe", Call: task.Call{Message: message(task.Start, task.Text("hi"))}, Policy: dialect.Policy{StartOrContinue: true, Snapshot: true}, Stream: true},
		{Method: "tasks/get", Call: task.Call{Message: message(task.Get)}, History: 10},
		{Method: "tasks/cancel", Call: task.Call{Message: message(task.Cancel)}, Policy: dialect.Policy{Strict: true, Finished: true}},
		{Method: "tasks/resubscribe", Call: task.Call{Message: message(task.ReStream)}, Policy: dialect.Policy{Snapshot: true}, Stream: true},
		{Method: "tasks/pushNotification/set", Op: translate.SetWebhook, Call: task.Call{Message: message(task.Get)},
			Webhook: &task.Webhook{ID: "default", TaskID: "t1", URL: "https://x/", Token: "k", Dialect: "a2a/legacy"}},
		{Method: "tasks/pushNotification/get", Op: translate.GetWebhooks, Call: task.Call{Message: message(task.Get)},
			Webhook: &task.Webhook{ID: "default", TaskID: "t1", Dialect: "a2a/legacy"}},
	}
	for i, body := range legacyRequests {
		got, err := legacyDecode(t, a2a.LegacyServer(false), body)
		if diff := cmp.Diff(want[i], got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", body, err, diff)
		}
	}
	// Early callers write null for what they have not.
	got, err := legacyDecode(t, a2a.LegacyServer(true), legacyRequest("tasks/send", `{"id":"t1","sessionId":null,"historyLength":null,"pushNotification":null,"metadata":null,"acceptedOutputModes":null,`+
		`"message":{"role":"user","metadata":null,"parts":[{"type":"text","text":"hi","metadata":null},{"text":"no type"},{"kind":"text","text":"a later word"}]}}`))
	items := []task.DataItem{task.Text("hi"), task.Text("no type"), task.Text("a later word")}
	if diff := cmp.Diff(translate.Call{Method: "tasks/send", Blocking: true, Call: task.Call{Message: message(task.Start, items...)}, Policy: dialect.Policy{StartOrContinue: true}}, got); diff != "" || err != nil {
		t.Errorf("nulls: %v (-want +got):\n%s", err, diff)
	}
}

// What a client of v0.1 sends, a server of v0.1 reads as it was meant.
func TestLegacyTurnArrives(t *testing.T) {
	items := []task.DataItem{task.Text("a"), {Kind: task.FileItem, Name: "n", Bytes: "eA=="}, {Kind: task.DataKind, Data: []byte(`{"d":[]}`), Metadata: []byte(`{"m":1}`)}}
	turn := &agent.Turn{Ref: agent.Ref{Task: "t1", Session: "s1"}, Message: task.Message{DataItems: items}, Webhook: &task.Webhook{URL: "https://x/", Token: "k"}}
	hook := &task.Webhook{ID: "default", TaskID: "t1", URL: "https://x/", Token: "k", Dialect: "a2a/legacy"}
	for _, stream := range []bool{false, true} {
		call, err := legacyDecode(t, a2a.LegacyServer(false), a2a.Legacy().AppendTurn(nil, turn, stream))
		want := task.Message{SenderRole: task.Leader, Command: task.Start, TaskID: "t1", SessionID: "s1", DataItems: items}
		if diff := cmp.Diff(want, call.Message) + cmp.Diff(hook, call.Webhook); diff != "" || err != nil || call.Stream != stream {
			t.Errorf("stream %t: %v (-want +got):\n%s", stream, err, diff)
		}
	}
	if h := a2a.Legacy().Header(); len(h) > 0 {
		t.Errorf("v0.1 has no header, and is sent %v", h)
	}
}

func TestLegacyRefuses(t *testing.T) {
	send := func(message string) []byte { return legacyRequest("tasks/send", `{"id":"t","message":`+message+`}`) }
	config := func(config string) []byte {
		return legacyRequest("tasks/pushNotification/set", `{"id":"t","pushNotificationConfig":`+config+`}`)
	}
	for _, tc := range []struct {
		name string
		body []byte
		want string
	}{
		{"method", legacyRequest("message/send", `{}`), "method-not-found : the methods of A2A v0.1 are tasks/send, sendSubscribe, get, cancel, resubscribe and pushNotification/set and get"},
		{"params", legacyRequest("tasks/get", `[]`), "invalid-params params: params must be an object"},
		{"id", legacyRequest("tasks/get", `{}`), "invalid-params params.id: id is missing; it must be a string of 1 to 256 bytes"},
		{"id's type", legacyRequest("tasks/get", `{"id":1}`), "invalid-params params.id: id must be a string"},
		{"a long id", legacyRequest("tasks/get", `{"id":"`+strings.Repeat("x", 257)+`"}`), "invalid-params params.id: id must be at most 256 bytes long and have no control characters"},
		{"history", legacyRequest("tasks/get", `{"id":"t","historyLength":-1}`), "invalid-params params.historyLength: historyLength must be an integer that is not negative"},
		{"message", legacyRequest("tasks/send", `{"id":"t"}`), "invalid-params params.message: message must be an object"},
		{"role", send(`{"role":"agent","parts":[]}`), `invalid-params params.message.role: role must be "user"`},
		{"parts", send(`{"role":"user"}`), "invalid-params params.message.parts: parts must be an array of parts"},
		{"a part", send(`{"parts":[{"type":"text","text":"x"},7]}`), "invalid-params params.message.parts[1]: a part must be an object"},
		{"a part's type", send(`{"parts":[{"type":"video","text":"x"}]}`), "invalid-params params.message.parts[0]: a part must have a text, a file with either bytes or uri, or data, and say so"},
		{"metadata", send(`{"parts":[{"type":"text","text":"x","metadata":[]}]}`), "invalid-params params.message.parts[0].metadata: metadata must be an object"},
		{"base64", send(`{"parts":[{"type":"file","file":{"bytes":"e_=="}}]}`), "invalid-params params.message.parts[0].file.bytes: bytes must be standard base64 with padding"},
		{"too many parts", send(`{"parts":[` + strings.TrimSuffix(strings.Repeat(`{"text":""},`, 1001), ",") + `]}`), "invalid-params params.message.parts: parts must have at most 1000 entries"},
		{"config", config(`1`), "invalid-params params.pushNotificationConfig: pushNotificationConfig must be an object with the member url"},
		{"url", config(`{}`), "invalid-params params.pushNotificationConfig.url: url is missing; it must be a string of 1 to 2048 bytes"},
		{"token", config(`{"url":"u","token":"a\nb"}`), "invalid-params params.pushNotificationConfig.token: token must be at most 4096 bytes long and have no control characters"},
		{"schemes", config(`{"url":"u","authentication":{"schemes":"x"}}`), "invalid-params params.pushNotificationConfig.authentication.schemes: schemes must be an array of strings"},
		{"a scheme", config(`{"url":"u","authentication":{"schemes":["a b"]}}`), "invalid-params params.pushNotificationConfig.authentication.schemes[0]: a scheme must be one word, such as Bearer"},
		{"authentication", config(`{"url":"u","authentication":1}`), "invalid-params params.pushNotificationConfig.authentication: authentication must be an object"},
	} {
		t.Run(tc.name, func(t *testing.T) { legacyRefuses(t, a2a.LegacyServer(false), tc.body, tc.want) })
	}
}

func legacyRefuses(t *testing.T, s translate.Server, body []byte, want string) {
	t.Helper()
	_, err := legacyDecode(t, s, body)
	var e *task.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(want, fmt.Sprintf("%v %s: %s", e.Kind, e.Field, e.Detail)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every request before 1.0 is of exactly one dialect.
func TestLegacySpeaks(t *testing.T) {
	made := translate.TaskID(make([]byte, 17))
	for _, tc := range []struct{ version, method, id, want string }{
		{"", "tasks/send", "t", "a2a/legacy"},
		{"0.3", "tasks/sendSubscribe", "t", "a2a/legacy"},
		{"", "tasks/pushNotification/get", made, "a2a/legacy"},
		{"", "tasks/pushNotification/set", "t", "a2a/legacy"},
		{"", "message/send", "t", "a2a/0.3"},
		{"0.1", "message/stream", "t", "a2a/0.3"},
		{"", "tasks/pushNotificationConfig/set", "t", "a2a/0.3"},
		{"", "tasks/pushNotificationConfig/get", "t", "a2a/0.3"},
		{"", "tasks/pushNotificationConfig/list", "t", "a2a/0.3"},
		{"", "tasks/pushNotificationConfig/delete", "t", "a2a/0.3"},
		{"", "agent/getAuthenticatedExtendedCard", "t", "a2a/0.3"},
		{"", "tasks/get", "t", "a2a/legacy"},
		{"", "tasks/get", made, "a2a/0.3"},
		{"", "tasks/cancel", made, "a2a/0.3"},
		{"", "tasks/resubscribe", "t", "a2a/legacy"},
		{"0.3", "tasks/get", "t", "a2a/0.3"},
		{"0.2.5", "tasks/cancel", "t", "a2a/0.3"},
		{"0.1", "tasks/cancel", made, "a2a/legacy"},
		{"1.0", "tasks/get", "t", ""},
		{"1.0", "message/send", "t", ""},
		{"1.0", "tasks/send", "t", ""},
		{"2.0", "tasks/send", "t", ""},
		{"x", "message/send", "t", ""},
		{"", "SendMessage", "t", ""},
		{"", "rpc", "t", ""},
	} {
		req, bad := jsonrpc.Parse(legacyRequest(tc.method, `{"id":"`+tc.id+`"}`), jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		var got []string
		for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false)} {
			if s.Matches(&translate.Request{Request: req, HTTP: "POST", Version: tc.version}) {
				got = append(got, s.Name())
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("version %q, %s, id %s: %v speak it, want %q", tc.version, tc.method, tc.id, got, tc.want)
		}
	}
}

func TestLegacyRoute(t *testing.T) {
	for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false)} {
		for _, tc := range []struct {
			method, path string
			want         translate.Route
			ok           bool
		}{
			{"POST", "", translate.Route{}, true},
			{"GET", "", translate.Route{Allow: "POST"}, true},
			{"POST", "rpc", translate.Route{}, false},
		} {
			r, ok := s.Route(tc.method, tc.path)
			if diff := cmp.Diff(tc.want, r); diff != "" || ok != tc.ok {
				t.Errorf("%s: %s %q: %v (-want +got):\n%s", s.Name(), tc.method, tc.path, ok, diff)
			}
		}
	}
}

// Every kind has a number, and those that mean something else in AIP are never used.
func TestLegacyFaults(t *testing.T) {
	legacy := map[task.Kind]int64{
		task.Internal: -32603, task.ParseError: -32700, task.InvalidRequest: -32600, task.MethodNotFound: -32601,
		task.InvalidParams: -32602, task.TaskNotFound: -32001, task.TaskNotCancelable: -32002,
		task.NotificationNotSupported: -32003, task.UnsupportedOperation: -32004, task.ContentTypeNotSupported: -32005,
		task.InvalidAgentResponse: -32603, task.GroupNotSupported: -32004, task.AuthenticationRequired: -31401,
		task.AuthorizationFailed: -31403, task.AccessTokenInvalid: -31401, task.LimitExceeded: -32050,
		task.AgentUnavailable: -32603, task.AgentTimeout: -32603, task.StoreUnavailable: -32603,
	}
	status := map[task.Kind]int{task.AuthenticationRequired: 401, task.AccessTokenInvalid: 401, task.AuthorizationFailed: 403}
	for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false)} {
		for _, k := range task.Kinds() {
			want, ok := legacy[k]
			if !ok {
				t.Fatalf("%v is not in the table", k)
			}
			if k == task.InvalidAgentResponse && s.Name() == "a2a/0.3" {
				want = -32006
			}
			err := task.Errorf(k, "x")
			res, bad := jsonrpc.ParseResponse(s.AppendError(nil, nil, err), jsonrpc.Limits{})
			if bad != nil || res.Failure == nil || res.Failure.Code != want {
				t.Errorf("%s, %v: %+v %v, want the code %d", s.Name(), k, res.Failure, bad, want)
			}
			http := max(200, status[k])
			if got := s.(translate.Statuser).Status(err); got != http {
				t.Errorf("%s, %v: status %d, want %d", s.Name(), k, got, http)
			}
		}
	}
	got := string(a2a.LegacyServer(false).AppendError([]byte("x"), jsonrpc.ID("7"), task.Errorf(task.AgentTimeout, "it was silent").WithData("taskId", "t").WithField("f")))
	want := `x{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error","data":{"errorType":"AGENT_TIMEOUT","field":"f","taskId":"t","details":"it was silent"}}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLegacyNotificationHeader(t *testing.T) {
	content := translate.Field{Name: "Content-Type", Value: "application/json"}
	token := translate.Field{Name: "X-A2A-Notification-Token", Value: "k"}
	for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false)} {
		for _, tc := range []struct {
			in   task.Webhook
			want []translate.Field
		}{
			{task.Webhook{}, []translate.Field{content}},
			{task.Webhook{Token: "k", Scheme: "Bearer"}, []translate.Field{content, token}},
			{task.Webhook{Token: "k", Scheme: "Basic", Credentials: "c"}, []translate.Field{content, token, {Name: "Authorization", Value: "Basic c"}}},
			{task.Webhook{Credentials: "c"}, []translate.Field{content, {Name: "Authorization", Value: "Bearer c"}}},
		} {
			if diff := cmp.Diff(tc.want, s.NotificationHeader(&tc.in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", s.Name(), diff)
			}
		}
	}
}

// legacyStory is a log that has everything in it.
func legacyStory() []task.Event {
	at := func(s int) time.Time {
		return time.Date(2026, 1, 2, 11, 4, s, 5e6, time.FixedZone("", 8*60*60))
	}
	status := func(s int, state task.State, items ...task.DataItem) *task.Status {
		return &task.Status{State: state, ChangedAt: at(s), DataItems: items}
	}
	leader := func(id string, s int, c task.Command, text string) *task.Message {
		m := &task.Message{ID: id, SentAt: at(s), SenderRole: task.Leader, Command: c, TaskID: "t1", SessionID: "s1"}
		if text != "" {
			m.DataItems = []task.DataItem{task.Text(text)}
		}
		return m
	}
	return []task.Event{
		{Seq: 1, Task: &task.Task{ID: "t1", SessionID: "s1", Status: *status(1, task.Accepted), MessageHistory: []task.Message{*leader("m1", 0, task.Start, "go")}}},
		{Seq: 2, Status: status(2, task.Working)},
		{Seq: 3, Status: status(2, task.Working, task.Text("tick"))},
		{Seq: 4, Chunk: &task.Chunk{Product: task.Product{ID: "p1", Name: "out", Description: "d", DataItems: []task.DataItem{task.Text("a ")}}}},
		{Seq: 5, Chunk: &task.Chunk{Product: task.Product{ID: "p2", DataItems: []task.DataItem{{Kind: task.FileItem, Name: "f", MIMEType: "text/plain", URI: "https://f/"}, {Kind: task.DataKind, Data: json.RawMessage(`{"x":1}`)}}}, Last: true}},
		{Seq: 6, Chunk: &task.Chunk{Product: task.Product{ID: "p1", DataItems: []task.DataItem{task.Text("b")}}, Append: true, Last: true}},
		{Seq: 7, Status: status(3, task.AwaitingInput, task.Text("which?"))},
		{Seq: 8, Status: status(4, task.Working), Cause: leader("m2", 4, task.Continue, "blue")},
		{Seq: 9, Message: &task.Message{ID: "m3", SentAt: at(5), SenderRole: task.Partner, DataItems: []task.DataItem{task.Text("hm")}}},
		{Seq: 10, Status: status(6, task.AwaitingCompletion, task.Text("done"))},
		{Seq: 11, Status: status(7, task.Completed), Cause: leader("m4", 7, task.Complete, "")},
	}
}

// legacyTell tells a story in every way that a server has, as a file to compare.
func legacyTell(s translate.Server) []byte {
	id := jsonrpc.ID(`"r1"`)
	var out strings.Builder
	call := &translate.Call{History: 0}
	frame := func(f translate.Frame) {
		switch {
		case f.Data == nil:
			fmt.Fprintf(&out, "(nothing) end=%t\n", f.End)
		default:
			fmt.Fprintf(&out, "event=%s end=%t\n%s\n", f.Name, f.End, f.Data)
		}
	}
	story := legacyStory()
	out.WriteString("-- stream --\n")
	enc := s.NewStream(id, call, story[0].Task)
	var fold task.Fold
	for i := range story {
		frame(enc.Event(nil, &story[i]))
		fold.Apply(story[i])
	}
	for _, upTo := range []int{7, 10, 11} {
		var fold task.Fold
		for i := range story[:upTo] {
			fold.Apply(story[i])
		}
		fmt.Fprintf(&out, "-- %s, snapshot --\n", fold.Task.Status.State)
		frame(s.NewStream(id, call, &task.Task{ID: "t1", SessionID: "s1"}).Snapshot(nil, &fold.Task))
		fmt.Fprintf(&out, "-- %s, task --\n%s\n", fold.Task.Status.State, s.AppendTask(nil, id, call, &fold.Task))
	}
	fmt.Fprintf(&out, "-- the last two messages --\n%s\n", s.AppendTask(nil, id, &translate.Call{History: 2}, &fold.Task))
	fmt.Fprintf(&out, "-- all messages --\n%s\n", s.AppendTask(nil, id, &translate.Call{History: -1}, &fold.Task))
	fmt.Fprintf(&out, "-- webhook told --\n%s\n", s.AppendNotification(nil, &fold.Task))
	fmt.Fprintf(&out, "-- rejected --\n%s\n", s.AppendTask(nil, id, call, &task.Task{ID: "t1", Status: task.Status{State: task.Rejected, DataItems: []task.DataItem{task.Text("no")}}}))
	return []byte(out.String())
}

// golden compares with a file, or writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
	for _, f := range txtar.Parse(got).Files {
		for _, line := range strings.Split(string(f.Data), "\n") {
			if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
				t.Errorf("%s is no JSON: %s", f.Name, line)
			}
		}
	}
}

func TestLegacyWire(t *testing.T) {
	golden(t, "testdata/legacy_server.txtar", legacyTell(a2a.LegacyServer(false)))
	golden(t, "testdata/legacy_server_confirm.txtar", legacyTell(a2a.LegacyServer(true)))
}

func TestLegacyWebhooks(t *testing.T) {
	s := a2a.LegacyServer(false)
	hooks := []task.Webhook{{ID: "default", TaskID: "t1", URL: "https://x/", Token: "k", Scheme: "bearer"}}
	for _, tc := range []struct {
		op    translate.Op
		hooks []task.Webhook
		want  string
	}{
		{translate.SetWebhook, hooks, `{"jsonrpc":"2.0","id":1,"result":{"id":"t1","pushNotificationConfig":{"url":"https://x/","token":"k","authentication":{"schemes":["bearer"]}}}}`},
		{translate.GetWebhooks, hooks, `{"jsonrpc":"2.0","id":1,"result":{"id":"t1","pushNotificationConfig":{"url":"https://x/","token":"k","authentication":{"schemes":["bearer"]}}}}`},
		{translate.GetWebhooks, nil, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found","data":{"details":"this task has no push notification configuration"}}}`},
	} {
		if diff := cmp.Diff(tc.want, string(s.AppendWebhooks(nil, jsonrpc.ID("1"), &translate.Call{Op: tc.op}, tc.hooks))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// An artifact's index is the place of its product in the task, wherever a stream begins.
func TestLegacyIndex(t *testing.T) {
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
	told := s.NewStream(nil, new(translate.Call), &task.Task{ID: "t"})
	told.Event(nil, &task.Event{Task: now})
	for name, e := range map[string]translate.Encoder{"known": known, "snapshot": snapshot, "told": told} {
		if got := index(e, "b") + index(e, "c") + index(e, "a") + index(e, "c"); got != "1202" {
			t.Errorf("%s: the indexes are %s, want 1202", name, got)
		}
	}
}

func FuzzLegacyDecode(f *testing.F) {
	for _, list := range [][][]byte{legacyRequests, v03Requests} {
		for _, body := range list {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
		if bad != nil {
			return
		}
		for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(true)} {
			r := &translate.Request{Request: req, HTTP: "POST"}
			s.Matches(r)
			call, err := s.Decode(r)
			if err != nil {
				var e *task.Error
				if !errors.As(err, &e) || e.Detail == "" {
					t.Fatalf("%s: %#v", s.Name(), err)
				}
				continue
			}
			if m := call.Message; !m.Command.Valid() || m.SenderRole != task.Leader || m.SenderID != "" {
				t.Fatalf("%s: %+v", s.Name(), m)
			}
			check(t, agent.Report{Items: call.Message.DataItems}, nil)
			sayable(t, &call)
		}
	})
}
