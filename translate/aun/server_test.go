// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"golang.org/x/tools/txtar"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

var update = flag.Bool("update", false, "write the golden files")

func request(method, params string) []byte {
	return append(jsonrpc.BeginRequest(nil, jsonrpc.ID("1"), method), params+"}"...)
}

// requests has a request for each method of the codec.
var requests = [][]byte{
	request(Create, `{"to":"r.aid.pub","input":{"type":"text","content":"go"},"visibility":"private"}`),
	request(Create, `{"to":"r.aid.pub","input":{"type":"multipart","content":[{"type":"text","content":"a"},`+
		`{"type":"file","name":"n","mime_type":"text/plain","content":"data:text/plain;base64,QUJD"},`+
		`{"type":"json","content":[1]}]},"message_id":"m1"}`),
	request(Get, `{"task_id":"t1"}`),
	request(SendInput, `{"task_id":"t1","input":{"type":"text","content":"blue"}}`),
	request(Cancel, `{"task_id":"t1","reason":"user_abort"}`),
	request(Subscribe, `{"task_id":"t1"}`),
	request(List, `{"status":"working","limit":20,"cursor":null}`),
}

var rel = Relation{Owner: "alice.aid.pub", Assignee: "r.aid.pub", Visibility: Private}

func TestServer(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		t.Run(fmt.Sprint(confirm), func(t *testing.T) {
			translatetest.Server(t, Server{Confirm: confirm, Relation: rel}, requests...)
		})
	}
}

func decode(body []byte) (translate.Call, error) {
	req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
	if bad != nil {
		return translate.Call{}, bad
	}
	return Server{Relation: rel}.Decode(&translate.Request{Request: req, HTTP: "POST"})
}

func TestRefuses(t *testing.T) {
	for body, want := range map[string]string{
		string(request(Create, `{}`)):                        "invalid-params at params.input",
		string(request(Create, `{"input":7}`)):               "invalid-params at params.input",
		string(request(Create, `[]`)):                        "invalid-params at params",
		string(request(Get, `{}`)):                           "invalid-params at params.task_id",
		string(request(SendInput, `{"input":"x"}`)):          "invalid-params at params.task_id",
		string(request(List, `{"status":"done"}`)):           "invalid-params at params.status",
		string(request(List, `{"limit":-1}`)):                "invalid-params at params.limit",
		string(request("task.accept", `{}`)):                 "method-not-found",
		string(request(Create, `{"input":{"type":"file"}}`)): "invalid-params at params.input",
		string(request(Create, `{"input":`+strings.Repeat(`{"type":"multipart","content":[`, 5)+`"x"`+
			strings.Repeat(`]}`, 5)+`}`)): "invalid-params at params.input",
	} {
		_, err := decode([]byte(body))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// Items written as a content are read as the same.
func TestContent(t *testing.T) {
	for _, items := range [][]task.DataItem{
		{task.Text("a\nb")},
		{{Kind: task.TextItem, Text: "# a", Metadata: json.RawMessage(`{"mimeType":"text/markdown"}`)}},
		{{Kind: task.FileItem, Name: "n", MIMEType: "image/png", URI: "https://f/"}},
		{{Kind: task.FileItem, MIMEType: "image/png", Bytes: "QUJD"}},
		{{Kind: task.DataKind, Data: json.RawMessage(`{"x":[1.0]}`), Metadata: json.RawMessage(`{"k":1}`)}},
		{task.Text("a"), task.Text(""), {Kind: task.DataKind, Data: json.RawMessage(`{}`)}},
	} {
		body := AppendContent(nil, items)
		got, ok := ReadContent(gjson.ParseBytes(body))
		if diff := cmp.Diff(items, got); diff != "" || !ok {
			t.Errorf("%s: %t (-want +got):\n%s", body, ok, diff)
		}
		p := task.Product{ID: "p1", Name: "out", Description: "d", DataItems: items}
		if len(items) == 1 {
			items[0].Name = ""
		}
		body = AppendArtifact(nil, &p)
		product, ok := ReadArtifact(gjson.ParseBytes(body))
		if diff := cmp.Diff(p, product); diff != "" || !ok {
			t.Errorf("%s: %t (-want +got):\n%s", body, ok, diff)
		}
	}
}

// story is a task from its start to its end.
func story() []task.Event {
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, 5e6, time.UTC) }
	m := func(id string, r task.Role, text string) *task.Message {
		return &task.Message{ID: id, SenderRole: r, SentAt: at(4), DataItems: []task.DataItem{task.Text(text)}}
	}
	said := func(s task.State, n int, text string) *task.Status {
		st := &task.Status{State: s, ChangedAt: at(n)}
		if text != "" {
			st.DataItems = []task.DataItem{task.Text(text)}
		}
		return st
	}
	chunk := func(text string, more, last bool) *task.Chunk {
		p := task.Product{ID: "p1", DataItems: []task.DataItem{task.Text(text)}}
		if !more {
			p.Name = "out"
		}
		return &task.Chunk{Product: p, Append: more, Last: last}
	}
	events := []task.Event{
		{Task: &task.Task{ID: "t1", SessionID: "s1", Status: *said(task.Accepted, 1, "")}, Cause: m("m1", task.Leader, "go")},
		{Status: said(task.Working, 2, "")},
		{Chunk: chunk("a ", false, false)},
		{Chunk: chunk("b", true, true)},
		{Status: said(task.AwaitingInput, 3, "which?")},
		{Status: said(task.Working, 4, ""), Cause: m("m2", task.Leader, "blue")},
		{Message: m("m3", task.Partner, "hm")},
		{Status: said(task.AwaitingCompletion, 6, "done"), Offer: []string{"p1"}},
		{Status: said(task.Completed, 7, "")},
	}
	for i := range events {
		events[i].Seq = uint64(i + 1)
	}
	return events
}

