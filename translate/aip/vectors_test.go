// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// TestVectors reads every JSON example of AIP v01.00, and writes a Partner's own again.
func TestVectors(t *testing.T) {
	for name, check := range map[string]func(*testing.T, []byte){
		"01-error-task-not-found.response.json": errorVector(task.Errorf(task.TaskNotFound,
			"任务可能已完成并被清除，或者任务ID无效").WithData("taskId", "task-not-exist-123")),
		"02-rpc-start.request.json":                      call(task.Start, false),
		"03-rpc-start.response-awaiting-completion.json": taskResult,
		"04-rpc-continue.request.json":                   call(task.Continue, false),
		"05-rpc-continue.response-working.json":          taskResult,
		"06-rpc-get.request.json":                        call(task.Get, false),
		"07-rpc-get.response-failed-with-history.json":   taskResult,
		"08-rpc-complete.request.json":                   call(task.Complete, false),
		"09-rpc-complete.response.json":                  taskResult,
		"10-rpc-cancel.request.json":                     call(task.Cancel, false),
		"11-rpc-cancel.response.json":                    taskResult,
		"12-stream-start.request.json":                   call(task.Start, true),
		"13-stream-start.events.json":                    events,
		"14-stream-restream-after-2.request.json":        call(task.ReStream, true),
		"15-stream-restream-after-2.events.json":         events,
		"16-notification-set.request.json": webhookCall(translate.SetWebhook,
			task.Webhook{URL: "https://example.com/notifications", Token: "your_token", Dialect: "aip"}),
		"17-notification-set.response.json": webhooksResult(translate.SetWebhook, aWebhook),
		"18-notification-delete.request.json": webhookCall(translate.DeleteWebhooks,
			task.Webhook{ID: "notification-1"}),
		"19-notification-delete.response.json": webhooksResult(translate.DeleteWebhooks),
		"20-notification-get.request.json":     webhookCall(translate.GetWebhooks, task.Webhook{}),
		"21-notification-get.response.json":    webhooksResult(translate.GetWebhooks, aWebhook),
		"22-notification-start.request.json": webhookCall(translate.Command, task.Webhook{
			ID: "notification-1", Dialect: "aip", States: []task.State{task.Working, task.AwaitingCompletion, task.Failed},
		}),
		"23-notification-start.response.json":          taskResult,
		"24-notification-callback.body-completed.json": bareTask,
		"25-group-invite.request.json":                 all(refused(task.GroupNotSupported), invitation),
		"26-group-invite.response.json":                membership,
		"27-group-invite.response-connection-failed.json": errorVector(task.Errorf(task.ConnectionFailed,
			"连接超时").WithData("host", "mq.example.com").WithData("port", 5672)),
		"28-group-message-start.json":             all(bareMessage, groupCommand),
		"29-group-task-working.json":              all(bareTask, groupTask),
		"30-group-task-awaiting-completion.json":  all(bareTask, groupTask),
		"31-group-message-complete-mentions.json": all(bareMessage, groupCommand),
		"32-group-task-completed.json":            all(bareTask, groupTask),
		"33-group-task-rejected.json":             all(bareTask, groupTask),
		"34-group-task-failed.json":               all(bareTask, groupTask),
		"35-group-message-cancel.json":            all(bareMessage, groupCommand),
		"36-group-task-canceled.json":             all(bareTask, groupTask),
		"37-group-task-awaiting-input.json":       all(bareTask, groupTask),
		"38-group-message-continue-mentions.json": all(bareMessage, groupCommand),
		"39-group-task-working-again.json":        all(bareTask, groupTask),
		"40-group-mgmt-leave.json":                groupManagement,
		"41-group-mgmt-member-status.json":        memberStatus,
	} {
		t.Run(name, func(t *testing.T) { check(t, vector(t, name)) })
	}
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) != 41 {
		t.Errorf("%d vectors, want 41 (%v)", len(files), err)
	}
}

