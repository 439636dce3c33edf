// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

func value(t *testing.T, object []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(object, &v); err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	return v
}

// TestGRPCIsREST: the messages over gRPC are, as JSON, those over HTTP+JSON.
func TestGRPCIsREST(t *testing.T) {
	at := time.Date(2025, 9, 1, 12, 0, 0, 5e6, time.UTC)
	tk := task.Task{
		ID: "t", SessionID: "c", Status: task.Status{State: task.AwaitingInput, ChangedAt: at,
			DataItems: []task.DataItem{task.Text("which \"colour\"?\u2028")}},
		Products: []task.Product{{ID: "p", Name: "n", Description: "d", DataItems: []task.DataItem{
			task.Text("x"),
			{Kind: task.FileItem, Name: "f", MIMEType: "image/png", Bytes: "QUJD"},
			{Kind: task.FileItem, URI: "https://example.com/f"},
			{Kind: task.DataKind, Data: json.RawMessage(`{"a":[1,2.5,null,{"b":"c"}]}`),
				Metadata: json.RawMessage(`{"k":{"v":1}}`)},
		}}},
		MessageHistory: []task.Message{
			{ID: "m", SenderRole: task.Leader, Command: task.Start, DataItems: []task.DataItem{task.Text("hi")}},
			{SentAt: at, SenderRole: task.Leader, Command: task.Continue, DataItems: []task.DataItem{task.Text("blue")}},
		},
	}
	rest, grpc := RESTServer(false), GRPCServer(false)
	same := func(name string, want, message []byte, m proto.Message) {
		t.Helper()
		got, err := toJSON(m, message)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(value(t, want), value(t, got)); diff != "" {
			t.Errorf("%s (-REST +gRPC):\n%s", name, diff)
		}
	}
	get, start := &translate.Call{History: -1}, &translate.Call{History: -1}
	start.Message.Command = task.Start
	same("get", rest.AppendTask(nil, nil, get, &tk), grpc.AppendTask(nil, nil, get, &tk), new(a2apb.Task))
	same("start", rest.AppendTask(nil, nil, start, &tk), grpc.AppendTask(nil, nil, start, &tk),
		new(a2apb.SendMessageResponse))
	if object := rest.AppendTask(nil, nil, get, &tk); strings.Contains(string(object), `"messageId":""`) {
		t.Errorf("a message has no id: %s", object)
	}
	page := &task.Page{Tasks: []task.Task{tk}, Next: "more", Size: 1, Total: 7}
	same("list", rest.(translate.Lister).AppendTasks(nil, nil, get, page),
		grpc.(translate.Lister).AppendTasks(nil, nil, get, page), new(a2apb.ListTasksResponse))
	set := &translate.Call{Op: translate.SetWebhook}
	hooks := []task.Webhook{{ID: "w", TaskID: "t", URL: "https://example.com", Token: "s", Scheme: "Bearer",
		Credentials: "x"}}
	same("webhook", rest.AppendWebhooks(nil, nil, set, hooks), grpc.AppendWebhooks(nil, nil, set, hooks),
		new(a2apb.TaskPushNotificationConfig))
	restEvents, grpcEvents := rest.NewStream(nil, start, &tk), grpc.NewStream(nil, start, &tk)
	for i, ev := range []task.Event{
		{Task: &tk},
		{Status: &task.Status{State: task.Working, ChangedAt: at}},
		{Chunk: &task.Chunk{Product: tk.Products[0], Append: true, Last: true}},
		{Status: &task.Status{State: task.AwaitingCompletion, ChangedAt: at}}, // not shown
		{Status: &task.Status{State: task.Completed, ChangedAt: at}},
	} {
		want, got := restEvents.Event(nil, &ev), grpcEvents.Event([]byte("before"), &ev)
		if want.End != got.End || (want.Data == nil) != (got.Data == nil) {
			t.Errorf("event %d is %+v, want %+v", i, got, want)
		}
		if want.Data != nil {
			same("event", want.Data, got.Data[len("before"):], new(a2apb.StreamResponse))
		}
	}
}

// TestGRPCGolden: the bytes of a message, as any other implementation writes them.
func TestGRPCGolden(t *testing.T) {
	event := &task.Event{Chunk: &task.Chunk{Append: true,
		Product: task.Product{ID: "p", DataItems: []task.DataItem{task.Text("hello")}}}}
	got := GRPCServer(false).NewStream(nil, new(translate.Call), &task.Task{ID: "t", SessionID: "c"}).Event(nil, event)
	// artifact_update (4) {task_id (1) context_id (2) artifact (3) {artifact_id (1) parts (4) {text (1)}} append (4)}
	want := "\x22\x16\x0a\x01t\x12\x01c\x1a\x0c\x0a\x01p\x22\x07\x0a\x05hello\x20\x01"
	if string(got.Data) != want {
		t.Errorf("got %q, want %q", got.Data, want)
	}
}

