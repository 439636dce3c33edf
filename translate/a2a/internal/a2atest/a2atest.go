// SPDX-License-Identifier: Apache-2.0

// Package a2atest has helpers for the tests of several versions.
package a2atest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

var Update = flag.Bool("update", false, "write what is read into the golden files")

// Captures reads every answer in a file, and compares the reports with those beside it.
func Captures(t *testing.T, path string, c translate.Client) {
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range ar.Files {
		want[f.Name] = string(f.Data)
	}
	var now []txtar.File
	for _, f := range ar.Files {
		var got string
		switch {
		case strings.HasSuffix(f.Name, ".json"):
			got = Show(c.Reply(f.Data, nil))
		case strings.HasSuffix(f.Name, ".push"):
			got = Show(c.Push(f.Data, nil))
		case strings.HasSuffix(f.Name, ".sse"):
			s := c.NewStream(nil)
			for _, ev := range Events(f.Data) {
				got += Show(s.Event(ev.Name, ev.Data))
			}
		default:
			continue
		}
		now = append(now, f, txtar.File{Name: f.Name + ".want", Data: []byte(got)})
		if diff := cmp.Diff(want[f.Name+".want"], got); diff != "" && !*Update {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	if len(now) == 0 {
		t.Errorf("%s holds no answers", path)
	}
	if *Update {
		if err := os.WriteFile(path, txtar.Format(&txtar.Archive{Comment: ar.Comment, Files: now}), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type Event struct {
	Name string
	Data []byte
}

// Events takes the events of a captured stream apart; each has one line of data at most.
func Events(stream []byte) []Event {
	var all []Event
	for _, block := range strings.Split(strings.TrimSpace(string(stream)), "\n\n") {
		var ev Event
		for _, line := range strings.Split(block, "\n") {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				ev.Name = name
			} else if data, ok := strings.CutPrefix(line, "data: "); ok {
				ev.Data = []byte(data)
			}
		}
		all = append(all, ev)
	}
	return all
}

// Show renders a report, or the error in its place, in a form to compare.
func Show(rep agent.Report, err error) string {
	if err != nil {
		var e *task.Error
		if !errors.As(err, &e) {
			return fmt.Sprintf("no task.Error: %v\n", err)
		}
		return fmt.Sprintf("error %v: %s\n", e.Kind, e.Detail)
	}
	var b strings.Builder
	b.WriteString("report")
	if rep.Full {
		b.WriteString(" whole")
	}
	if rep.State != task.None || rep.NativeState != "" {
		fmt.Fprintf(&b, " %s (%s)", rep.State, rep.NativeState)
	}
	if rep.SelfResuming {
		b.WriteString(" open")
	}
	switch rep.Follows {
	case agent.FollowsMore:
		b.WriteString(" provisional")
	case agent.FollowsWork:
		b.WriteString(" on-the-way")
	}
	if rep.Last {
		b.WriteString(" last")
	}
	if rep.Ref != nil {
		fmt.Fprintf(&b, " task=%s session=%s", rep.Ref.Task, rep.Ref.Session)
	}
	b.WriteString("\n")
	if len(rep.Items) > 0 {
		fmt.Fprintf(&b, "  says %s\n", Product(&task.Product{DataItems: rep.Items}))
	}
	for i := range rep.Products {
		fmt.Fprintf(&b, "  product %s\n", Product(&rep.Products[i]))
	}
	for i := range rep.Chunks {
		c := &rep.Chunks[i]
		fmt.Fprintf(&b, "  chunk append=%t last=%t %s\n", c.Append, c.Last, Product(&c.Product))
	}
	return b.String()
}

func Product(p *task.Product) string { return string(task.Form(nil).AppendProduct(nil, p)) }

// Check checks the properties of every report: states and items that AIP allows, and different ids of products.
func Check(t *testing.T, rep agent.Report, err error) {
	if err != nil {
		var e *task.Error
		if !errors.As(err, &e) || e.Detail == "" || strings.ContainsAny(e.Detail, "\n\r\x1b") {
			t.Fatalf("the error is not fit for a Leader: %#v", err)
		}
		return
	}
	if rep.State != task.None && !rep.State.Valid() {
		t.Fatalf("state %q", rep.State)
	}
	items := append([]task.DataItem(nil), rep.Items...)
	ids := map[string]bool{}
	for _, p := range rep.Products {
		if ids[p.ID] || p.ID == "" {
			t.Fatalf("product id %q", p.ID)
		}
		ids[p.ID] = true
		items = append(items, p.DataItems...)
	}
	for _, c := range rep.Chunks {
		items = append(items, c.Product.DataItems...)
	}
	for _, it := range items {
		switch it.Kind {
		case task.TextItem:
		case task.FileItem:
			if (it.URI == "") == (it.Bytes == "") {
				t.Fatalf("a file with both or neither: %+v", it)
			}
		case task.DataKind:
			if len(it.Data) == 0 || it.Data[0] != '{' || bytes.ContainsAny(it.Data, "\n\r") {
				t.Fatalf("data that is no object on one line: %s", it.Data)
			}
		default:
			t.Fatalf("item kind %q", it.Kind)
		}
		if len(it.Metadata) > 0 && (it.Metadata[0] != '{' || bytes.ContainsAny(it.Metadata, "\n\r")) {
			t.Fatalf("metadata that is no object on one line: %s", it.Metadata)
		}
	}
}

// Seeds adds the captures with a suffix in their names.
func Seeds(f *testing.F, path, suffix string) {
	f.Helper()
	ar, err := txtar.ParseFile(path)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range ar.Files {
		if strings.HasSuffix(file.Name, suffix) {
			f.Add(file.Data)
		}
	}
}

// Request wraps the params of a request.
func Request(method, params string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
}

// Decode reads a request, from memory used for something else right after.
func Decode(t testing.TB, s translate.Server, body []byte) (translate.Call, error) {
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

func Refuses(t *testing.T, s translate.Server, body []byte, want string) {
	t.Helper()
	_, err := Decode(t, s, body)
	var e *task.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(want, fmt.Sprintf("%v %s: %s", e.Kind, e.Field, e.Detail)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// story is a log with events of every sort.
func story() []task.Event {
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
		{Seq: 1, Task: &task.Task{
			ID: "t1", SessionID: "s1", Status: *status(1, task.Accepted),
			MessageHistory: []task.Message{*leader("m1", 0, task.Start, "go")},
		}},
		{Seq: 2, Status: status(2, task.Working)},
		{Seq: 3, Status: status(2, task.Working, task.Text("tick"))},
		{Seq: 4, Chunk: &task.Chunk{
			Product: task.Product{ID: "p1", Name: "out", Description: "d", DataItems: []task.DataItem{task.Text("a ")}},
		}},
		{Seq: 5, Chunk: &task.Chunk{Product: task.Product{ID: "p2", DataItems: []task.DataItem{
			{Kind: task.FileItem, Name: "f", MIMEType: "text/plain", URI: "https://f/"},
			{Kind: task.DataKind, Data: json.RawMessage(`{"x":1}`)},
		}}, Last: true}},
		{Seq: 6, Chunk: &task.Chunk{
			Product: task.Product{ID: "p1", DataItems: []task.DataItem{task.Text("b")}}, Append: true, Last: true,
		}},
		{Seq: 7, Status: status(3, task.AwaitingInput, task.Text("which?"))},
		{Seq: 8, Status: status(4, task.Working), Cause: leader("m2", 4, task.Continue, "blue")},
		{Seq: 9, Message: &task.Message{
			ID: "m3", SentAt: at(5), SenderRole: task.Partner, DataItems: []task.DataItem{task.Text("hm")},
		}},
		{Seq: 10, Status: status(6, task.AwaitingCompletion, task.Text("done"))},
		{Seq: 11, Status: status(7, task.Completed), Cause: leader("m4", 7, task.Complete, "")},
	}
}

// Story returns a task in every form of a server, as a golden file.
func Story(s translate.Server) []byte {
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
	story := story()
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
		fmt.Fprintf(&out, "-- %s, snapshot --\n", fold.Status().State)
		frame(s.NewStream(id, call, &task.Task{ID: "t1", SessionID: "s1"}).Snapshot(nil, fold.Task()))
		fmt.Fprintf(&out, "-- %s, task --\n%s\n", fold.Status().State, s.AppendTask(nil, id, call, fold.Task()))
	}
	fmt.Fprintf(&out, "-- the last two messages --\n%s\n",
		s.AppendTask(nil, id, &translate.Call{History: 2}, fold.Task()))
	fmt.Fprintf(&out, "-- all messages --\n%s\n", s.AppendTask(nil, id, &translate.Call{History: -1}, fold.Task()))
	fmt.Fprintf(&out, "-- notification --\n%s\n", s.AppendNotification(nil, fold.Task()))
	no := task.Status{State: task.Rejected, DataItems: []task.DataItem{task.Text("no")}}
	fmt.Fprintf(&out, "-- rejected --\n%s\n", s.AppendTask(nil, id, call, &task.Task{ID: "t1", Status: no}))
	return []byte(out.String())
}

// Golden compares with a file, or writes it.
func Golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *Update {
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

// Sayable checks that a caller's message can be stored, and sent to an agent of any version.
func Sayable(t *testing.T, call *translate.Call) {
	t.Helper()
	if out := task.AppendMessage(nil, &call.Message); !json.Valid(out) || bytes.ContainsAny(out, "\n\r") {
		t.Fatalf("%q", out)
	}
	for _, c := range []translate.Client{a2a.Legacy(), a2a.V03(), a2a.V1()} {
		turn := &agent.Turn{Message: call.Message, From: task.AwaitingCompletion, Ref: agent.Ref{Task: "T"}}
		translatetest.Strict(t, c.AppendTurn(nil, turn, true))
	}
}

// FuzzDecode checks any request as a server reads it: it can be stored, and sent to an agent of any version.
func FuzzDecode(f *testing.F, s translate.Server, requests ...[]byte) {
	for _, body := range requests {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
		if bad != nil {
			return
		}
		r := &translate.Request{Request: req, HTTP: "POST"}
		s.Matches(r)
		call, err := s.Decode(r)
		if err != nil {
			var e *task.Error
			if !errors.As(err, &e) || e.Detail == "" {
				t.Fatalf("%s: %#v", s.Name(), err)
			}
			return
		}
		if m := call.Message; !m.Command.Valid() || m.SenderRole != task.Leader || m.SenderID != "" {
			t.Fatalf("%s: %+v", s.Name(), m)
		}
		Check(t, agent.Report{Items: call.Message.DataItems}, nil)
		Sayable(t, &call)
	})
}