func vector(t testing.TB, name string) []byte {
	data, err := os.ReadFile(filepath.Join("testdata/vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sameJSON compares two texts as JSON values.
func sameJSON(t *testing.T, want, got []byte) {
	t.Helper()
	if d := cmp.Diff(value(t, want), value(t, got)); d != "" {
		t.Error(d)
	}
}

func value(t *testing.T, data []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return v
}

func request(t *testing.T, body []byte) jsonrpc.Request {
	t.Helper()
	req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
	if bad != nil {
		t.Fatal(bad)
	}
	return req
}

func call(command task.Command, stream bool) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		req := request(t, body)
		c, err := decodeRequest(&req)
		if err != nil {
			t.Fatal(err)
		}
		if c.Message.Command != command || c.Stream != stream {
			t.Errorf("got %s, stream %v", c.Message.Command, c.Stream)
		}
		if wantSeq := strings.Count(string(body), "lastEventSeq") * 2; c.AfterSeq != uint64(wantSeq) {
			t.Errorf("after event %d, want %d", c.AfterSeq, wantSeq)
		}
		sameJSON(t, []byte(req.Params.Get("message").Raw), task.AppendMessage(nil, &c.Message))
	}
}

var aWebhook = task.Webhook{ID: "notification-1", TaskID: "task-5678", URL: "https://example.com/notifications",
	Token: "your_token"}

func webhookCall(op translate.Op, want task.Webhook) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		req := request(t, body)
		c, err := decodeRequest(&req)
		if err != nil {
			t.Fatal(err)
		}
		want.TaskID = "task-5678"
		if d := cmp.Diff(&want, c.Webhook); d != "" || c.Op != op || c.Message.TaskID != want.TaskID {
			t.Errorf("op %v, task %s\n%s", c.Op, c.Message.TaskID, d)
		}
	}
}

func webhooksResult(op translate.Op, hooks ...task.Webhook) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		sameJSON(t, body, Server().AppendWebhooks(nil, res.ID, &translate.Call{Op: op}, hooks))
	}
}

// all checks a vector in several ways.
func all(checks ...func(*testing.T, []byte)) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		for _, check := range checks {
			check(t, body)
		}
	}
}

func refused(kind task.Kind) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		req := request(t, body)
		if _, err := decodeRequest(&req); task.KindOf(err) != kind {
			t.Errorf("got %v, want %v", err, kind)
		}
	}
}

func errorVector(err error) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		sameJSON(t, body, Server().AppendError(nil, jsonrpc.ID(`"1"`), err))
	}
}

func taskResult(t *testing.T, body []byte) {
	res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{})
	if bad != nil {
		t.Fatal(bad)
	}
	state := decodeJSON[task.Task](t, res.Result.Raw)
	sameJSON(t, body, Server().AppendTask(nil, res.ID, nil, &state))
}

func bareTask(t *testing.T, body []byte) {
	state := decodeJSON[task.Task](t, string(body))
	sameJSON(t, body, task.AppendTask(nil, &state))
}

func bareMessage(t *testing.T, body []byte) {
	m := decodeJSON[task.Message](t, string(body))
	sameJSON(t, body, task.AppendMessage(nil, &m))
	// The same message by rpc.
	rpc := append([]byte(`{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":`), body...)
	call(m.Command, false)(t, append(rpc, "}}"...))
}

func events(t *testing.T, body []byte) {
	for _, want := range decodeJSON[[]json.RawMessage](t, string(body)) {
		res, bad := jsonrpc.ParseResponse(want, jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		ev, state := decodeEvent(t, res)
		sameJSON(t, want, Server().NewStream(res.ID, nil, &state).Event(nil, &ev).Data)
	}
}

// decodeEvent reads a StreamResponse as a Leader does. The task has the parts in the event.
func decodeEvent(t *testing.T, res jsonrpc.Response) (ev task.Event, state task.Task) {
	t.Helper()
	data := res.Result.Get("eventData")
	ev.Seq = res.Result.Get("eventSeq").Uint()
	state.ID, state.SessionID = data.Get("taskId").String(), data.Get("sessionId").String()
	switch kind := data.Get("type").String(); kind {
	case "task":
		state = decodeJSON[task.Task](t, data.Raw)
		ev.Task = &state
	case "message":
		m := decodeJSON[task.Message](t, data.Raw)
		ev.Message = &m
	case "status-update":
		s := decodeJSON[task.Status](t, data.Get("status").Raw)
		ev.Status = &s
	case "product-chunk":
		c := decodeJSON[task.Chunk](t, data.Raw)
		ev.Chunk = &c
	default:
		t.Fatalf("an event of type %q", kind)
	}
	return ev, state
}

func decodeJSON[T any](t *testing.T, data string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