// TestGRPCPrunes: a member only looking like a field does not cost the rest of the object.
func TestGRPCPrunes(t *testing.T) {
	for object, want := range map[string]string{
		`{"id":"t","status":{"state":"TASK_STATE_WORKING"},"context_id":5,"acme":{"x":1}}`: `{"id":"t","status":` +
			`{"state":"TASK_STATE_WORKING"}}`,
		`{"id":"t","metadata":"text","history":7,"artifacts":[1,{"artifactId":"a","parts":[{"text":"x","data":{}},` +
			`{"raw":"?"},{"text":5}]}]}`: `{"id":"t","artifacts":[{"artifactId":"a","parts":[{"text":"x"},{},{}]}]}`,
		`{"id":"t","status":{"state":"NEW_STATE","timestamp":"yesterday"},"metadata":{"a":[null]}}`: `{"id":"t",` +
			`"status":{},"metadata":{"a":[null]}}`,
		`{"id":"t","id":"u","contextId":null,"task_id":{}}`: `{"id":"t"}`,
	} {
		m := new(a2apb.Task)
		if err := proto.Unmarshal(appendProto(nil, new(a2apb.Task), []byte(object)), m); err != nil {
			t.Fatal(err)
		}
		got, err := protojson.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(value(t, []byte(want)), value(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
}

// TestGRPCUnknownValues: a value of an enumeration not in the schema keeps its own name.
func TestGRPCUnknownValues(t *testing.T) {
	server, client := GRPCServer(false), GRPCClient()
	encode := func(m proto.Message) []byte {
		encoded, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	decode := func(method string, m proto.Message) error {
		params, err := server.(translate.Transcoder).Params(method, encode(m))
		if err == nil {
			req := &translate.Request{Request: jsonrpc.Request{Method: method, Params: gjson.ParseBytes(params)}}
			_, err = server.Decode(req)
		}
		return err
	}
	_, reported := client.Reply(encode(&a2apb.SendMessageResponse{Payload: &a2apb.SendMessageResponse_Task{
		Task: &a2apb.Task{Id: "t", Status: &a2apb.TaskStatus{State: 99}}}}), nil)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{decode(send, &a2apb.SendMessageRequest{Message: &a2apb.Message{MessageId: "m", Role: 7,
			Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hi"}}}}}),
			"invalid-params at message.role: role must be ROLE_USER: callers are users here"},
		{decode(listTasks, &a2apb.ListTasksRequest{Status: 99}),
			"invalid-params at status: status must be a state, such as TASK_STATE_WORKING"},
		{reported, `invalid-agent-response: the agent's answer has the state "99", which A2A 1.0 does not have`},
	} {
		if got := fmt.Sprint(tt.err); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// TestGRPCStatus: a status without a reason is known by its code.
func TestGRPCStatus(t *testing.T) {
	c := GRPCClient().(translate.StatusReader)
	for _, tt := range []struct {
		code code.Code
		kind task.Kind
	}{
		{code.Code_NOT_FOUND, task.TaskNotFound}, {code.Code_UNIMPLEMENTED, task.MethodNotFound},
		{code.Code_INVALID_ARGUMENT, task.InvalidParams}, {code.Code_FAILED_PRECONDITION, task.UnsupportedOperation},
		{code.Code_UNAVAILABLE, task.AgentUnavailable}, {code.Code_RESOURCE_EXHAUSTED, task.AgentUnavailable},
		{code.Code_DEADLINE_EXCEEDED, task.AgentTimeout}, {code.Code_UNAUTHENTICATED, task.InvalidAgentResponse},
		{code.Code_INTERNAL, task.Internal}, {code.Code_UNKNOWN, task.Internal}, {code.Code_DATA_LOSS, task.Internal},
	} {
		encoded, err := proto.Marshal(&status.Status{Code: int32(tt.code), Message: "a\nsentence"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Failure(encoded); task.KindOf(err) != tt.kind || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v is %v, want %v", tt.code, err, tt.kind)
		}
	}
	if err := c.Failure([]byte{0xff}); task.KindOf(err) != task.InvalidAgentResponse {
		t.Errorf("got %v", err)
	}
}

// FuzzGRPC: any message is answered or refused, and any object becomes a message.
func FuzzGRPC(f *testing.F) {
	f.Add(uint8(0), []byte("\x12\x0c\x0a\x01m\x20\x01\x2a\x05\x0a\x03hey"))
	f.Add(uint8(1), []byte(`{"id":"t","artifacts":[{"parts":[{"raw":"QQ","text":"x"}]}],"metadata":{"a":1e400}}`))
	methods := []string{send, sendStream, getTask, listTasks, cancelTask, subscribe, createConfig, getConfig, listConfigs,
		deleteConfig, extendedCard, "NoSuchMethod"}
	s, c := grpcServer{NewBase(&ownSchema, false)}, grpcClient{client{rest: true}}
	f.Fuzz(func(t *testing.T, n uint8, body []byte) {
		method := methods[int(n)%len(methods)]
		params, err := s.Params(method, body)
		switch {
		case err != nil && task.KindOf(err) != task.ParseError:
			t.Fatal(err)
		case err == nil && params != nil && !json.Valid(params):
			t.Fatalf("%q is no JSON", params)
		}
		for _, read := range []func() error{
			func() error { _, err := c.Reply(body, nil); return err },
			func() error { _, err := c.NewStream(nil).Event("", body); return err },
			func() error { return c.Failure(body) },
		} {
			if err := read(); err != nil && strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q", err)
			}
		}
		if json.Valid(body) {
			m := new(a2apb.Task)
			if err := proto.Unmarshal(appendProto(nil, new(a2apb.Task), body), m); err != nil {
				t.Fatal(err)
			}
		}
	})
}
