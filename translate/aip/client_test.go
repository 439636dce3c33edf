// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// sides are both sides of every version.
func sides() map[string]struct {
	client translate.Client
	server translate.Server
} {
	return map[string]struct {
		client translate.Client
		server translate.Server
	}{
		"v1": {Client("gateway"), Server()},
		"v2": {ClientV2("gateway"), ServerV2("partner")},
	}
}

func TestClientNames(t *testing.T) {
	for _, s := range sides() {
		if s.client.Name() != s.server.Name() {
			t.Errorf("a client %q and a server %q", s.client.Name(), s.server.Name())
		}
		if _, ok := s.client.(translate.Completer); !ok {
			t.Errorf("%s cannot complete", s.client.Name())
		}
		if _, ok := s.client.(translate.Binder); ok {
			t.Errorf("%s has a Binder", s.client.Name())
		}
		if h := s.client.Header(); len(h) > 0 {
			t.Errorf("%s has header fields: %v", s.client.Name(), h)
		}
	}
}

func TestClientRequests(t *testing.T) {
	ref := agent.Ref{Task: `t"1`, Session: "s1"}
	turn := &agent.Turn{Ref: ref, Message: task.Message{
		ID: "m1", SentAt: time.Date(2025, 9, 1, 11, 58, 0, 0, beijing), SenderRole: task.Leader, SenderID: "the caller",
		Mentions: []string{"all"}, Command: task.Start, TaskID: "the caller's", SessionID: "the caller's", GroupID: "g",
		Params:    json.RawMessage(`{"responseTimeout":1,"priority":"high"}`),
		DataItems: []task.DataItem{task.Text("hello")},
	}}
	const (
		known   = `"sentAt":"2025-09-01T11:58:00+08:00","senderRole":"leader","senderId":"gateway",`
		unknown = `"sentAt":"1970-01-01T08:00:00+08:00","senderRole":"leader","senderId":"gateway",`
		where   = `"taskId":"t\"1","sessionId":"s1"}}}`
		hello   = `"commandParams":{"priority":"high"},"dataItems":[{"type":"text","text":"hello"}],` + where
		bare    = `"dataItems":[],` + where
	)
	begin := func(method, member, kind, id string) string {
		return `{"jsonrpc":"2.0","id":"t\"1","method":"` + method + `","params":{"` + member + `":{"type":"` + kind +
			`","id":"` + id + `",`
	}
	v1 := func(method, id string) string { return begin(method, "message", "message", id) }
	v2 := func(method, member, id string) string { return begin(method, member, "task-command", id) }
	continued := *turn
	continued.From = task.AwaitingInput // the caller's command is start if its dialect has no other

	for name, tt := range map[string]struct {
		got      func(translate.Client) []byte
		one, two string
	}{
		"start": {
			func(c translate.Client) []byte { return c.AppendTurn(nil, turn, false) },
			v1("rpc", "m1") + known + `"command":"start",` + hello, v2("rpc", "command", "m1") + known + `"command":"start",` +
				hello},
		"start, stream": {
			func(c translate.Client) []byte { return c.AppendTurn(nil, turn, true) },
			v1("stream", "m1") + known + `"command":"start",` + hello, v2("stream", "message", "m1") + known +
				`"command":"start",` + hello},
		"continue": {
			func(c translate.Client) []byte { return c.AppendTurn(nil, &continued, false) },
			v1("rpc", "m1") + known + `"command":"continue",` + hello, v2("rpc", "command", "m1") + known +
				`"command":"continue",` + hello},
		"continue, stream": {
			func(c translate.Client) []byte { return c.AppendTurn(nil, &continued, true) },
			v1("stream", "m1") + known + `"command":"continue",` + hello, v2("rpc", "command", "m1") + known +
				`"command":"continue",` + hello},
		"get": {
			func(c translate.Client) []byte { return c.(translate.Getter).AppendGet(nil, ref) },
			v1("rpc", `t\"1-get`) + unknown +
				`"command":"get","commandParams":{"lastMessageSentAt":"2999-01-01T00:00:00+08:00",` +
				`"lastStateChangedAt":"2999-01-01T00:00:00+08:00"},` + bare,
			v2("rpc", "command", `t\"1-get`) + unknown +
				`"command":"get","commandParams":{"lastCommandSentAt":"2999-01-01T00:00:00+08:00",` +
				`"lastStateChangedAt":"2999-01-01T00:00:00+08:00"},` + bare},
		"cancel": {
			func(c translate.Client) []byte { return c.(translate.Canceler).AppendCancel(nil, ref) },
			v1("rpc", `t\"1-cancel`) + unknown + `"command":"cancel",` + bare, v2("rpc", "command", `t\"1-cancel`) + unknown +
				`"command":"cancel",` + bare},
		"complete": {
			func(c translate.Client) []byte { return c.(translate.Completer).AppendComplete(nil, ref) },
			v1("rpc", `t\"1-complete`) + unknown + `"command":"complete",` + bare, v2("rpc", "command", `t\"1-complete`) +
				unknown + `"command":"complete",` + bare},
		"re-stream": {
			func(c translate.Client) []byte { return c.(translate.Resubscriber).AppendResubscribe(nil, ref) },
			v1("stream", `t\"1-re-stream`) + unknown + `"command":"re-stream",` +
				bare, v2("stream", "message", `t\"1-re-stream`) + unknown + `"command":"re-stream",` + bare},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.one, string(tt.got(Client("gateway")))); d != "" {
				t.Errorf("v1:\n%s", d)
			}
			if d := cmp.Diff(tt.two, string(tt.got(ClientV2("gateway")))); d != "" {
				t.Errorf("v2:\n%s", d)
			}
		})
	}
	if !strings.Contains(string(turn.Message.Params), "responseTimeout") || turn.Message.TaskID != "the caller's" {
		t.Errorf("the turn has changed: %+v", turn)
	}
}

