// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// TestErrors tests the form of every kind of error.
func TestErrors(t *testing.T) {
	want := map[task.Kind]struct {
		code, http     int
		status, reason string
	}{
		task.Internal:                 {-32603, 500, "INTERNAL", "INTERNAL_ERROR"},
		task.ParseError:               {-32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR"},
		task.InvalidRequest:           {-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"},
		task.MethodNotFound:           {-32601, 501, "UNIMPLEMENTED", "METHOD_NOT_FOUND"},
		task.InvalidParams:            {-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
		task.TaskNotFound:             {-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"},
		task.TaskNotCancelable:        {-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"},
		task.NotificationNotSupported: {-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		task.UnsupportedOperation:     {-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		task.ContentTypeNotSupported:  {-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"},
		task.InvalidAgentResponse:     {-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"},
		task.GroupNotSupported:        {-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		task.AuthenticationRequired:   {-32051, 401, "UNAUTHENTICATED", "UNAUTHENTICATED"},
		task.AuthorizationFailed:      {-32052, 403, "PERMISSION_DENIED", "PERMISSION_DENIED"},
		task.AccessTokenInvalid:       {-32051, 401, "UNAUTHENTICATED", "ACCESS_TOKEN_INVALID"},
		task.LimitExceeded:            {-32050, 429, "RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED"},
		task.AgentUnavailable:         {-32603, 502, "UNAVAILABLE", "AGENT_UNAVAILABLE"},
		task.AgentTimeout:             {-32603, 504, "DEADLINE_EXCEEDED", "AGENT_TIMEOUT"},
		task.StoreUnavailable:         {-32603, 503, "UNAVAILABLE", "STORE_UNAVAILABLE"},
		task.InvitationRejected:       {-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		task.ConnectionFailed:         {-32603, 500, "INTERNAL", "INTERNAL_ERROR"},
	}
	const info = `[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"%s","domain":"a2a-protocol.org",` +
		`"metadata":{"field":"params.id","max":"7","taskId":"t\"1"}}]`
	rpc, rest := a2a.V1Server(false), a2a.V1RESTServer(false)
	for _, k := range task.Kinds() {
		w, ok := want[k]
		if !ok {
			t.Errorf("%v is not tested", k)
			continue
		}
		err := task.Errorf(k, "some words").WithField("params.id").WithData("taskId", `t"1`).WithData("max",
			7).WithCause(errors.New("secret"))
		details := fmt.Sprintf(info, w.reason)
		for got, want := range map[string]string{
			string(rpc.AppendError(nil, jsonrpc.ID("1"),
				err)): fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"some words","data":%s}}`,
				w.code, details),
			string(rest.AppendError(nil, nil,
				err)): fmt.Sprintf(`{"error":{"code":%d,"status":"%s","message":"some words","details":%s}}`, w.http,
				w.status, details),
			fmt.Sprint(rest.(translate.Statuser).Status(err)):                                                fmt.Sprint(w.http),
			gjson.GetBytes(rest.AppendError(nil, nil, &task.Error{Kind: k}), "error.details.0.metadata").Raw: "",
		} {
			if got != want {
				t.Errorf("%v is\n%s, want\n%s", k, got, want)
			}
		}
		if w.code <= -32007 && w.code >= -32049 {
			t.Errorf("%v has the code %d, which means something else", k, w.code)
		}
		// An error of a gateway is understood by another one.
		_, first := a2a.V1().Reply(rpc.AppendError(nil, nil, err), nil)
		_, second := a2a.V1REST().Reply(rest.AppendError(nil, nil, err), nil)
		if first == nil || second == nil || first.Error() != second.Error() || task.KindOf(first) == task.Internal &&
			w.code == -32001 {
			t.Errorf("%v is read as %v and %v", k, first, second)
		}
	}
	for k, want := range map[task.Kind]int{task.AuthenticationRequired: 401, task.AuthorizationFailed: 200,
		task.TaskNotFound: 200} {
		if got := rpc.(translate.Statuser).Status(task.Errorf(k, "x")); got != want {
			t.Errorf("over JSON-RPC, %v has the status %d, want %d", k, got, want)
		}
	}
	for _, err := range []error{errors.New("secret"), &task.Error{Kind: 255, Detail: "secret"}} {
		for _, out := range []string{string(rpc.AppendError(nil, nil, err)), string(rest.AppendError(nil, nil, err))} {
			if strings.Contains(out, "secret") || !strings.Contains(out, `"message":"Internal error"`) {
				t.Errorf("%v is %s", err, out)
			}
		}
		if got := rest.(translate.Statuser).Status(err); got != 500 {
			t.Errorf("%v has the status %d", err, got)
		}
	}
}

var at = time.Date(2026, 1, 2, 11, 4, 5, 6e6, time.FixedZone("", 8*60*60))

// fullTask is a task with everything A2A can say.
func fullTask(state task.State) *task.Task {
	return &task.Task{
		ID: "t1", SessionID: "c1",
		Status: task.Status{State: state, ChangedAt: at,
			DataItems: []task.DataItem{task.Text("so\n"),
				{Kind: task.DataKind, Data: json.RawMessage(`{"value":[1]}`),
					Metadata: json.RawMessage(`{"data_part_compat":true}`)}}},
		Products: []task.Product{
			{ID: "p1", Name: "n", Description: "d", DataItems: []task.DataItem{
				task.Text("a"),
				{Kind: task.FileItem, Name: "f", MIMEType: "m", Bytes: "QUJD", Metadata: json.RawMessage(`{"k":1}`)},
				{Kind: task.FileItem, URI: "https://f.example"},
				{Kind: task.DataKind, Data: json.RawMessage(`{"value":{"b":1}}`)},
				{Kind: task.DataKind, Data: json.RawMessage(`{}`)},
			}},
			{ID: "p2", Name: "n2"},
		},
		MessageHistory: []task.Message{
			{ID: "m1", SenderRole: task.Leader, Command: task.Start, DataItems: []task.DataItem{task.Text("do")}},
			{ID: "m2", SenderRole: task.Partner, DataItems: []task.DataItem{task.Text("I do")}},
			{ID: "m3", SenderRole: task.Leader, Command: task.Complete},
		},
	}
}

func TestAnswers(t *testing.T) {
	rpc, rest := a2a.V1Server(false), a2a.V1RESTServer(false)
	const status = `"status":{"state":"TASK_STATE_WORKING","message":{"messageId":"t1-16b0l6p-mjwaid1q",` +
		`"role":"ROLE_AGENT","parts":[{"text":"so\n"},{"data":[1]}],"taskId":"t1","contextId":"c1"},` +
		`"timestamp":"2026-01-02T03:04:05.006Z"}`
	const artifacts = `,"artifacts":[{"artifactId":"p1","name":"n","description":"d","parts":[{"text":"a"},` +
		`{"raw":"QUJD","filename":"f","mediaType":"m","metadata":{"k":1}},{"url":"https://f.example"},` +
		`{"data":{"value":{"b":1}}},{"data":{}}]},{"artifactId":"p2","name":"n2","parts":[]}]`
	const m1 = `{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"do"}],"taskId":"t1","contextId":"c1"}`
	const m2 = `{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"I do"}],"taskId":"t1","contextId":"c1"}`
	whole := func(history string) string {
		return `{"id":"t1","contextId":"c1",` + status + artifacts + history + `}`
	}
	call := func(cmd task.Command, history int) *translate.Call {
		c := &translate.Call{History: history}
		c.Message.Command = cmd
		return c
	}
	working := fullTask(task.Working)
	list := &translate.Call{Op: translate.ListTasks, History: 0, List: &task.List{}}
	some := &translate.Call{Op: translate.ListTasks, History: 1, List: &task.List{Products: true}}
	one := task.Webhook{ID: "w", TaskID: "t1", URL: "https://h.example", Token: "tok", Scheme: "Bearer",
		Credentials: "cred", Dialect: "x"}
	const config = `{"url":"https://h.example","id":"w","taskId":"t1","token":"tok","authentication":{"scheme":"Bearer",` +
		`"credentials":"cred"}}`
	for _, tc := range []struct {
		name   string
		answer func(s translate.Server, dst []byte, id jsonrpc.ID) []byte
		want   string
	}{
		{"start", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Start, -1), working)
		},
			`{"task":` + whole(`,"history":[`+m1+`,`+m2+`]`) + `}`},
		{"continue", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Continue, 1), working)
		},
			`{"task":` + whole(`,"history":[`+m2+`]`) + `}`},
		{"get", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Get, 0), working)
		}, whole("")},
		{"cancel", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Cancel, 9), working)
		},
			whole(`,"history":[` + m1 + `,` + m2 + `]`)},
		{"little to say", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Get, -1),
				&task.Task{ID: "t", Status: task.Status{State: task.Accepted},
					MessageHistory: []task.Message{{ID: "m"}}})
		}, `{"id":"t","status":{"state":"TASK_STATE_SUBMITTED"}}`},
		{"list", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.(translate.Lister).AppendTasks(dst, id, list,
				&task.Page{Tasks: []task.Task{*working, *working}, Next: "n", Size: 2, Total: 5})
		}, `{"tasks":[{"id":"t1","contextId":"c1",` + status + `},{"id":"t1","contextId":"c1",` + status +
			`}],"nextPageToken":"n","pageSize":2,"totalSize":5}`},
		{"list with products", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.(translate.Lister).AppendTasks(dst, id, some,
				&task.Page{Tasks: []task.Task{*working}, Size: 50, Total: 1})
		}, `{"tasks":[` + whole(`,"history":[`+m2+`]`) + `],"nextPageToken":"","pageSize":50,"totalSize":1}`},
		{"list of nothing", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.(translate.Lister).AppendTasks(dst, id, list, &task.Page{Size: 50})
		}, `{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}`},
		{"set a webhook", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.SetWebhook}, []task.Webhook{one})
		}, config},
		{"get a webhook", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id,
				&translate.Call{Op: translate.GetWebhooks, Method: "GetTaskPushNotificationConfig"},
				[]task.Webhook{one})
		}, config},
		{"list webhooks", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.GetWebhooks},
				[]task.Webhook{one, {ID: "v", URL: "u"}})
		}, `{"configs":[` + config + `,{"url":"u","id":"v"}],"nextPageToken":""}`},
		{"list no webhooks", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.GetWebhooks}, nil)
		}, `{"configs":[],"nextPageToken":""}`},
		{"delete a webhook", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.DeleteWebhooks}, nil)
		}, `{}`},
	} {
		if diff := cmp.Diff(`+{"jsonrpc":"2.0","id":"i","result":`+tc.want+`}`,
			string(tc.answer(rpc, []byte("+"), jsonrpc.ID(`"i"`)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff("+"+tc.want, string(tc.answer(rest, []byte("+"), nil))); diff != "" {
			t.Errorf("%s, without an envelope (-want +got):\n%s", tc.name, diff)
		}
	}
	for _, s := range []translate.Server{rpc, rest} {
		if diff := cmp.Diff(`+{"task":`+whole("")+`}`, string(s.AppendNotification([]byte("+"), working))); diff != "" {
			t.Errorf("a notification of %s (-want +got):\n%s", s.Name(), diff)
		}
		header := []translate.Field{{Name: "Content-Type", Value: "application/a2a+json"},
			{Name: "X-A2A-Notification-Token", Value: "tok"},
			{Name: "A2A-Notification-Token", Value: "tok"}, {Name: "Authorization", Value: "Bearer cred"}}
		if diff := cmp.Diff(header, s.NotificationHeader(&one)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(header[:1], s.NotificationHeader(&task.Webhook{URL: "u"})); diff != "" {
			t.Error(diff)
		}
	}
}

// TestShown tests every state as callers are shown it: in answers, and in streams with their ends.
func TestShown(t *testing.T) {
	for _, tc := range []struct {
		state         task.State
		auto, confirm string
		end           bool
	}{
		{task.Accepted, "SUBMITTED", "SUBMITTED", false},
		{task.Working, "WORKING", "WORKING", false},
		{task.AwaitingInput, "INPUT_REQUIRED", "INPUT_REQUIRED", true},
		{task.AwaitingCompletion, "COMPLETED", "INPUT_REQUIRED", true},
		{task.Completed, "COMPLETED", "COMPLETED", true},
		{task.Canceled, "CANCELED", "CANCELED", true},
		{task.Failed, "FAILED", "FAILED", true},
		{task.Rejected, "REJECTED", "REJECTED", true},
		{task.None, "UNSPECIFIED", "UNSPECIFIED", false},
	} {
		for _, b := range bindings {
			for i, s := range []translate.Server{b.server, b.confirm} {
				word := "TASK_STATE_" + []string{tc.auto, tc.confirm}[i]
				state := &task.Task{ID: "t1", SessionID: "c1", Status: task.Status{State: tc.state, ChangedAt: at}}
				sent, subscribed := new(translate.Call), new(translate.Call)
				sent.Message.Command, subscribed.Message.Command = task.Continue, task.ReStream
				written := func(what string, f translate.Frame, path string, end bool) {
					t.Helper()
					if b.name == "a2a/1.0" {
						path = "result." + path
					}
					if got := gjson.GetBytes(f.Data, path).Str; got != word || f.End != end || f.Name != "" {
						t.Errorf("%s, confirm %v, %v: %s is %q, end %v: %s", b.name, i == 1, tc.state, what, got, f.End,
							f.Data)
					}
				}
				written("a snapshot", s.NewStream(nil, sent, state).Snapshot(nil, state), "task.status.state", tc.end)
				written("a task", s.NewStream(nil, sent, state).Event(nil, &task.Event{Task: state}), "task.status.state",
					tc.end)
				f := s.NewStream(nil, sent, state).Event(nil, &task.Event{Status: &state.Status})
				if tc.state == task.AwaitingCompletion && i == 0 {
					if f.Data != nil || f.End {
						t.Errorf("%s: awaiting completion is written, and completed follows: %+v", b.name, f)
					}
				} else {
					written("an update", f, "statusUpdate.status.state", tc.end)
				}
				f = s.NewStream(jsonrpc.ID("7"), subscribed, state).Snapshot([]byte("+"), state)
				rests := word == "TASK_STATE_INPUT_REQUIRED"
				written("a subscription", translate.Frame{Data: bytes.TrimPrefix(f.Data, []byte("+")), End: f.End},
					"task.status.state", tc.end && !rests)
				if tc.state != task.AwaitingCompletion || i == 1 {
					f = s.NewStream(nil, subscribed, state).Event(nil, &task.Event{Status: &state.Status})
					written("an update of a subscription", f, "statusUpdate.status.state",
						tc.end && (!rests || b.name == "a2a/1.0-rest"))
				}
			}
		}
	}
}

// TestAwaitsAuth: a task waiting for authorization is shown so, without the item for it in other dialects, and no
// stream of it ends.
func TestAwaitsAuth(t *testing.T) {
	rep, err := a2a.V1REST().Reply([]byte(`{"task":{"id":"t1","status":{"state":"TASK_STATE_AUTH_REQUIRED",`+
		`"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"log in"}]}}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	state := &task.Task{ID: "t1", Status: task.Status{State: rep.State, ChangedAt: at, DataItems: rep.Items}}
	for _, b := range bindings {
		for _, s := range []translate.Server{b.server, b.confirm} {
			for _, cmd := range []task.Command{task.Start, task.Continue, task.ReStream} {
				c := new(translate.Call)
				c.Message.Command = cmd
				for _, f := range []translate.Frame{
					s.NewStream(nil, c, state).Snapshot(nil, state),
					s.NewStream(nil, c, state).Event(nil, &task.Event{Task: state}),
					s.NewStream(nil, c, state).Event(nil, &task.Event{Status: &state.Status}),
				} {
					if !strings.Contains(string(f.Data), `"TASK_STATE_AUTH_REQUIRED"`) || f.End ||
						strings.Contains(string(f.Data), "a2aState") || !strings.Contains(string(f.Data), `"log in"`) {
						t.Errorf("%s, %s: end %v: %s", b.name, cmd, f.End, f.Data)
					}
				}
			}
			notified := string(s.AppendNotification(nil, state))
			if !strings.Contains(notified, `"TASK_STATE_AUTH_REQUIRED"`) || strings.Contains(notified, "a2aState") {
				t.Errorf("%s: a webhook is notified of %s", b.name, notified)
			}
		}
	}
	if len(state.Status.DataItems) != 2 {
		t.Errorf("the task has become %+v", state)
	}
}

// TestFrames tests the frames of events with more than a state.
func TestFrames(t *testing.T) {
	c := &translate.Call{History: 1}
	state := fullTask(task.Accepted)
	text := []task.DataItem{task.Text("x")}
	s := a2a.V1RESTServer(false).NewStream(nil, c, &task.Task{ID: "t1", SessionID: "c1"})
	for _, tc := range []struct {
		name, want string
		ev         task.Event
	}{
		{"a chunk",
			`{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"p","parts":[{"text":"x"}]}}}`,
			task.Event{Chunk: &task.Chunk{Product: task.Product{ID: "p", DataItems: text}}}},
		{"the last chunk",
			`{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"p","name":"n","parts":[]},` +
				`"append":true,"lastChunk":true}}`,
			task.Event{Chunk: &task.Chunk{Product: task.Product{ID: "p", Name: "n"}, Append: true, Last: true}}},
		{"what the Partner says",
			`{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING",` +
				`"message":{"messageId":"t1-nwajuo-mjwaid1q","role":"ROLE_AGENT","parts":[{"text":"x"}],"taskId":"t1",` +
				`"contextId":"c1"},"timestamp":"2026-01-02T03:04:05.006Z"}}}`,
			task.Event{Message: &task.Message{ID: "m", SentAt: at, SenderRole: task.Partner, DataItems: text}}},
		{"what the Leader says", ``,
			task.Event{Message: &task.Message{ID: "m", SenderRole: task.Leader, DataItems: text}}},
		{"nothing", ``, task.Event{}},
		{"a state without its cause",
			`{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING",` +
				`"timestamp":"2026-01-02T03:04:05.006Z"}}}`,
			task.Event{Status: &task.Status{State: task.Working, ChangedAt: at}, Cause: &state.MessageHistory[0]}},
	} {
		f := s.Event(nil, &tc.ev)
		if diff := cmp.Diff(tc.want, string(f.Data)); diff != "" || f.End {
			t.Errorf("%s, end %v (-want +got):\n%s", tc.name, f.End, diff)
		}
	}
	f := s.Event(nil, &task.Event{Task: state})
	if got := gjson.GetBytes(f.Data, "task.history.#.messageId").Raw; got != `["m2"]` {
		t.Errorf("the history is %s", got)
	}
}

// TestIdentity: the client reads the same as the server writes, in both bindings: in answers, in streams, in
// notifications and in requests.
func TestIdentity(t *testing.T) {
	for _, b := range bindings {
		for _, state := range task.States() {
			want := fullTask(state)
			read := state
			if state == task.Completed {
				read = task.AwaitingCompletion
			}
			for _, cmd := range []task.Command{task.Start, task.Continue, task.Get, task.Cancel} {
				c := &translate.Call{History: -1}
				c.Message.Command = cmd
				rep, err := b.client.Reply(b.server.AppendTask(nil, jsonrpc.ID("1"), c, want), nil)
				same(t, b.name+" "+string(cmd), want, read, rep, err)
			}
			rep, err := b.client.Push(b.server.AppendNotification(nil, want), nil)
			same(t, b.name+" notification", want, read, rep, err)

			frames, events := b.confirm.NewStream(jsonrpc.ID("1"), new(translate.Call), want), b.client.NewStream(nil)
			rep, err = events.Event("", frames.Snapshot(nil, want).Data)
			if state != task.AwaitingCompletion {
				same(t, b.name+" snapshot", want, read, rep, err)
			}
			for i := range want.Products {
				for _, adds := range []bool{false, true} {
					chunk := task.Chunk{Product: want.Products[i], Append: adds, Last: adds}
					rep, err := events.Event("", frames.Event(nil, &task.Event{Chunk: &chunk}).Data)
					if diff := cmp.Diff(agent.Report{Chunks: []task.Chunk{chunk}}, rep); diff != "" || err != nil {
						t.Errorf("%s, a chunk: %v\n%s", b.name, err, diff)
					}
				}
			}
		}
		for _, from := range []task.State{task.None, task.AwaitingInput, task.AwaitingCompletion} {
			for _, stream := range []bool{false, true} {
				turn := &agent.Turn{
					Ref: agent.Ref{Task: "t1", Session: "c1"}, From: from,
					Message: task.Message{ID: "m1", DataItems: fullTask(task.Working).Products[0].DataItems},
					Webhook: &task.Webhook{ID: "w", URL: "u", Token: "tok", Scheme: "s", Credentials: "c"},
				}
				body := b.client.AppendTurn(nil, turn, stream)
				if binder, ok := b.client.(translate.Binder); ok {
					errand := translate.Send
					if stream {
						errand = translate.SendStream
					}
					verb, path := binder.Bind(errand, turn.Ref)
					body = append([]byte(verb+" "+path+"\n"), body...)
				}
				c, err := decode(b.server, body)
				if err != nil {
					t.Errorf("%s, from %q: %v", b.name, from, err)
					continue
				}
				var want translate.Call
				want.Message = task.Message{ID: "m1", SenderRole: task.Leader, Command: task.Start,
					DataItems: turn.Message.DataItems, SessionID: "c1"}
				want.Blocking = !stream
				want.Stream, want.Webhook = stream,
					&task.Webhook{ID: "w", URL: "u", Token: "tok", Scheme: "s", Credentials: "c", Dialect: "a2a/1.0"}
				want.AutoComplete, want.Refusable, want.Begun = true, true, true
				switch from {
				case task.AwaitingInput:
					want.Message.Command, want.Message.TaskID = task.Continue, "t1"
					want.Strict, want.Snapshot, want.Webhook.TaskID = true, stream, "t1"
					want.AutoComplete, want.Refusable, want.Begun = false, false, false
					want.SameSession = true
				case task.AwaitingCompletion:
					want.Message.References = []string{"t1"}
				}
				if diff := cmp.Diff(want, c); diff != "" {
					t.Errorf("%s, from %q (-want +got):\n%s", b.name, from, diff)
				}
			}
		}
	}
}

func same(t *testing.T, name string, want *task.Task, state task.State, rep agent.Report, err error) {
	t.Helper()
	rep.NativeState, rep.Revision, rep.RevisionDated, rep.Follows = "", "", false, agent.FollowsNothing
	if diff := cmp.Diff(agent.Report{
		OwnSession: true, State: state, Items: want.Status.DataItems, Full: true, Products: want.Products,
		Ref: &agent.Ref{Task: want.ID, Session: want.SessionID},
	}, rep); diff != "" || err != nil {
		t.Errorf("%s, %s: %v (-want +got)\n%s", name, want.Status.State, err, diff)
	}
}