func TestWire(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		var out bytes.Buffer
		s := Server{Confirm: confirm, Relation: Relation{Owner: rel.Owner, Assignee: rel.Assignee, Visibility: Shared,
			Participants: []string{"bob.aid.pub"}, Children: []string{"t2"}, Parent: "t0"}}
		line := func(b []byte) {
			if !json.Valid(b) || bytes.ContainsAny(b, "\r\n") {
				t.Errorf("no JSON on one line: %s", b)
			}
			fmt.Fprintf(&out, "%s\n", b)
		}
		var fold task.Fold
		encoder := s.NewStream(jsonrpc.ID("1"), new(translate.Call), &task.Task{ID: "t1"})
		for _, ev := range story() {
			fold.Apply(ev)
			if f := encoder.Event(nil, &ev); f.Data == nil {
				fmt.Fprintln(&out, "(nothing)")
			} else {
				fmt.Fprintf(&out, "%s: ", f.Name)
				line(f.Data)
			}
		}
		whole := fold.Task()
		id := jsonrpc.ID(`"q"`)
		for _, method := range []string{Create, Get, SendInput, Cancel} {
			fmt.Fprintf(&out, "%s: ", method)
			line(s.AppendTask(nil, id, &translate.Call{Method: method}, whole))
		}
		fmt.Fprint(&out, "pending: ")
		line(s.AppendTask(nil, id, &translate.Call{Method: Create}, &task.Task{ID: "t9"}))
		fmt.Fprint(&out, "failed: ")
		failed := task.Task{ID: "t3", Status: task.Status{State: task.Failed, DataItems: []task.DataItem{task.Text("no")}}}
		line(s.AppendTask(nil, id, &translate.Call{Method: Get}, &failed))
		fmt.Fprint(&out, "list: ")
		line(s.AppendTasks(nil, id, nil, &task.Page{Tasks: []task.Task{*whole}, Next: "n"}))
		s.Next = "z.aid.pub"
		fmt.Fprint(&out, "list: ")
		line(s.AppendTasks(nil, id, nil, &task.Page{}))
		s.Next = ""
		fmt.Fprint(&out, "list: ")
		line(s.AppendTasks(nil, id, nil, &task.Page{}))

		golden := fmt.Sprintf("testdata/server_%t.txtar", confirm)
		if *update {
			ar := txtar.Archive{Files: []txtar.File{{Name: "story", Data: out.Bytes()}}}
			if err := os.WriteFile(golden, txtar.Format(&ar), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		ar, err := txtar.ParseFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(ar.Files[0].Data), out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", golden, diff)
		}
	}
}

