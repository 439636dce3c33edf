// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// TestEndings: a caller gets the end of a response as the agent has written it: its status, its error, its words
// before, and its use of tokens. A begun task cannot be rejected, but its response is.
func TestEndings(t *testing.T) {
	const (
		said   = `[{"id":"m","object":"message","type":"message","content":[{"type":"text","text":"half"}]}]`
		failed = `{"code":"AGENT_UNKNOWN_ERROR","message":"why"}`
	)
	for _, c := range []struct{ name, answer, status, failure, usage string }{
		{"completed", `"status":"completed","usage":{"input_tokens":11}`, "completed", "null", `{"input_tokens":11}`},
		{"a code of the agent's", `"status":"failed","error":{"code":"MODEL_QUOTA_EXCEEDED","message":"no more"},"usage":{}`,
			"failed", `{"code":"MODEL_QUOTA_EXCEEDED","message":"no more"}`, `{}`},
		{"a code that is a number", `"status":"failed","error":{"code":422,"message":"no"},"usage":5`,
			"failed", `{"code":"422","message":"no"}`, "null"},
		{"a code alone", `"status":"failed","error":{"code":"TIMEOUT"}`, "failed", `{"code":"TIMEOUT","message":"TIMEOUT"}`,
			"null"},
		{"no code", `"status":"failed","error":{"message":"why"}`, "failed", failed, "null"},
		{"incomplete", `"status":"incomplete"`, "incomplete", "null", "null"},
		{"rejected", `"status":"rejected","error":{"code":"BUSY","message":"no"}`, "rejected",
			`{"code":"BUSY","message":"no"}`, "null"},
		{"canceled", `"status":"canceled","error":null`, "canceled",
			`{"code":"TASK_CANCELED","message":"the agent says that the run is canceled, and gives no reason"}`, "null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep, err := Client(Options{}).Reply([]byte(`{"object":"response","id":"r","output":`+said+`,`+c.answer+`}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			state := rep.State
			if state == task.Rejected { // a begun task cannot be rejected
				state = task.Failed
			}
			got := gjson.ParseBytes(Server(false).AppendTask(nil, nil, new(translate.Call), &task.Task{
				ID: "t", SessionID: "s", Products: rep.Products, Extensions: rep.TaskExtensions,
				Status: task.Status{State: state, DataItems: rep.Items, Extensions: rep.Extensions},
			}))
			have := []string{got.Get("status").Str, got.Get("error").Raw, got.Get("usage").Raw,
				got.Get("output.0.content.0.text").Str}
			if d := cmp.Diff([]string{c.status, c.failure, c.usage, "half"}, have); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	const broken = `{"object":"message","id":"e","type":"error","code":"TOOL_EXECUTION_FAILED","message":"tool broke"}`
	rep, err := Client(Options{}).NewStream(nil).Event("", []byte(broken))
	if err != nil {
		t.Fatal(err)
	}
	e := endOf(&task.Status{State: rep.State, DataItems: rep.Items, Extensions: rep.Extensions})
	if e != (ending{"failed", "TOOL_EXECUTION_FAILED", "tool broke"}) {
		t.Errorf("a message of an error ends the response with %+v", e)
	}
}

// TestMessageExtensions: the members of an agent's message beside its contents are those of the caller's message. The
// agent says some of it only when the message is complete.
func TestMessageExtensions(t *testing.T) {
	s := Client(Options{}).NewStream(nil)
	e := newEncoder(new(translate.Call), &task.Task{ID: "t", SessionID: "s"})
	var last gjson.Result
	see := func(ev *task.Event) {
		for f := e.Event(nil, ev); f.Data != nil; f = f.Next(nil) {
			if v := gjson.ParseBytes(f.Data); v.Get("object").Str == objectMessage {
				last = v
			}
			if f.Next == nil {
				return
			}
		}
	}
	fold := task.NewFold(task.Task{})
	for _, event := range []string{
		`{"object":"message","id":"m","type":"message","role":"assistant","status":"in_progress",` +
			`"metadata":{"name":"A","k":1}}`,
		`{"object":"content","type":"text","msg_id":"m","index":0,"delta":true,"text":"It rains"}`,
		`{"object":"message","id":"m","type":"message","role":"assistant","status":"completed","usage":{"n":3},` +
			`"content":[{"type":"text","text":"It rains"}]}`,
	} {
		rep, err := s.Event("", []byte(event))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rep.Chunks {
			if len(rep.Chunks[i].Product.DataItems) == 0 {
				t.Errorf("a piece has no data items: %+v", rep.Chunks[i])
			}
			fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &rep.Chunks[i]})
			see(&task.Event{Chunk: &rep.Chunks[i]})
		}
	}
	see(&task.Event{Status: &task.Status{State: task.Completed}})
	want := []string{`{"n":3}`, `{"productId":"m","name":"A","k":1}`, "It rains"}
	have := []string{last.Get("usage").Raw, last.Get("metadata").Raw, last.Get("content.0.text").Str}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	products := []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("It rains")},
		Extensions: json.RawMessage(`{"agentapi":{"metadata":{"name":"A","k":1},"usage":{"n":3}}}`)}}
	if d := cmp.Diff(products, fold.Task().Products); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestInterfaces: an agent's content for an interface is an answer, and an answer of the same type for the caller.
func TestInterfaces(t *testing.T) {
	rep, err := Client(Options{}).Reply([]byte(`{"object":"response","id":"r","status":"completed","output":[{"id":"u",`+
		`"object":"message","type":"a2ui_response","role":"assistant","content":[{"type":"data","data":{"f":1}}]}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := gjson.ParseBytes(Server(false).AppendTask(nil, nil, new(translate.Call), &task.Task{
		ID: "t", SessionID: "s", Products: rep.Products, Status: task.Status{State: task.Completed},
	})).Get("output.0")
	have := []string{got.Get("type").Str, got.Get("role").Str, got.Get("content.0.data").Raw}
	if d := cmp.Diff([]string{"a2ui_response", "assistant", `{"f":1}`}, have); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
