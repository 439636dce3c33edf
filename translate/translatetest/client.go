// SPDX-License-Identifier: Apache-2.0

package translatetest

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Client tests the side towards agents of a dialect. s is the side towards callers of the same dialect, with automatic
// completion: it plays the agent.
func Client(t *testing.T, c translate.Client, s translate.Server) {
	if c.Name() != s.Name() {
		t.Errorf("the client of %s and the server of %s are not of one dialect", c.Name(), s.Name())
	}
	t.Run("requests", func(t *testing.T) { clientRequests(t, c) })
	t.Run("decoded", func(t *testing.T) { requestsAreDecoded(t, c, s) })
	t.Run("replies", func(t *testing.T) { replies(t, c, s) })
	t.Run("pairs", func(t *testing.T) { answersArePaired(t, c, s) })
	t.Run("failures", func(t *testing.T) { failures(t, c, s) })
	t.Run("streams", func(t *testing.T) { Streams(t, c, s) })
	t.Run("texts", func(t *testing.T) { textsAreEvents(t, c, s) })
	t.Run("data", func(t *testing.T) { data(t, c, s) })
	Bodies(t, c, samples(s))
}

// Bodies is the part of Client about agents' bodies, sound or not: it reads samples of it, and mutations of these.
func Bodies(t *testing.T, c translate.Client, samples [][]byte) {
	t.Run("reports are copies", func(t *testing.T) { reportsAreCopies(t, c, samples) })
	t.Run("bytes", func(t *testing.T) { hostileReplies(t, c, samples) })
}

// Turns are turns of every kind, with each of Strings everywhere.
func Turns() []agent.Turn {
	at := time.Date(2025, 9, 1, 12, 0, 0, 1e6, time.FixedZone("", 8*60*60))
	var out []agent.Turn
	for _, s := range Strings() {
		for _, from := range []task.State{task.None, task.AwaitingInput, task.AwaitingCompletion} {
			m := task.Message{
				ID: s, SentAt: at, SenderRole: task.Leader, SenderID: s, Command: task.Start, TaskID: s, SessionID: s,
				Params: json.RawMessage(`{"responseTimeout":1,"other":[1.0]}`), Mentions: []string{s},
				DataItems: []task.DataItem{
					task.Text(s),
					{Kind: task.TextItem, Text: s, Metadata: json.RawMessage(`{"a":"\n","a2a":5}`)},
					{Kind: task.FileItem, Name: s, MIMEType: s, URI: s},
					{Kind: task.FileItem, Name: s, Bytes: "QUJD"},
					{Kind: task.DataKind, Data: json.RawMessage(`{"b":[1.0,null,{}]}`), Metadata: json.RawMessage(`{}`)},
				},
				Extensions: json.RawMessage(`{"a2a":{"x":[1.0],"metadata":{"k":null},"message":{"extensions":[]}},"aip":{"y":{}}}`),
			}
			if from != task.None {
				m.Command = task.Continue
			}
			out = append(out, agent.Turn{Ref: agent.Ref{Task: s, Session: s}, Message: m, From: from, Revision: s},
				agent.Turn{Ref: agent.Ref{Task: s, Session: s}, Message: m, From: from,
					Webhook: &task.Webhook{ID: "w", URL: "https://example.com/" + url.PathEscape(s), Token: s, Scheme: "Bearer",
						Credentials: s}})
		}
	}
	return out
}

// texts returns the texts of items, one behind the other.
func texts(items []task.DataItem) string {
	var b strings.Builder
	for i := range items {
		b.WriteString(items[i].Text)
	}
	return b.String()
}

// answered is a task for an agent's answer. Every dialect has all of its members.
func answered(state task.State, text string) task.Task {
	at := time.Date(2025, 9, 1, 12, 0, 0, 0, time.UTC)
	return task.Task{
		ID: "t-1", SessionID: "s-1", Status: task.Status{State: state, ChangedAt: at},
		Products: []task.Product{{ID: "p-1", Name: "one", DataItems: []task.DataItem{task.Text(text)}}},
	}
}

// reported is the state in a client's report for a state shown by a server of its dialect: only a Leader completes a
// task, and some dialects show a rejected task as a failed one.
func reported(shown, got task.State) bool {
	switch shown {
	case task.Completed:
		return got == task.AwaitingCompletion
	case task.Rejected:
		return got == task.Rejected || got == task.Failed
	}
	return got == shown
}

