// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

func vector(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// partner serves h under /agent and returns a client of it.
func partner(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := New(server.URL+"/agent/", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.Sender = "agent-leader-aic"
	return c
}

// answering is a Partner answering every request with one result or error, under its id.
func answering(t *testing.T, member, value string) *Client {
	return partner(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":`+gjson.GetBytes(body, "id").Raw+`,"`+member+`":`+value+`}`)
	})
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// The specification's own requests come out of the client.
func TestRequests(t *testing.T) {
	for name, call := range map[string]task.Call{
		"02-rpc-start.request.json": {Message: task.Message{ID: "msg-5678", SentAt: at(t, "2025-09-01T11:58:00+08:00"),
			Command:   task.Start,
			DataItems: []task.DataItem{task.Text("请帮我做一个3天北京文化主体游的行程安排。")}}},
		"04-rpc-continue.request.json": {Message: task.Message{ID: "msg-6789", SentAt: at(t, "2025-09-01T12:02:00+08:00"),
			Command: task.Continue,
			DataItems: []task.DataItem{task.Text(
				"请继续完善行程安排，" +
					"增加一些能亲自体验的文化活动，不要都是观光景点。")}}},
		"06-rpc-get.request.json": {Message: task.Message{ID: "msg-9012", SentAt: at(t, "2025-09-01T12:06:00+08:00"),
			Command: task.Get}},
		"08-rpc-complete.request.json": {Message: task.Message{ID: "msg-7890", SentAt: at(t, "2025-09-01T12:09:00+08:00"),
			Command: task.Complete}},
		"10-rpc-cancel.request.json": {Message: task.Message{ID: "msg-8901", SentAt: at(t, "2025-09-01T12:14:00+08:00"),
			Command: task.Cancel}},
	} {
		t.Run(name, func(t *testing.T) {
			call.Message.TaskID, call.Message.SessionID = "task-1234", "session-91011"
			var got []byte
			c := partner(t, func(w http.ResponseWriter, r *http.Request) {
				got, _ = io.ReadAll(r.Body)
				want := []string{"POST", "/agent/rpc", "application/json"}
				if diff := cmp.Diff(want, []string{r.Method, r.URL.Path, r.Header.Get("Content-Type")}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
			if _, err := c.Do(t.Context(), &call); err == nil {
				t.Error("an empty answer was taken")
			}
			// The request's id is the client's own choice.
			want := bytes.Replace(vector(t, name), []byte(`"id": "`+gjson.GetBytes(vector(t, name), "id").Str+`"`),
				[]byte(`"id": "`+call.Message.ID+`"`), 1)
			if diff := cmp.Diff(value(t, want), value(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func value(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func TestWhatTheCallLeavesOpenIsFilledIn(t *testing.T) {
	c := &Client{Sender: "me"}
	before := time.Now().Truncate(time.Millisecond)
	a, b := c.complete(&task.Call{}), c.complete(&task.Call{})
	if a.ID == b.ID || !strings.HasPrefix(a.ID, "msg-") {
		t.Errorf("ids %q and %q", a.ID, b.ID)
	}
	if a.SentAt.Before(before) || a.SentAt.After(time.Now()) {
		t.Errorf("sent at %s", a.SentAt)
	}
	a.ID, a.SentAt = "", time.Time{}
	if diff := cmp.Diff(task.Message{SenderRole: task.Leader, SenderID: "me"}, a); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	given := task.Message{ID: "1", SentAt: before, SenderRole: task.Partner, SenderID: "you",
		Params: json.RawMessage(`{"x":1}`), Command: task.Get}
	if diff := cmp.Diff(given, c.complete(&task.Call{Message: given})); diff != "" {
		t.Errorf("what is given changes (-want +got):\n%s", diff)
	}
}

func TestParams(t *testing.T) {
	for _, tt := range []struct {
		call task.Call
		want string
	}{
		{task.Call{Message: task.Message{Command: task.Start}}, ``},
		{task.Call{Message: task.Message{Command: task.Start}, Terms: task.Terms{Response: 2 * time.Second}},
			`{"responseTimeout":2000}`},
		{task.Call{Message: task.Message{Command: task.Start},
			Terms: task.Terms{Response: time.Second, AwaitingInput: time.Minute,
				AwaitingCompletion: time.Hour, MaxProductsBytes: 7}},
			`{"responseTimeout":1000,"awaitingInputTimeout":60000,"awaitingCompletionTimeout":3600000,"maxProductsBytes":7}`},
		{task.Call{Message: task.Message{Command: task.Continue}, Terms: task.Terms{Response: time.Second}}, ``},
		{task.Call{Message: task.Message{Command: task.Get}}, `{"lastMessageSentAt":null,"lastStateChangedAt":null}`},
		{task.Call{Message: task.Message{Command: task.Get}, MessagesAfter: at(t, "2025-09-01T12:00:00+08:00"),
			StatesAfter: at(t, "2025-09-01T12:00:01Z")},
			`{"lastMessageSentAt":"2025-09-01T12:00:00+08:00","lastStateChangedAt":"2025-09-01T12:00:01Z"}`},
	} {
		if diff := cmp.Diff(tt.want, string(v1.params(&tt.call))); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.call, diff)
		}
	}
}

// The specification's own answers are understood, whole.
func TestAnswers(t *testing.T) {
	for _, name := range []string{
		"03-rpc-start.response-awaiting-completion.json", "05-rpc-continue.response-working.json",
		"07-rpc-get.response-failed-with-history.json", "09-rpc-complete.response.json", "11-rpc-cancel.response.json",
	} {
		result := gjson.GetBytes(vector(t, name), "result").Raw
		a, err := answering(t, "result", result).Do(t.Context(), &task.Call{Message: task.Message{Command: task.Get}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(value(t, []byte(result)), value(t, task.AppendTask(nil, a.Task))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(result, gjson.GetBytes(a.Raw, "result").Raw); diff != "" {
			t.Errorf("%s: raw (-want +got):\n%s", name, diff)
		}
	}
}

func TestRequestsOfV2(t *testing.T) {
	for _, tt := range []struct {
		call   task.Call
		params string
	}{
		{task.Call{Message: task.Message{Command: task.Start, DataItems: []task.DataItem{task.Text("a")}},
			Terms: task.Terms{Response: 2 * time.Second, MaxProductsBytes: 7}},
			`{"command":{"type":"task-command","id":"m","sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader",` +
				`"senderId":"agent-leader-aic","command":"start","commandParams":{"timeout":2000,"maxProductsBytes":7},` +
				`"dataItems":[{"type":"text","text":"a"}],"taskId":"t","sessionId":"s"}}`},
		{task.Call{Message: task.Message{Command: task.Get}},
			`{"command":{"type":"task-command","id":"m","sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader",` +
				`"senderId":"agent-leader-aic","command":"get",` +
				`"commandParams":{"lastCommandSentAt":null,"lastStateChangedAt":null},` +
				`"dataItems":[],"taskId":"t","sessionId":"s"}}`},
	} {
		tt.call.Message.ID, tt.call.Message.SentAt = "m", at(t, "2025-09-01T11:58:00+08:00")
		tt.call.Message.TaskID, tt.call.Message.SessionID = "t", "s"
		for _, streamed := range []bool{false, true} {
			var got []byte
			c := partner(t, func(_ http.ResponseWriter, r *http.Request) { got, _ = io.ReadAll(r.Body) })
			c.V2 = true
			want := `{"jsonrpc":"2.0","id":"m","method":"rpc","params":` + tt.params + `}`
			if streamed {
				for range c.Follow(t.Context(), &tt.call, func(error) {}) {
				}
				want = strings.Replace(strings.Replace(want, `{"command":{`, `{"message":{`, 1), `"rpc"`, `"stream"`, 1)
			} else if _, err := c.Do(t.Context(), &tt.call); err == nil {
				t.Error("an empty answer was taken")
			}
			if diff := cmp.Diff(value(t, []byte(want)), value(t, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

func TestAnswersOfV2(t *testing.T) {
	const result = `{"type":"task-result","id":"m1","sentAt":"2025-09-01T12:00:00+08:00","senderRole":"partner",` +
		`"senderId":"p","taskId":"t","sessionId":"s","status":{"state":"working","stateChangedAt":` +
		`"2025-09-01T12:00:00+08:00"},"commandHistory":[{"type":"task-command","id":"m","command":"start",` +
		`"mentions":"all","dataItems":[]}]}`
	changed := at(t, "2025-09-01T12:00:00+08:00")
	want := &task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Working, ChangedAt: changed},
		MessageHistory: []task.Message{{ID: "m", Command: task.Start, DataItems: []task.DataItem{}}}}
	c := answering(t, "result", result)
	c.V2 = true
	a, err := c.Do(t.Context(), new(task.Call))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, a.Task); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for v, text := range map[*version]string{&v1: result, &v2: `{"type":"task","status":{"state":"working"}}`} {
		_, err := v.decode([]byte(`{"jsonrpc":"2.0","id":"1","result":`+text+`}`), jsonrpc.ID(`"1"`))
		if err == nil || err.Error() != "the answer is neither a task nor a message"+v.other {
			t.Errorf("error %v", err)
		}
	}
	frame := func(data string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":"1","result":{"eventSeq":3,"eventData":` + data + `}}`)
	}
	for _, tt := range []struct {
		data string
		want task.Event
	}{
		{result, task.Event{Task: want}},
		{`{"type":"task-status-update","id":"m","taskId":"t","status":{"state":"working","stateChangedAt":` +
			`"2025-09-01T12:00:00+08:00"}}`, task.Event{Status: &task.Status{State: task.Working, ChangedAt: changed}}},
		{`{"type":"product-chunk","id":"m","taskId":"t","product":{"id":"p","dataItems":[]},"append":true}`,
			task.Event{Chunk: &task.Chunk{Product: task.Product{ID: "p", DataItems: []task.DataItem{}}, Append: true}}},
	} {
		ev, err := v2.decodeEvent(frame(tt.data), jsonrpc.ID(`"1"`))
		if err != nil {
			t.Fatal(err)
		}
		tt.want.Seq = 3
		if diff := cmp.Diff(tt.want, ev.Event); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Partners on the SDK of AIP 2 answer errors by an HTTP status if a stream was asked for.
func TestErrorOfV2ByStatus(t *testing.T) {
	const body = `{"detail":{"code":-32009,"message":"Authorization failed","data":"senderId"}}`
	c := partner(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, http.StatusForbidden) })
	c.V2 = true
	for _, err := range c.Follow(t.Context(), &task.Call{Message: task.Message{Command: task.Start}}, func(error) {}) {
		var got *Error
		if !errors.As(err, &got) {
			t.Fatalf("error %v", err)
		}
		want := &Error{Code: -32009, Message: "Authorization failed", Data: json.RawMessage(`"senderId"`),
			Raw: []byte(body + "\n")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAnswerIsAMessage(t *testing.T) {
	message := gjson.GetBytes(vector(t, "02-rpc-start.request.json"), "params.message").Raw
	a, err := answering(t, "result", message).Do(t.Context(), new(task.Call))
	if err != nil {
		t.Fatal(err)
	}
	if a.Task != nil || a.Message == nil || a.Message.ID != "msg-5678" {
		t.Errorf("answer %+v", a)
	}
}

func TestAnswerIsAnError(t *testing.T) {
	body := vector(t, "01-error-task-not-found.response.json")
	_, err := partner(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(body) }).Do(t.Context(), new(task.Call))
	var got *Error
	if !errors.As(err, &got) {
		t.Fatalf("error %v", err)
	}
	want := &Error{Code: -32001, Message: "Task not found", Data: json.RawMessage(gjson.GetBytes(body, "error.data").Raw),
		Raw: body}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("-32001 Task not found", got.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	const id = `"id":"msg-1"`
	for _, tt := range []struct{ body, want string }{
		{``, "the answer has HTTP status 200 and is empty"},
		{`<html>`, "the answer is not a JSON-RPC response"},
		{`{"jsonrpc":"2.0",` + id + `}`, "the answer is not a JSON-RPC response: a response needs a result or an error"},
		{`{"jsonrpc":"2.0","id":"msg-2","result":{"type":"task"}}`, "the answer has the id of another request"},
		{`{"jsonrpc":"2.0","id":null,"result":{"type":"task"}}`, "the answer has the id of another request"},
		{`{"jsonrpc":"2.0",` + id + `,"result":true}`, "the answer is neither a task nor a message"},
		{`{"jsonrpc":"2.0",` + id + `,"result":{"type":"task-result"}}`, "the answer is neither a task nor a message"},
		{`{"jsonrpc":"2.0",` + id + `,"result":{"type":"task","status":{"state":"Working"}}}`,
			"the answer is a task in an unknown state"},
		{`{"jsonrpc":"2.0",` + id + `,"result":{"type":"task","products":{}}}`,
			"the answer is no valid AIP object: json: cannot unmarshal"},
	} {
		_, err := partner(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tt.body) }).
			Do(t.Context(), &task.Call{Message: task.Message{ID: "msg-1"}})
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", tt.body, err, tt.want)
		}
	}
}

func TestAnswerTooLarge(t *testing.T) {
	c := answering(t, "result", `"`+strings.Repeat("x", 1000)+`"`)
	c.MaxBytes = 500
	_, err := c.Do(t.Context(), new(task.Call))
	if err == nil || err.Error() != "the answer has more than 500 bytes" {
		t.Errorf("error %v", err)
	}
}

func TestStatus(t *testing.T) {
	_, err := partner(t, func(w http.ResponseWriter,
		_ *http.Request) {
		http.Error(w, "no such thing", 404)
	}).Do(t.Context(), new(task.Call))
	var got *StatusError
	if !errors.As(err, &got) || got.Status != 404 || string(got.Body) != "no such thing\n" {
		t.Errorf("error %#v", err)
	}
	if diff := cmp.Diff("the answer has HTTP status 404 Not Found", err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A command does not go to the address in a redirect.
func TestRedirectIsNotFollowed(t *testing.T) {
	reached := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer elsewhere.Close()
	_, err := partner(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}).Do(t.Context(), new(task.Call))
	var got *StatusError
	if !errors.As(err, &got) || got.Status != http.StatusTemporaryRedirect || reached {
		t.Errorf("error %v, reached %t", err, reached)
	}
}

func TestContextEndsTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := partner(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}).Do(ctx, new(task.Call))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestAddresses: a Partner is called at its mount point or at its endpoint.
func TestAddresses(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.Path }))
	t.Cleanup(server.Close)
	for address, want := range map[string]string{
		"": "/notification/get", "/": "/notification/get", "/rpc": "/notification/get",
		"/agent": "/agent/notification/get", "/agent/rpc": "/agent/notification/get",
	} {
		c, err := New(server.URL+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		_, _, _ = c.Request(t.Context(), "notification/get", nil) // the answer is empty
		if got != want {
			t.Errorf("%s: the request goes to %s", address, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, u := range []string{"", "localhost:8443", "ftp://a/", "https:///x", "https://a/?q=1", "https://a/#f",
		"https://u:p@a/", "https://a\x7f"} {
		_, err := New(u, nil)
		if err == nil {
			t.Errorf("%q was taken", u)
			continue
		}
		if strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: the error holds a password: %v", u, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"01-error-task-not-found.response.json",
		"03-rpc-start.response-awaiting-completion.json",
		"07-rpc-get.response-failed-with-history.json"} {
		f.Add(vector(f, name))
	}
	f.Add([]byte(`{"id":"1","result":{"type":"message","id":"m"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		v2.decode(body, jsonrpc.ID(`"1"`)) // does not panic
		a, err := v1.decode(body, jsonrpc.ID(`"1"`))
		if err != nil {
			if a != nil {
				t.Errorf("an answer beside the error %v", err)
			}
			return
		}
		if (a.Task == nil) == (a.Message == nil) {
			t.Errorf("not exactly one of task and message: %+v", a)
		}
		if a.Task != nil && !a.Task.Status.State.Valid() {
			t.Errorf("state %q", a.Task.Status.State)
		}
	})
}
