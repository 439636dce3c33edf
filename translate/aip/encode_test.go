// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// TestErrorTable holds the table against the one of AIP v01.00 §5.2.
func TestErrorTable(t *testing.T) {
	want := map[task.Kind]errorForm{
		task.ParseError:               {-32700, "Invalid JSON payload", ""},
		task.InvalidRequest:           {-32600, "Invalid JSON-RPC Request", ""},
		task.MethodNotFound:           {-32601, "Method not found", ""},
		task.InvalidParams:            {-32602, "Invalid method parameters", ""},
		task.Internal:                 {-32603, "Internal server error", ""},
		task.TaskNotFound:             {-32001, "Task not found", ""},
		task.TaskNotCancelable:        {-32002, "Task cannot be canceled", ""},
		task.NotificationNotSupported: {-32003, "Notification is not supported", ""},
		task.UnsupportedOperation:     {-32004, "This operation is not supported", ""},
		task.ContentTypeNotSupported:  {-32005, "Incompatible content types", ""},
		task.InvalidAgentResponse:     {-32006, "Invalid agent response type", ""},
		task.GroupNotSupported:        {-32007, "Group communication is not supported", ""},
		task.AuthenticationRequired:   {-32008, "Authentication required", ""},
		task.AuthorizationFailed:      {-32009, "Authorization failed", ""},
		task.AccessTokenInvalid:       {-32010, "Invalid access token", ""},
		// Not in the specification.
		task.LimitExceeded:    {-32050, "Limit exceeded", ""},
		task.AgentUnavailable: {-32603, "Internal server error", "AGENT_UNAVAILABLE"},
		task.AgentTimeout:     {-32603, "Internal server error", "AGENT_TIMEOUT"},
		task.StoreUnavailable: {-32603, "Internal server error", ""},
		// An invitation to a group.
		task.InvitationRejected: {-32009, "Authorization failed", "INVITATION_REJECTED"},
		task.ConnectionFailed:   {-32603, "Internal error", "CONNECTION_FAILED"},
	}
	for _, k := range task.Kinds() {
		if int(k) >= len(errorTable) {
			t.Errorf("%v has no entry", k)
			continue
		}
		if w, ok := want[k]; !ok || errorTable[k] != w {
			t.Errorf("%v: got %+v, want %+v", k, errorTable[k], w)
		}
	}
	if len(errorTable) != len(task.Kinds()) {
		t.Errorf("%d entries for %d kinds", len(errorTable), len(task.Kinds()))
	}
}