// replies: an agent's answer, or push, is reported with its state and its products.
func replies(t *testing.T, c translate.Client, s translate.Server) {
	for _, state := range task.States() {
		for _, text := range Strings() {
			tk := answered(state, text)
			rep, err := c.Reply(s.AppendTask(nil, jsonrpc.ID("1"), new(translate.Call), &tk), nil)
			if err != nil {
				t.Fatalf("%s is refused: %v", state, err)
			}
			if !reported(state, rep.State) || rep.NativeState == "" || rep.Revision == "" {
				t.Errorf("%s is reported as %s, %q at %q", state, rep.State, rep.NativeState, rep.Revision)
			}
			if len(rep.Products) != 1 || texts(rep.Products[0].DataItems) != asJSON(text) {
				t.Errorf("%s has the products %+v, want %q", state, rep.Products, text)
			}
			pushed, err := c.Push(s.AppendNotification(nil, &tk), nil)
			if err != nil {
				t.Fatalf("%s is refused as a push: %v", state, err)
			}
			if !reported(state, pushed.State) {
				t.Errorf("%s is reported as %s after a push", state, pushed.State)
			}
		}
	}
}

// failures: an agent's error has the kind meant by the agent. An error blaming the gateway is not passed on as a
// mistake of the Leader.
func failures(t *testing.T, c translate.Client, s translate.Server) {
	same := []task.Kind{task.TaskNotFound, task.TaskNotCancelable, task.InvalidParams, task.MethodNotFound,
		task.UnsupportedOperation, task.ContentTypeNotSupported, task.NotificationNotSupported}
	gateways := []task.Kind{task.InvalidRequest, task.ParseError, task.AuthenticationRequired, task.AuthorizationFailed,
		task.AccessTokenInvalid}
	for _, kind := range task.Kinds() {
		body := s.AppendError(nil, jsonrpc.ID("1"), task.Errorf(kind, "a sentence"))
		reported := make(map[string]error)
		if r, ok := c.(translate.StatusReader); ok {
			reported["status"] = r.Failure(body)
		} else {
			_, reported["reply"] = c.Reply(body, nil)
			_, reported["event"] = c.NewStream(nil).Event("", body)
		}
		for name, err := range reported {
			e, ok := errors.AsType[*task.Error](err)
			switch {
			case !ok || e.Detail == "":
				t.Errorf("%v is reported in a %s as %v", kind, name, err)
			case slices.Contains(same, kind) && e.Kind != kind:
				t.Errorf("%v is reported in a %s as %v", kind, name, e.Kind)
			case slices.Contains(gateways, e.Kind):
				t.Errorf("%v is blamed on the Leader in a %s, as %v", kind, name, e.Kind)
			}
		}
	}
}

// Streams is the part of Client about whole streams: the events of a stream make the same task as the answer to a get
// at its end.
func Streams(t *testing.T, c translate.Client, s translate.Server) {
	for _, text := range Strings() {
		begin := answered(task.Working, "")
		begin.Products = nil
		out, in := s.NewStream(jsonrpc.ID("1"), new(translate.Call), &begin), c.NewStream(nil)
		var sent, seen task.Fold
		now := func(state task.State) *task.Status {
			return &task.Status{State: state, ChangedAt: begin.Status.ChangedAt}
		}
		piece := func(text string, add bool) *task.Chunk {
			return &task.Chunk{Product: task.Product{ID: "p-1", Name: "one", DataItems: []task.DataItem{task.Text(text)}},
				Append: add}
		}
		last := func(of *task.Chunk) *task.Chunk {
			c := task.End(&of.Product)
			return &c
		}
		file := func() *task.Chunk {
			return &task.Chunk{Product: task.Product{ID: "p-2", Name: "two", DataItems: []task.DataItem{
				{Kind: task.FileItem, Name: "f", MIMEType: "image/png", URI: "https://agent.example/f"}}}}
		}
		var end agent.Report
		for i, ev := range []task.Event{
			{Task: &begin}, {Status: now(task.Working)},
			{Chunk: piece("first ", false)}, {Chunk: piece(text, true)}, {Chunk: piece(" last", true)},
			{Chunk: file()}, {Chunk: last(piece(text, true))}, {Chunk: last(file())},
			{Status: now(task.AwaitingCompletion)}, {Status: now(task.Completed)},
		} {
			ev.Seq = uint64(i + 1)
			sent.Apply(ev)
			for next := (func(dst []byte) translate.Frame { return out.Event(dst, &ev) }); next != nil; {
				f := next(nil)
				next = f.Next
				if f.Data == nil {
					continue
				}
				rep, err := in.Event(f.Name, f.Data)
				if err != nil {
					t.Fatalf("event %d is refused: %v, for\n%s", i, err, f.Data)
				}
				for j := range rep.Chunks {
					seen.Apply(task.Event{Chunk: &rep.Chunks[j]})
				}
				if rep.Full {
					for _, chunk := range task.Diff(seen.Task().Products, rep.Products) {
						seen.Apply(task.Event{Chunk: &chunk})
					}
				}
				if rep.State != task.None {
					end = rep
				}
			}
		}
		get, err := c.Reply(s.AppendTask(nil, jsonrpc.ID("1"), new(translate.Call), sent.Task()), seen.Task().Products)
		if err != nil {
			t.Fatal(err)
		}
		if !end.EndsTurn() || get.State != end.State {
			t.Errorf("a stream ends in %s, and a get answers %s", end.State, get.State)
		}
		if d := cmp.Diff(get.Products, seen.Task().Products); d != "" {
			t.Errorf("the products (-get +stream):\n%s", d)
		}
	}
}