// TestTurnID: a message without an id is given one. It is the same for the same turn only.
func TestTurnID(t *testing.T) {
	id := func(turn agent.Turn) string {
		turn.Ref = agent.Ref{Task: "t"}
		call, err := decodeBody(t, Client("gateway").AppendTurn(nil, &turn, false))
		if err != nil {
			t.Fatal(err)
		}
		return call.Message.ID
	}
	hello := task.Message{DataItems: []task.DataItem{task.Text("hello")}}
	seen := map[string]int{}
	for i, turn := range []agent.Turn{
		{}, {Message: hello}, {Message: hello, From: task.AwaitingInput}, {Message: hello, From: task.AwaitingInput,
			Revision: "a"},
		{Message: hello, From: task.AwaitingCompletion, Revision: "b"},
	} {
		got := id(turn)
		if got != id(turn) || !strings.HasPrefix(got, "t-") {
			t.Errorf("turn %d: %q, then %q", i, got, id(turn))
		}
		if was, ok := seen[got]; ok {
			t.Errorf("turns %d and %d are both %q", was, i, got)
		}
		seen[got] = i
	}
}

// TestServerReadsClient: the gateway reads as a Partner the requests written as a Leader.
func TestServerReadsClient(t *testing.T) {
	for version, s := range sides() {
		rnd := rand.New(rand.NewPCG(5, 6))
		for range 500 {
			m := randomMessage(rnd)
			if m.Command = task.Start; rnd.IntN(2) == 0 {
				m.Command = task.Continue
			}
			if len(m.TaskID) > 100 { // the names given by the gateway leave room
				m.TaskID = "t"
			}
			stream := rnd.IntN(2) == 0
			turn := &agent.Turn{Ref: agent.Ref{Task: m.TaskID, Session: m.SessionID}, Message: m}
			got, err := decodeBy(t, s.server, s.client.AppendTurn(nil, turn, stream))
			if err != nil {
				t.Fatalf("%s: %v, for\n%+v", version, err, m)
			}
			want := translate.Call{Call: task.Call{Message: m}, Stream: stream && (version == "v1" || m.Command == task.Start)}
			want.Message.SenderID, want.Message.GroupID, want.Message.Mentions = "gateway", "", nil
			want.AnswerIsProduct = m.Command == task.Start
			want.Direct = m.Command == task.Start || m.Command == task.Continue
			if want.Message.ID == "" {
				want.Message.ID = got.Message.ID
			}
			want.Message.Params, got.Message.Params = compact(want.Message.Params), compact(got.Message.Params)
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("%s:\n%s", version, d)
			}
		}
		ref := agent.Ref{Task: "t", Session: "s"}
		for command, body := range map[task.Command][]byte{
			task.Get: s.client.(translate.Getter).AppendGet(nil,
				ref), task.Cancel: s.client.(translate.Canceler).AppendCancel(nil, ref),
			task.Complete: s.client.(translate.Completer).AppendComplete(nil,
				ref), task.ReStream: s.client.(translate.Resubscriber).AppendResubscribe(nil, ref),
		} {
			got, err := decodeBy(t, s.server, body)
			if err != nil {
				t.Fatalf("%s, %s: %v", version, command, err)
			}
			want := translate.Call{Stream: command == task.ReStream, Call: task.Call{Message: task.Message{
				ID: "t-" + string(command), SentAt: epoch, SenderRole: task.Leader, SenderID: "gateway", Command: command,
				TaskID: "t", SessionID: "s",
			}}}
			if command == task.Get {
				want.MessagesAfter = time.Date(2999, 1, 1, 0, 0, 0, 0, beijing)
				want.StatesAfter = want.MessagesAfter
			}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(task.Message{}, "Params")); d != "" {
				t.Errorf("%s, %s:\n%s", version, command, d)
			}
		}
	}
}

