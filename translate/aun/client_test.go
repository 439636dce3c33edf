// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// The requests of a client, byte for byte.
func TestClientRequests(t *testing.T) {
	c := aun.Client("agent.aid.pub")
	turn := &agent.Turn{Ref: agent.Ref{Task: "t"}, Message: task.Message{ID: "m", Command: task.Start,
		DataItems: []task.DataItem{task.Text("hi"), {Kind: task.FileItem, Name: "a", URI: "https://x/y"}}}}
	input := `"message_id":"m","input":{"type":"multipart","content":[{"type":"text","content":"hi"},` +
		`{"type":"file","name":"a","content":"https://x/y"}],"message_id":"m"}}}`
	for from, want := range map[task.State]string{
		task.None: `{"jsonrpc":"2.0","id":"t","method":"task.create","params":{"to":"agent.aid.pub",` +
			`"visibility":"private",` + input,
		task.AwaitingInput: `{"jsonrpc":"2.0","id":"t","method":"task.send_input","params":{"task_id":"t",` + input,
		task.AwaitingCompletion: `{"jsonrpc":"2.0","id":"t","method":"task.create","params":{"to":"agent.aid.pub",` +
			`"visibility":"private","metadata":{"previous_task_id":"t"},` + input,
	} {
		turn.From = from
		if d := cmp.Diff(want, string(c.AppendTurn(nil, turn, true))); d != "" {
			t.Errorf("from %s (-want +got):\n%s", from, d)
		}
	}
	begin := `{"jsonrpc":"2.0","id":"t","method":"task.`
	for want, got := range map[string][]byte{
		begin + `get","params":{"task_id":"t"}}`:    c.(translate.Getter).AppendGet(nil, turn.Ref),
		begin + `cancel","params":{"task_id":"t"}}`: c.(translate.Canceler).AppendCancel(nil, turn.Ref),
		`{"jsonrpc":"2.0","id":1,"method":"task.list","params":{"limit":100,"cursor":"c"}}`: c.(translate.Locator).
			AppendList(nil, "c"),
	} {
		if string(got) != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestCommandParams: parameters of a command not used by the gateway are metadata, also of the payload of a message and
// of the task of an assignee. There is always a content.
func TestCommandParams(t *testing.T) {
	const passed = `"aip":{"commandParams":{"payload":{"a":1},"previous_task_id":"evil"}}`
	turn := &agent.Turn{Ref: agent.Ref{Task: "t"}, Message: task.Message{ID: "m", Command: task.Start,
		Params: json.RawMessage(`{"responseTimeout":1,"payload":{"a":1},"previous_task_id":"evil"}`)}}
	for from, want := range map[task.State]string{
		task.None:               `{` + passed + `}`,
		task.AwaitingInput:      `{` + passed + `}`,
		task.AwaitingCompletion: `{"previous_task_id":"t",` + passed + `}`,
	} {
		turn.From = from
		params := gjson.GetBytes(aun.Client("agent.aid.pub").AppendTurn(nil, turn, true), "params")
		if got := params.Get("metadata").Raw; got != want {
			t.Errorf("from %q: the metadata is %s, want %s", from, got, want)
		}
		if got := params.Get("input.content").Raw; got != `""` {
			t.Errorf("from %q: the input is %s", from, params.Get("input").Raw)
		}
		c, ok := aun.NewConversation(params, "agent.aid.pub", turn.Ref, 0)
		if got := gjson.GetBytes(c.Send, "payload.metadata").Raw; !ok || got != `{`+passed+`}` || !gjson.ValidBytes(c.Send) {
			t.Errorf("from %q: a message is %s", from, c.Send)
		}
		assigned := aun.Assignee("agent.aid.pub", func(string) string { return "" }).AppendTurn(nil, turn, true)
		if got := gjson.GetBytes(assigned, "metadata").Raw; got != `{`+passed+`}` || !gjson.ValidBytes(assigned) {
			t.Errorf("from %q: the task of an assignee is %s", from, assigned)
		}
	}
}

// Every request is one of JSON-RPC, with any turn, and a server reads the turn in it.
func TestClientTurns(t *testing.T) {
	c := aun.Client("agent.aid.pub")
	for _, turn := range translatetest.Turns() {
		if uri := turn.Message.DataItems[2].URI; uri == "" || !utf8.ValidString(uri) {
			continue // no caller sends such a file
		}
		turn.Ref.Task = "t" // as an agent named it
		body := c.AppendTurn(nil, &turn, true)
		req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
		if bad != nil {
			t.Fatalf("%v for\n%s", bad, body)
		}
		call, err := aun.Server{}.Decode(&translate.Request{Request: req})
		if err != nil {
			t.Fatalf("%v for\n%s", err, body)
		}
		var want, got []string
		for i := range turn.Message.DataItems {
			want = append(want, turn.Message.DataItems[i].Text)
		}
		for i := range call.Message.DataItems {
			got = append(got, call.Message.DataItems[i].Text)
		}
		if d := cmp.Diff(asJSON(want), asJSON(got)); d != "" {
			t.Errorf("(-turn +server):\n%s", d)
		}
		whole := `{"jsonrpc":"2.0","id":1,"result":{"input":` + req.Params.Get("input").Raw + `}}`
		if carries, err := c.(translate.Locator).Carries([]byte(whole), &turn); !carries || err != nil {
			t.Errorf("the task of a turn is not found: %v, %s", err, whole)
		}
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestClientEvents(t *testing.T) {
	s := aun.Client("agent.aid.pub").NewStream(nil)
	for _, tt := range []struct{ name, data, want string }{
		{"", `{"jsonrpc":"2.0","id":1,"result":{"task_id":"x","status":"submitted"}}`, "accepted submitted x"},
		{"", `{"jsonrpc":"2.0","id":1,"result":{"task_id":"x","status":"input_required"}}`, "working input_required x"},
		{"event/task.updated", `{"task_id":"x","status":"input_required","message":{"type":"text","content":"which?"}}`,
			"awaiting-input input_required : which?"},
		{"event/task.failed", `{"task_id":"x","status":"failed","reason":"no_context"}`, "failed failed : no_context"},
		{"event/task.artifact", `{"task_id":"x","artifact":{"id":"a","type":"text","content":"y"},"append":true}`, " [a y]"},
		{"event/task.completed", `{"task_id":"x","status":"completed","task":{"task_id":"x","status":"completed",` +
			`"children":["z"],"artifacts":[{"id":"a","type":"text","content":"y"}]}}`,
			`awaiting-completion completed [a y {"aun":{"children":["z"]}}]`},
		{"event/task.delegated", `{"task_id":"x","child_task_id":"y"}`, ""},
		{"notification/other", `[]`, ""},
	} {
		rep, err := s.Event(tt.name, []byte(tt.data))
		if err != nil {
			t.Fatal(err)
		}
		got := string(rep.State)
		if rep.NativeState != "" {
			got += " " + rep.NativeState
		}
		if rep.Ref != nil {
			got += " " + rep.Ref.Task
		}
		for _, it := range rep.Items {
			got += " : " + it.Text
		}
		products := rep.Products
		for i := range rep.Chunks {
			products = append(products, rep.Chunks[i].Product)
		}
		for _, p := range products {
			got += " [" + p.ID + " " + p.DataItems[0].Text
			if p.Extensions != nil {
				got += " " + string(p.Extensions)
			}
			got += "]"
		}
		if got != tt.want {
			t.Errorf("%s %s\nis %q, want %q", tt.name, tt.data, got, tt.want)
		}
	}
}

// An answer about another task than the one of the request is none.
func TestOtherTask(t *testing.T) {
	for named, other := range map[string]bool{"x": false, "": false, "y": true} {
		c := aun.Client("agent.aid.pub").For(translate.Query{ID: "a-1", Task: named})
		answer := []byte(`{"jsonrpc":"2.0","id":null,"result":{"task_id":"x","status":"working"}}`)
		_, err := c.Reply(answer, nil)
		_, inStream := c.NewStream(nil).Event("", answer)
		for _, err := range []error{err, inStream} {
			if errors.Is(err, translate.ErrOtherAnswer) != other || (err != nil) != other {
				t.Errorf("the answer about x to a request about %q: %v", named, err)
			}
		}
	}
}

// An agent's messages, one after the other: as they come, and as they are pulled.
func TestClientMessages(t *testing.T) {
	said := func(seq int, more string) string {
		return fmt.Sprintf(`{"from":"agent.aid.pub","message_id":"m%d","seq":%d,%s}`, seq, seq, more)
	}
	text := func(seq int, text string) string {
		return said(seq, `"payload":{"type":"text","thread_id":"t","text":"`+text+`"}`)
	}
	event := func(seq int, event string) string {
		return said(seq, `"payload":{"type":"event","thread_id":"t","event":"`+event+`"}`)
	}
	sealed := `the agent encrypts its messages; it must send them to the gateway as plain text`
	for _, tt := range []struct {
		over     bool
		messages []string
		want     string // the last state, its words, the products, and the position
	}{
		{false, []string{event(5, "task.started")}, "working [] [known] after 4"},
		{false, []string{event(5, "task.started"), text(6, "a"), text(7, "b")}, "working [] [known a b] after 4"},
		{true, []string{text(6, "a"), text(7, "b")}, "awaiting-completion [] [known a b] after 7 ended "},
		{false, []string{text(6, "a"), event(9, "task.completed"), text(10, "late")},
			"awaiting-completion [] [known a] after 9 ended "},
		{false, []string{event(6, "task.error")}, "failed [] [known] after 6 ended "},
		{false, []string{event(6, "task.interrupted")}, "canceled [] [known] after 6 ended "},
		{false, []string{said(6, `"payload":{"type":"status","state":"input_required","text":"which?"}`)},
			"awaiting-input [which?] [known] after 6 ended "},
		{false, []string{said(6, `"encrypted":true,"payload":{}`)}, "failed [" + sealed + "] [known] after 6 ended "},
		{false, []string{said(6, `"payload":{"type":"e2ee.p2p_encrypted"}`)},
			"failed [" + sealed + "] [known] after 6 ended "},
	} {
		known := []task.Product{{ID: "k", DataItems: []task.DataItem{task.Text("known")}}}
		c := aun.Client("agent.aid.pub")
		stream, fold := c.NewStream(known), task.NewFold(task.Task{Products: known})
		events := [][2]string{{aun.MessagesBegun, `{"thread_id":"t","session":"after 4"}`}}
		var pulled []gjson.Result
		for _, m := range tt.messages {
			events = append(events, [2]string{aun.MessageReceived, m})
			pulled = append(pulled, gjson.Parse(m))
		}
		if tt.over {
			events = append(events, [2]string{aun.MessagesOver, `{}`})
		}
		var last agent.Report
		var ref agent.Ref
		for _, e := range events {
			rep, err := stream.Event(e[0], []byte(e[1]))
			if err != nil {
				t.Fatal(err)
			}
			for i := range rep.Chunks {
				fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &rep.Chunks[i]})
			}
			if rep.State != task.None {
				last = rep
			}
			if rep.Ref != nil {
				ref = *rep.Ref
			}
			if rep.EndsTurn() {
				break
			}
		}
		show := func(rep agent.Report, products []task.Product, ref agent.Ref) string {
			if rep.Ref != nil {
				ref = *rep.Ref
			}
			var items, made []string
			for _, it := range rep.Items {
				items = append(items, it.Text)
			}
			for _, p := range products {
				made = append(made, p.DataItems[0].Text)
			}
			return fmt.Sprint(rep.State, " ", items, " ", made, " ", ref.Session)
		}
		if got := show(last, fold.Task().Products, ref); got != tt.want {
			t.Errorf("received: %s\nwant: %s", got, tt.want)
		}
		whole, err := c.Reply(aun.Pulled(agent.Ref{Task: "t", Session: "after 4"}, pulled, tt.over), known)
		if got := show(whole, whole.Products, agent.Ref{Session: "after 4"}); err != nil || got != tt.want {
			t.Errorf("pulled: %s, %v\nwant: %s", got, err, tt.want)
		}
		if whole.EndsTurn() && whole.Revision != last.Revision {
			t.Errorf("the revision %q is %q when it is pulled", last.Revision, whole.Revision)
		}
	}
}

// The revision of a settled task is the same whether it came by an event or was asked for.
func TestClientRevision(t *testing.T) {
	c := aun.Client("agent.aid.pub")
	event, err := c.NewStream(nil).Event("event/task.updated",
		[]byte(`{"task_id":"x","status":"input_required","updated_at":"2026-03-21T13:01:00Z","message":"which?"}`))
	if err != nil {
		t.Fatal(err)
	}
	asked, err := c.Reply([]byte(`{"jsonrpc":"2.0","id":1,"result":{"task_id":"x","status":"input_required",`+
		`"updated_at":"2026-03-21T13:01:00Z","artifacts":[],"owner":"a.b"}}`), nil)
	if err != nil || asked.Revision != event.Revision || !asked.RevisionDated {
		t.Errorf("%q and %q, %v", event.Revision, asked.Revision, err)
	}
}

// The kinds of an agent's errors are the kinds of the gateway's own server; an error blaming the gateway is no mistake
// of the Leader.
func TestClientErrors(t *testing.T) {
	c := aun.Client("agent.aid.pub")
	for _, kind := range task.Kinds() {
		_, err := c.Reply(aun.Server{}.AppendError(nil, jsonrpc.ID("1"), task.Errorf(kind, "a sentence")), nil)
		got := task.KindOf(err)
		switch kind {
		case task.TaskNotFound, task.InvalidParams, task.MethodNotFound, task.UnsupportedOperation, task.LimitExceeded,
			task.AgentUnavailable, task.AgentTimeout:
			if got != kind {
				t.Errorf("%v is read as %v", kind, got)
			}
		case task.AuthenticationRequired, task.AuthorizationFailed, task.AccessTokenInvalid:
			if got != task.InvalidAgentResponse {
				t.Errorf("%v is read as %v", kind, got)
			}
		}
	}
}

// Any body of an agent is reported, or refused by an error, and nothing kept is a view of it.
func FuzzClient(f *testing.F) {
	f.Add("", `{"jsonrpc":"2.0","id":1,"result":{"task_id":"x","status":"working","artifacts":[{"id":"a","content":1}]}}`)
	f.Add("event/message.received", `{"message_id":"m","seq":1,"payload":{"type":"event","event":"task.completed"}}`)
	f.Add("", `{"jsonrpc":"2.0","id":1,"result":{"thread_id":"t","messages":[{"message_id":"m","seq":1,"payload":`+
		`{"type":"text","text":"x"}}]}}`)
	f.Add("event/task.artifact", `{"task_id":"x","artifact":{"id":"a","type":"multipart","content":[{"type":"text"}]}}`)
	f.Add("event/task.completed", `{"status":"completed","task":{"status":"completed","children":[{}],"artifacts":[]}}`)
	c := aun.Client("agent.aid.pub")
	turn := &agent.Turn{Message: task.Message{ID: "m", DataItems: []task.DataItem{task.Text("hi")}}}
	f.Fuzz(func(t *testing.T, name, data string) {
		for _, read := range []func(body []byte) (any, error){
			func(body []byte) (any, error) { return c.NewStream(nil).Event(name, body) },
			func(body []byte) (any, error) { return c.Reply(body, nil) },
			func(body []byte) (any, error) {
				refs, next, err := c.(translate.Locator).Listed(body, turn)
				return append(refs, agent.Ref{Task: next}), err
			},
			func(body []byte) (any, error) { return c.(translate.Locator).Carries(body, turn) },
		} {
			body := []byte(data)
			want, err := read(body)
			if err != nil {
				continue
			}
			again, _ := read([]byte(data))
			for i := range body {
				body[i] = 'x'
			}
			if !reflect.DeepEqual(want, again) {
				t.Errorf("a report is a view of its body:\n%s", cmp.Diff(want, again))
			}
		}
	})
}