// A task or an event too large for a frame is named with sizes.
func TestTooLarge(t *testing.T) {
	large := task.Product{ID: "p1", DataItems: []task.DataItem{task.Text(strings.Repeat("x", MaxFrame))}}
	whole := &task.Task{ID: "t1", Status: task.Status{State: task.Completed}, Products: []task.Product{large}}
	s := Server{Relation: rel}
	got := s.AppendTask(nil, jsonrpc.ID("1"), &translate.Call{Method: Get}, whole)
	want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32174,"message":"Task output too large","data":{"artifacts":` +
		`[{"id":"p1","size":1000000}],"max":1000000,"size":1000`
	if !strings.HasPrefix(string(got), want) {
		t.Errorf("got %.300s", got)
	}
	encoder := s.NewStream(nil, nil, whole)
	for _, ev := range []task.Event{{Chunk: &task.Chunk{Product: large}}, {Task: whole},
		{Status: &task.Status{State: task.AwaitingInput, DataItems: large.DataItems}}} {
		if f := encoder.Event(nil, &ev); len(f.Data) > 1000 || !json.Valid(f.Data) {
			t.Errorf("%.300s", f.Data)
		}
	}
}

// A command not taken by a task is answered by the task's end.
func TestErrors(t *testing.T) {
	state := func(s task.State) error {
		return task.Errorf(task.UnsupportedOperation, "x").WithCause(&task.StateError{State: s})
	}
	for _, tc := range []struct {
		err  error
		want int
	}{
		{state(task.Working), -32171}, {state(task.Completed), -32171}, {state(task.Canceled), -32173},
		{state(task.Rejected), -32177}, {state(task.Failed), -32186}, {AccessDenied("x"), -32175},
		{DelegationDenied("x"), -32178}, {ChildLimitExceeded("depth", 8), -32179}, {CompletionBlocked(nil), -32185},
		{AlreadyAccepted(), -32176}, {task.Errorf(task.TaskNotFound, "x"), -32170},
	} {
		if got, _ := faultOf(tc.err); got.code != tc.want {
			t.Errorf("%v has the code %d, want %d", tc.err, got.code, tc.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, r := range requests {
		f.Add(r)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		call, err := decode(body)
		if err == nil && call.Message.Command == task.Start {
			again := AppendContent(nil, call.Message.DataItems)
			if _, ok := ReadContent(gjson.ParseBytes(again)); !ok || !json.Valid(again) {
				t.Errorf("%s was read from %s", again, body)
			}
		}
	})
}

// TestCreated: the answer to a creation says submitted, working or rejected, and the time of it, even if the agent has
// done more by then; and a whole task has a list of messages, perhaps empty.
func TestCreated(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		states []task.State
		want   string
	}{
		{[]task.State{task.Accepted}, "submitted"},
		{[]task.State{task.Accepted, task.Working}, "working"},
		{[]task.State{task.Accepted, task.Working, task.AwaitingInput}, "submitted"},
		{[]task.State{task.Working, task.AwaitingCompletion, task.Completed}, "working"},
		{[]task.State{task.Accepted, task.Canceled}, "submitted"},
		{[]task.State{task.Rejected}, "rejected"},
	} {
		one := task.Task{ID: "t"}
		for i, state := range c.states {
			one.Status = task.Status{State: state, ChangedAt: at.Add(time.Duration(i) * time.Second)}
			one.StatusHistory = append(one.StatusHistory, one.Status)
		}
		for _, method := range []string{Create, Delegate} {
			call, err := Server{}.Read(method, gjson.Parse(`{"input":{"type":"text","content":"x"}}`))
			if err != nil || call.History == 0 {
				t.Errorf("%s is read as %+v, %v", method, call, err)
			}
			result := Server{}.AppendTask(nil, jsonrpc.ID("1"), &call, &one)
			if got := gjson.GetBytes(result, "result.status").Str; got != c.want {
				t.Errorf("%s of a task with the states %v says %q, want %q", method, c.states, got, c.want)
			}
			if got := gjson.GetBytes(result, "result.created_at").Str; got != "2026-01-02T03:04:05Z" {
				t.Errorf("%s of a task with the states %v was created at %q", method, c.states, got)
			}
		}
	}
	get := translate.Call{Method: Get}
	for _, history := range [][]task.Message{nil, {{DataItems: []task.DataItem{task.Text("x")}}}} {
		one := task.Task{ID: "t", MessageHistory: history, Status: task.Status{State: task.Working, ChangedAt: at}}
		result := Server{}.AppendTask(nil, jsonrpc.ID("1"), &get, &one)
		if got := gjson.GetBytes(result, "result.messages").Raw; got != "[]" {
			t.Errorf("the messages of a task are %q", got)
		}
	}
}