// compact returns an object as one line, and nothing for an empty one.
func compact(raw json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	out, err := json.Marshal(v)
	if err != nil || string(out) == "{}" {
		return nil
	}
	return out
}

func decodeBy(t testing.TB, s translate.Server, body []byte) (translate.Call, error) {
	t.Helper()
	req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
	if bad != nil {
		t.Fatalf("%v, for\n%s", bad, body)
	}
	return s.Decode(&translate.Request{Request: req, HTTP: "POST"})
}

// randomTask returns a task with everything a Partner can send.
func randomTask(rnd *rand.Rand, state task.State) task.Task {
	at := time.Unix(rnd.Int64N(4e9), 0).In(beijing)
	tk := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: state, ChangedAt: at,
		DataItems: randomMessage(rnd).DataItems}}
	for i := range rnd.IntN(3) {
		m := randomMessage(rnd)
		tk.Products = append(tk.Products, task.Product{ID: fmt.Sprint("p", i), Name: m.ID, Description: m.GroupID,
			DataItems: m.DataItems})
		tk.MessageHistory = append(tk.MessageHistory, m)
		tk.StatusHistory = append(tk.StatusHistory, tk.Status)
	}
	return tk
}

// reportOf is the report of a task, without its revision.
func reportOf(tk *task.Task) agent.Report {
	rep := agent.Report{State: tk.Status.State, NativeState: string(tk.Status.State), Items: tk.Status.DataItems,
		Verbatim: true, Full: true, Products: tk.Products}
	if rep.State == task.Completed { // the Partner has completed it by itself
		rep.State, rep.Closed = task.AwaitingCompletion, true
	}
	return rep
}

// TestClientReadsServer: the gateway reads as a Leader the answers written as a Partner.
func TestClientReadsServer(t *testing.T) {
	unstamped := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(agent.Report{}, "Revision", "RevisionDated")}
	id := jsonrpc.ID("1")
	for version, s := range sides() {
		rnd := rand.New(rand.NewPCG(7, 8))
		for _, state := range task.States() {
			for range 40 {
				tk := randomTask(rnd, state)
				want := reportOf(&tk)

				reply, err := s.client.Reply(s.server.AppendTask(nil, id, nil, &tk), nil)
				if d := cmp.Diff(want, reply, unstamped); d != "" || err != nil || reply.Revision == "" {
					t.Fatalf("%s, reply: %v, revision %q\n%s", version, err, reply.Revision, d)
				}
				push, err := s.client.Push(s.server.AppendNotification(nil, &tk), nil)
				if d := cmp.Diff(reply, push, cmpopts.EquateEmpty()); d != "" || err != nil {
					t.Fatalf("%s, push: %v\n%s", version, err, d)
				}

				out, in := s.server.NewStream(id, nil, &tk), s.client.NewStream(nil)
				event := func(ev task.Event) agent.Report {
					t.Helper()
					rep, err := in.Event("", out.Event(nil, &ev).Data)
					if err != nil {
						t.Fatalf("%s: %v", version, err)
					}
					return rep
				}
				if d := cmp.Diff(reply, event(task.Event{Seq: 1, Task: &tk}), cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("%s, task:\n%s", version, d)
				}
				status := event(task.Event{Seq: 2, Status: &tk.Status})
				if reply.State.Settled() && status.Revision != reply.Revision {
					t.Fatalf("%s: a settled task has the revision %q in a stream and %q in an answer", version, status.Revision,
						reply.Revision)
				}
				want.Full, want.Products = false, nil
				if d := cmp.Diff(want, status, unstamped); d != "" {
					t.Fatalf("%s, status:\n%s", version, d)
				}
				for i := range tk.Products {
					c := task.Chunk{Product: tk.Products[i], Append: rnd.IntN(2) == 0, Last: rnd.IntN(2) == 0}
					if d := cmp.Diff(agent.Report{Chunks: []task.Chunk{c}}, event(task.Event{Seq: 3, Chunk: &c}),
						cmpopts.EquateEmpty()); d != "" {
						t.Fatalf("%s, chunk:\n%s", version, d)
					}
				}
			}
		}
	}
}

func TestClient(t *testing.T) {
	t.Run("v1", func(t *testing.T) { translatetest.Client(t, Client("leader"), Server()) })
	t.Run("v2", func(t *testing.T) { translatetest.Client(t, ClientV2("leader"), ServerV2("partner")) })
}