// samples returns bodies of an agent of the dialect: answers, events and pushes.
func samples(s translate.Server) (out [][]byte) {
	for _, tk := range []task.Task{answered(task.Working, "a piece of text"), Tasks()[1]} {
		out = append(out, s.AppendTask(nil, jsonrpc.ID("1"), new(translate.Call), &tk), s.AppendNotification(nil, &tk))
		for _, ev := range Events(&tk) {
			if f := s.NewStream(jsonrpc.ID("1"), new(translate.Call), &tk).Event(nil, &ev); f.Data != nil {
				out = append(out, f.Data)
			}
		}
	}
	failure := task.Errorf(task.TaskNotFound, "there is none").WithField("params.id")
	return append(out, s.AppendError(nil, jsonrpc.ID("1"), failure))
}

// readers returns the readers of an agent's body, by the kind it is taken for.
func readers(c translate.Client) map[string]func(body []byte) (agent.Report, error) {
	return map[string]func(body []byte) (agent.Report, error){
		"reply": func(body []byte) (agent.Report, error) { return c.Reply(body, nil) },
		"push":  func(body []byte) (agent.Report, error) { return c.Push(body, nil) },
		"event": func(body []byte) (agent.Report, error) { return c.NewStream(nil).Event("", body) },
	}
}

// reportsAreCopies: a report does not change when its body is used for something else.
func reportsAreCopies(t *testing.T, c translate.Client, samples [][]byte) {
	for _, body := range samples {
		for name, read := range readers(c) {
			want, err := read(slices.Clone(body))
			if err != nil {
				continue
			}
			body := slices.Clone(body)
			got, _ := read(body)
			for i := range body {
				body[i] = 'x'
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("the report of a %s is a view of its body:\n%s", name, cmp.Diff(want, got))
			}
		}
	}
}

// hostileReplies: whatever an agent sends is reported, or refused in one clean sentence.
func hostileReplies(t *testing.T, c translate.Client, samples [][]byte) {
	try := func(body []byte) {
		for name, read := range readers(c) {
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Fatalf("panic: %v, for the %s\n%q", p, name, body)
					}
				}()
				rep, err := read(slices.Clone(body))
				if err == nil {
					if rep.State != task.None && !rep.State.Valid() {
						t.Fatalf("the state %q, for the %s\n%q", rep.State, name, body)
					}
					return
				}
				e, ok := errors.AsType[*task.Error](err)
				if !ok || e.Detail == "" || len(e.Detail) > 1<<10 || strings.ContainsFunc(e.Detail, unicode.IsControl) {
					t.Fatalf("refused without a kind or a clean sentence: %q, for the %s\n%q", err, name, body)
				}
			}()
		}
	}
	for _, body := range samples {
		mutatedBytes(body, 200, try)
		if inJSON(c) {
			mutatedValues(t, body, try)
		}
	}
}