func TestAppendError(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"no kind": {errors.New("secret"), `{"code":-32603,"message":"Internal server error"}`},
		"no detail": {&task.Error{Kind: task.TaskNotFound, Err: errors.New("secret")},
			`{"code":-32001,"message":"Task not found"}`},
		"field": {task.Errorf(task.InvalidParams, "taskId is missing").WithField("params.message.taskId"),
			`{"code":-32602,"message":"Invalid method parameters","data":{"field":"params.message.taskId","details":"taskId ` +
				`is missing"}}`},
		"limit": {fmt.Errorf("wrapped: %w", task.Errorf(task.LimitExceeded, "too many streams").WithData("max",
			7).WithData("limit", "streams")),
			`{"code":-32050,"message":"Limit exceeded","data":{"limit":"streams","max":7,"details":"too many streams"}}`},
		"agent": {task.Errorf(task.AgentUnavailable, "no connection").WithCause(errors.New("secret")),
			`{"code":-32603,"message":"Internal server error","data":{"errorType":"AGENT_UNAVAILABLE","details":"no ` +
				`connection"}}`},
		"reserved": {task.Errorf(task.InvalidParams, "a").WithData("details", "b").WithData("field", "c"),
			`{"code":-32602,"message":"Invalid method parameters","data":{"details":"a"}}`},
		"unsayable": {task.Errorf(task.InvalidParams, "").WithData("a", math.NaN()),
			`{"code":-32602,"message":"Invalid method parameters"}`},
	} {
		t.Run(name, func(t *testing.T) {
			want := `{"jsonrpc":"2.0","id":7,"error":` + tt.want + `}`
			if d := cmp.Diff(want, string(Server().AppendError(nil, jsonrpc.ID("7"), tt.err))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAppendEvent(t *testing.T) {
	at := time.Date(2025, 9, 1, 12, 0, 0, 0, beijing)
	state := task.Task{ID: "t1", SessionID: "s1", GroupID: "g1", SenderID: "p1"}
	for name, tt := range map[string]struct {
		event task.Event
		want  string
	}{
		"task": {task.Event{Seq: 1, Task: &task.Task{ID: "t1", SessionID: "s1",
			Status: task.Status{State: task.Accepted, ChangedAt: at}}},
			`{"eventSeq":1,"eventData":{"type":"task","id":"t1","status":{"state":"accepted",` +
				`"stateChangedAt":"2025-09-01T12:00:00+08:00"},"products":[],"sessionId":"s1"}}`},
		"status": {task.Event{Seq: 2, Status: &task.Status{State: task.Working, ChangedAt: at,
			DataItems: []task.DataItem{task.Text("a\nb")}}},
			`{"eventSeq":2,"eventData":{"type":"status-update","taskId":"t1","status":{"state":"working",` +
				`"stateChangedAt":"2025-09-01T12:00:00+08:00","dataItems":[{"type":"text","text":"a\nb"}]},"sessionId":"s1"}}`},
		"chunk": {task.Event{Seq: 3, Chunk: &task.Chunk{Product: task.Product{ID: "p",
			DataItems: []task.DataItem{task.Text("x")}}, Append: true}},
			`{"eventSeq":3,"eventData":{"type":"product-chunk","taskId":"t1","product":{"id":"p","dataItems":[{"type":"text",` +
				`"text":"x"}]},"append":true,"lastChunk":false,"sessionId":"s1"}}`},
		"message": {task.Event{Seq: 4, Message: &task.Message{ID: "m", SentAt: at, SenderRole: task.Partner, SenderID: "p1"}},
			`{"eventSeq":4,"eventData":{"type":"message","id":"m","sentAt":"2025-09-01T12:00:00+08:00","senderRole":"partner",` +
				`"senderId":"p1","dataItems":[]}}`},
		"the cause is not shown": {task.Event{Seq: 5, Status: &task.Status{State: task.Working, ChangedAt: at},
			Cause: &task.Message{ID: "secret"}},
			`{"eventSeq":5,"eventData":{"type":"status-update","taskId":"t1","status":{"state":"working",` +
				`"stateChangedAt":"2025-09-01T12:00:00+08:00"},"sessionId":"s1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			want := `{"jsonrpc":"2.0","id":"x","result":` + tt.want + `}`
			if d := cmp.Diff(want, string(Server().NewStream(jsonrpc.ID(`"x"`), nil, &state).Event(nil,
				&tt.event).Data)); d != "" {
				t.Error(d)
			}
		})
	}
}

func BenchmarkAppendTask(b *testing.B) {
	at := time.Date(2025, 9, 1, 12, 0, 0, 0, beijing)
	state := task.Task{
		ID: "task-1234", SessionID: "session-91011", Status: task.Status{State: task.AwaitingCompletion, ChangedAt: at},
		Products: []task.Product{{ID: "product-1", Name: "北京文化游行程安排.pdf",
			DataItems: []task.DataItem{task.Text(strings.Repeat("请帮我做一个行程安排。", 20))}}},
	}
	id := jsonrpc.ID(`"1"`)
	s := Server()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = s.AppendTask(dst[:0], id, nil, &state)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkAppendEvent(b *testing.B) {
	state := task.Task{ID: "task-1234", SessionID: "session-91011"}
	ev := task.Event{Seq: 7, Chunk: &task.Chunk{Product: task.Product{ID: "product-1",
		DataItems: []task.DataItem{task.Text("a few words")}}, Append: true}}
	id := jsonrpc.ID(`"1"`)
	s := Server().NewStream(id, nil, &state)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = s.Event(dst[:0], &ev).Data
	}
	b.SetBytes(int64(len(dst)))
}

// TestAppendRecord: an event is sent in the same bytes whether it is decoded or not.
func TestAppendRecord(t *testing.T) {
	state := task.Task{ID: "task-1", SessionID: "session-1"}
	for i, ev := range translatetest.Events(&state) {
		ev.Seq = uint64(i + 1)
		want := string(Server().NewStream(jsonrpc.ID("7"), nil, &state).Event(nil, &ev).Data)
		got := string(Server().NewStream(jsonrpc.ID("7"), nil, &state).(translate.RecordEncoder).Record(nil, ev.Seq,
			task.AppendEvent(nil, &ev)).Data)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("event %d (-decoded +direct):\n%s", i, diff)
		}
	}
}
