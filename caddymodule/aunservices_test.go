// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// withAssignee returns the configuration with an agent that connects to the gateway.
func (s *aunSite) withAssignee(more string) []byte {
	s.t.Helper()
	return []byte(strings.NewReplacer(`"a2a/legacy"`, `"aun-assignee"`, strconv.Quote(s.agent), `"worker.aid.test"`).
		Replace(string(s.config(more))))
}

// received waits for a message with a payload of a type, and returns the payload.
func received(ctx context.Context, t *testing.T, conn *aunpeer.Conn, kind string) (payload gjson.Result) {
	t.Helper()
	_, err := conn.Event(ctx, func(f aunpeer.Frame) bool {
		payload = gjson.GetBytes(f.Params, "payload")
		return f.Method == "event/message.received" && payload.Get("type").Str == kind
	})
	if err != nil {
		t.Fatalf("no message of type %s: %v", kind, err)
	}
	return payload
}

func send(ctx context.Context, t *testing.T, conn *aunpeer.Conn, text, thread string) {
	t.Helper()
	_, err := conn.Call(ctx, "message.send", map[string]any{"to": "reviewer.aid.test", "message_id": text,
		"payload": aunpeer.Payload{Type: "text", Text: text, ThreadID: thread}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAUNMessages: a client talks to an agent of A2A by plain messages, also over a restart, and pulls what it missed.
func TestAUNMessages(t *testing.T) {
	s := newAUNSite(t)
	s.mustLoad(s.config(""))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	alice := s.client("alice.aid.test", "d1")
	conn := s.online(alice)
	send(ctx, t, conn, "ask", "th1")
	if p := received(ctx, t, conn, "event"); p.Get("event").Str != "task.started" || p.Get("thread_id").Str != "th1" {
		t.Errorf("the task begins with %s", p.Raw)
	}
	question := received(ctx, t, conn, "text")
	if p := received(ctx, t, conn, "status"); p.Get("state").Str != "input_required" || question.Get("text").Str == "" {
		t.Errorf("the agent asks %s, %s", question.Raw, p.Raw)
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	s.mustLoad(s.config(""))
	conn = s.online(alice)
	send(ctx, t, conn, "blue", "th1")
	if p := received(ctx, t, conn, "text"); !strings.Contains(p.Get("text").Str, "blue") {
		t.Errorf("the agent answers %s", p.Raw)
	}
	if p := received(ctx, t, conn, "event"); p.Get("event").Str != "task.completed" {
		t.Errorf("the task ends with %s", p.Raw)
	}
	result, err := conn.Call(ctx, "message.pull", map[string]any{"after_seq": 0, "device_id": "d1"})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	first := gjson.GetBytes(result, "messages.0.seq").Int()
	for i, m := range gjson.GetBytes(result, "messages").Array() {
		if m.Get("seq").Int() != first+int64(i) {
			t.Errorf("message %d has the seq %s, and the first one %d", i, m.Get("seq").Raw, first)
		}
		p := m.Get("payload")
		seen = append(seen, p.Get("event").Str+p.Get("state").Str+p.Get("text").Str)
	}
	want := "task.started which colour? input_required task.started you said: blue done task.completed"
	if got := strings.Join(seen, " "); got != want {
		t.Errorf("the inbox has %s, want %s", got, want)
	}
	for _, method := range []string{"group.list_my", "storage.put"} {
		if _, err := conn.Call(ctx, method, map[string]any{}); aunpeer.Code(err) != -32601 {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestAUNServices: what a client finds of the agents, by HTTP and by search.*.
func TestAUNServices(t *testing.T) {
	s := newAUNSite(t)
	s.mustLoad(bytes.Replace(s.config(""), []byte(`"127.0.0.1"`), []byte(`"*.aid.test", "127.0.0.1"`), 1))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	alice := s.client("alice.aid.test", "d1")
	for url, part := range map[string]string{
		"http://gateway.aid.test/.well-known/aun-gateway": `"url":"ws://gateway.aid.test/aun"`,
		"http://gateway.aid.test/health":                  "ok",
		"http://gateway.aid.test/pki/chain":               "BEGIN CERTIFICATE",
		"http://gateway.aid.test/pki/trust-roots.json":    "root_cas",
		"http://reviewer.aid.test/agent.md":               `aid: "reviewer.aid.test"`,
	} {
		if status, body, err := alice.Get(ctx, url); err != nil || status != 200 || !strings.Contains(body, part) {
			t.Errorf("%s: %d %s %v", url, status, body, err)
		}
	}
	if status, _, err := alice.Get(ctx, "http://other.aid.test/agent.md"); err != nil || status == http.StatusOK {
		t.Errorf("the agent.md of an agent that is not here: %d %v", status, err)
	}
	conn := s.online(alice)
	for method, c := range map[string][3]string{
		"search.query":     {`{"q":"agent"}`, "items.0.aid", "reviewer.aid.test"},
		"search.get_agent": {`{"aid":"reviewer.aid.test"}`, "content_type", "text/markdown"},
		"search.ap_info":   {`{}`, "ap_id", "gateway.aid.test"},
		"search.snapshot":  {`{}`, "items.0.aid", "reviewer.aid.test"},
		"search.changes":   {`{}`, "changes.0.op", "upsert"},
		"search.suggest":   {`{"prefix":"review"}`, "suggestions.0.value", "reviewer.aid.test"},
		"meta.trust_roots": {`{}`, "root_cas.0.status", "active"},
	} {
		result, err := conn.Call(ctx, method, json.RawMessage(c[0]))
		if got := gjson.GetBytes(result, c[1]).Str; err != nil || got != c[2] {
			t.Errorf("%s: %s %v", method, result, err)
		}
	}
	if _, err := conn.Call(ctx, "search.get_agent", map[string]any{"aid": "x.aid.test"}); aunpeer.Code(err) != -32161 {
		t.Errorf("an agent that is not here: %v", err)
	}
}

// TestAUNAssignee: an agent that connects to the gateway executes tasks, in both ways in which it can ask and deliver,
// and also the tasks that came while it was away.
func TestAUNAssignee(t *testing.T) {
	for _, byMessage := range []bool{false, true} {
		t.Run(fmt.Sprint("by message ", byMessage), func(t *testing.T) {
			s := newAUNSite(t)
			s.mustLoad(s.withAssignee(""))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			conn := s.online(s.client("alice.aid.test", "d1"))
			early, err := conn.Create(ctx, "reviewer.aid.test", "before you came")
			if err != nil || early.Status != "submitted" {
				t.Fatalf("%+v, %v", early, err)
			}
			worker := &aunpeer.Assignee{Client: s.client("worker.aid.test", "w"), ByMessage: byMessage,
				To: "gateway.aid.test"}
			working, stop := context.WithCancel(ctx)
			done := make(chan error, 1)
			go func() { done <- worker.Serve(working) }()
			defer func() { stop(); <-done }()

			if got := s.ends(ctx, conn, early.TaskID); got != "completed echo: before you came" {
				t.Errorf("a task from before is %s", got)
			}
			for text, want := range map[string]string{
				"hello":          "completed echo: hello",
				"fail":           "failed",
				"reject":         "rejected",
				"late-reject 50": "rejected",
			} {
				made, err := conn.Create(ctx, "reviewer.aid.test", text)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.ends(ctx, conn, made.TaskID); got != want {
					t.Errorf("%s: %s, want %s", text, got, want)
				}
			}
			made, err := conn.Create(ctx, "reviewer.aid.test", "ask")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Subscribe(ctx, made.TaskID); err != nil {
				t.Fatal(err)
			}
			ev, err := conn.TaskEvent(ctx, "event/task.updated", made.TaskID, "input_required")
			if err != nil || ev.Message.String() != "which colour?" {
				t.Fatalf("%+v, %v", ev, err)
			}
			if _, err := conn.Do(ctx, "task.send_input",
				map[string]any{"task_id": made.TaskID, "input": aunpeer.Text("blue")}); err != nil {
				t.Fatal(err)
			}
			if got := s.ends(ctx, conn, made.TaskID); got != "completed you said: blue" {
				t.Errorf("after the answer: %s", got)
			}
			made, err = conn.Create(ctx, "reviewer.aid.test", "slow 60000")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Do(ctx, "task.cancel", map[string]any{"task_id": made.TaskID}); err != nil {
				t.Fatal(err)
			}
			if got := s.ends(ctx, conn, made.TaskID); got != "canceled" {
				t.Errorf("a canceled task is %s", got)
			}
		})
	}
}

// ends waits for the end of a task, and returns its status and the text of its first artifact.
func (s *aunSite) ends(ctx context.Context, conn *aunpeer.Conn, id string) string {
	s.t.Helper()
	var got aunpeer.Task
	asynctest.Eventually(s.t, "the task "+id+" has ended", func() (ended bool) {
		var err error
		if got, err = conn.Do(ctx, "task.get", map[string]any{"task_id": id}); err != nil {
			s.t.Fatal(err)
		}
		return aunpeer.Ended(got.Status)
	})
	if len(got.Artifacts) == 0 {
		return got.Status
	}
	return fmt.Sprint(got.Status, " ", got.Artifacts[0].Content)
}
