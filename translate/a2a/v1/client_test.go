// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"golang.org/x/tools/txtar"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

const captures = "testdata/go.txtar"

// bindings are the two bindings of A2A 1.0.
var bindings = []struct {
	name    string
	client  translate.Client
	server  translate.Server // without confirm
	confirm translate.Server
}{
	{"a2a/1.0", a2a.V1(), a2a.V1Server(false), a2a.V1Server(true)},
	{"a2a/1.0-rest", a2a.V1REST(), a2a.V1RESTServer(false), a2a.V1RESTServer(true)},
}

func TestNames(t *testing.T) {
	for _, b := range bindings {
		for _, got := range []string{b.client.Name(), b.server.Name(), b.confirm.Name()} {
			if got != b.name {
				t.Errorf("the name is %q, want %q", got, b.name)
			}
		}
		if diff := cmp.Diff([]translate.Field{{Name: "A2A-Version", Value: "1.0"}}, b.client.Header()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestCaptures reads the answers of a real agent, and the requests of a real client.
func TestCaptures(t *testing.T) {
	ar, err := txtar.ParseFile(captures)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range ar.Files {
		want[f.Name] = string(f.Data)
	}
	var now []txtar.File
	for _, f := range ar.Files {
		b := bindings[0]
		if strings.HasPrefix(f.Name, "rest/") {
			b = bindings[1]
		}
		var got string
		switch path.Ext(f.Name) {
		case ".request":
			got = show(decode(b.server, f.Data))
		case ".json":
			got = showReport(b.client.Reply(f.Data, nil))
		case ".sse":
			s := b.client.NewStream(nil)
			for _, ev := range blocks(f.Data) {
				got += showReport(s.Event(ev.name, ev.data))
			}
		case ".push":
			got = showReport(b.client.Push(f.Data, nil))
		default:
			continue
		}
		now = append(now, f, txtar.File{Name: f.Name + ".want", Data: []byte(got)})
		if diff := cmp.Diff(want[f.Name+".want"], got); diff != "" && !*a2atest.Update {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	if *a2atest.Update {
		if err := os.WriteFile(captures, txtar.Format(&txtar.Archive{Comment: ar.Comment, Files: now}),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type event struct {
	name string
	data []byte
}

// blocks takes the events of a stream apart; each has one line of data.
func blocks(stream []byte) []event {
	var all []event
	for block := range strings.SplitSeq(strings.TrimSpace(string(stream)), "\n\n") {
		var ev event
		for line := range strings.Lines(block) {
			line = strings.TrimSuffix(line, "\n")
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				ev.name = name
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				ev.data = []byte(data)
			}
		}
		all = append(all, ev)
	}
	return all
}

// decode decodes a request as a front would: one of JSON-RPC is a body, one of REST a line with method and path, and
// behind it the body.
func decode(s translate.Server, text []byte) (translate.Call, error) {
	if s.Name() == "a2a/1.0" {
		req, bad := jsonrpc.Parse(text, jsonrpc.Limits{})
		if bad != nil {
			return translate.Call{}, bad
		}
		return s.Decode(&translate.Request{Request: req, HTTP: "POST"})
	}
	line, body, _ := strings.Cut(string(text), "\n")
	method, target, _ := strings.Cut(line, " ")
	u, err := url.Parse(target)
	if err != nil {
		return translate.Call{}, err
	}
	r, ok := s.Route(method, strings.TrimPrefix(u.EscapedPath(), "/"))
	if !ok || r.Allow != "" || !r.Unenveloped {
		return translate.Call{}, fmt.Errorf("the route of %s is %+v", line, r)
	}
	req := &translate.Request{HTTP: method, PathParams: r.PathParams, Query: u.Query()}
	req.Method = r.Method
	if body = strings.TrimSpace(body); body != "" {
		if !json.Valid([]byte(body)) {
			return translate.Call{}, errors.New("the body is no JSON")
		}
		req.Params = gjson.Parse(body)
	}
	return s.Decode(req)
}

// show renders a call, or the error in its place, in a form to compare.
func show(c translate.Call, err error) string {
	if err != nil {
		return showError(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "call op=%d %s", c.Op, c.Message.Command)
	for _, m := range [...]struct{ key, value string }{
		{"id", c.Message.ID}, {"task", c.Message.TaskID}, {"session", c.Message.SessionID}, {"method", c.Method},
	} {
		if m.value != "" {
			fmt.Fprintf(&b, " %s=%q", m.key, m.value)
		}
	}
	for _, m := range [...]struct {
		key string
		set bool
	}{{"stream", c.Stream}, {"snapshot", c.Snapshot}, {"strict", c.Strict}, {"either", c.StartOrContinue},
		{"auto", c.AutoComplete}} {
		if m.set {
			b.WriteString(" " + m.key)
		}
	}
	if c.Terms.Response != 0 {
		fmt.Fprintf(&b, " response=%v", c.Terms.Response)
	}
	fmt.Fprintf(&b, " history=%d\n", c.History)
	if len(c.Message.DataItems) > 0 {
		fmt.Fprintf(&b, "  says %s\n", readParts(c.Message.DataItems))
	}
	if c.Webhook != nil {
		fmt.Fprintf(&b, "  webhook %+v\n", *c.Webhook)
	}
	if c.List != nil {
		fmt.Fprintf(&b, "  list %+v\n", *c.List)
	}
	return b.String()
}

func showError(err error) string {
	var e *task.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("no task.Error: %v\n", err)
	}
	if e.Field != "" {
		return fmt.Sprintf("error %v at %s: %s\n", e.Kind, e.Field, e.Detail)
	}
	return fmt.Sprintf("error %v: %s\n", e.Kind, e.Detail)
}

// showReport renders a report, or the error in its place, in a form to compare.
func showReport(rep agent.Report, err error) string {
	if err != nil {
		return showError(err)
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
	if rep.Ref != nil {
		fmt.Fprintf(&b, " task=%q session=%q", rep.Ref.Task, rep.Ref.Session)
	}
	b.WriteString("\n")
	if len(rep.Items) > 0 {
		fmt.Fprintf(&b, "  says %s\n", readParts(rep.Items))
	}
	for i := range rep.Products {
		fmt.Fprintf(&b, "  product %s\n", task.Form(nil).AppendProduct(nil, &rep.Products[i]))
	}
	for i := range rep.Chunks {
		fmt.Fprintf(&b, "  chunk %s\n", task.AppendChunk(nil, &rep.Chunks[i]))
	}
	return b.String()
}

func readParts(items []task.DataItem) string {
	return gjson.GetBytes(task.Form(nil).AppendProduct(nil, &task.Product{DataItems: items}), "dataItems").Raw
}

// TestRequests tests the requests to agents.
func TestRequests(t *testing.T) {
	hook := &task.Webhook{ID: "w", TaskID: "ours", URL: "https://gw.example/hook", Token: "tok", Scheme: "Bearer",
		Credentials: "cred", Dialect: "x"}
	ref := agent.Ref{Task: "t\"1", Session: "c1"}
	says := task.Message{ID: "m1", DataItems: []task.DataItem{task.Text("a \"b\"\n")}}
	for _, tc := range []struct {
		name   string
		turn   agent.Turn
		stream bool
		want   string // the params
	}{
		{"start", agent.Turn{Ref: ref, Message: says}, false,
			`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a \"b\"\n"}],"contextId":"c1"},` +
				`"configuration":{"historyLength":0}}`},
		{"start without an id", agent.Turn{Ref: ref}, true,
			`{"message":{"messageId":"t\"1","role":"ROLE_USER","parts":[],"contextId":"c1"},` +
				`"configuration":{"historyLength":0}}`},
		{"start in no context, with references", agent.Turn{Message: says, References: []string{"t2", "t3"}}, false,
			`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a \"b\"\n"}],` +
				`"referenceTaskIds":["t2","t3"]},"configuration":{"historyLength":0}}`},
		{"start with a webhook", agent.Turn{Ref: ref, Message: says, Webhook: hook}, true,
			`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a \"b\"\n"}],"contextId":"c1"},` +
				`"configuration":{"historyLength":0,"taskPushNotificationConfig":{"url":"https://gw.example/hook","id":"w",` +
				`"token":"tok","authentication":{"scheme":"Bearer","credentials":"cred"}}}}`},
		{"answer", agent.Turn{Ref: ref, Message: says, From: task.AwaitingInput, Webhook: &task.Webhook{URL: "u"}},
			true,
			`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a \"b\"\n"}],"taskId":"t\"1","contextId":"c1"},` +
				`"configuration":{"historyLength":0,"taskPushNotificationConfig":{"url":"u","taskId":"t\"1"}}}`},
		{"answer without an id", agent.Turn{Ref: agent.Ref{Task: "t"}, From: task.AwaitingInput, Revision: "input 1"},
			false,
			`{"message":{"messageId":"t-832dec17","role":"ROLE_USER","parts":[],"taskId":"t"},` +
				`"configuration":{"historyLength":0}}`},
		{"go on", agent.Turn{Ref: ref, Message: says, From: task.AwaitingCompletion}, false,
			`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a \"b\"\n"}],"contextId":"c1",` +
				`"referenceTaskIds":["t\"1"]},"configuration":{"historyLength":0}}`},
		{"go on after a mere message", agent.Turn{Message: says, From: task.AwaitingCompletion}, false,
			`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a \"b\"\n"}]},` +
				`"configuration":{"historyLength":0}}`},
	} {
		method := "SendMessage"
		if tc.stream {
			method = "SendStreamingMessage"
		}
		id := gjson.Get(tc.want, "message.messageId").Raw
		rpc := `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + tc.want + `}`
		for i, want := range []string{rpc, tc.want} {
			got := string(bindings[i].client.AppendTurn([]byte("+"), &tc.turn, tc.stream))
			if diff := cmp.Diff("+"+want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", bindings[i].name, tc.name, diff)
			}
		}
	}
	if hook.TaskID != "ours" {
		t.Error("the turn's webhook has changed")
	}
	for i, c := range []translate.Client{a2a.V1(), a2a.V1REST()} {
		got := []string{string(c.(translate.Getter).AppendGet(nil, ref)),
			string(c.(translate.Canceler).AppendCancel(nil, ref)),
			string(c.(translate.Resubscriber).AppendResubscribe(nil, ref))}
		want := []string{
			`{"jsonrpc":"2.0","id":"t\"1","method":"GetTask","params":{"id":"t\"1","historyLength":0}}`,
			`{"jsonrpc":"2.0","id":"t\"1","method":"CancelTask","params":{"id":"t\"1"}}`,
			`{"jsonrpc":"2.0","id":"t\"1","method":"SubscribeToTask","params":{"id":"t\"1"}}`,
		}
		if i == 1 {
			want = []string{"", "{}", "{}"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name(), diff)
		}
	}
}

// TestBind: every errand of REST finds its way back through the routes of the server.
func TestBind(t *testing.T) {
	c := a2a.V1REST().(translate.Binder)
	if _, ok := a2a.V1().(translate.Binder); ok {
		t.Error("JSON-RPC has one path only")
	}
	for _, id := range []string{"t1", "a b", "urn:x:y", "100%", "ü?#&=+", "a/b"} {
		for _, tc := range []struct {
			errand translate.Operation
			method string
			suffix string
		}{
			{translate.Send, "SendMessage", "message:send"},
			{translate.SendStream, "SendStreamingMessage", "message:stream"},
			{translate.Get, "GetTask", "tasks/" + id},
			{translate.Cancel, "CancelTask", "tasks/" + id + ":cancel"},
			{translate.Resubscribe, "SubscribeToTask", "tasks/" + id + ":subscribe"},
		} {
			verb, target := c.Bind(tc.errand, agent.Ref{Task: id, Session: "c"})
			u, err := url.Parse("http://agent.example/base" + target)
			if err != nil {
				t.Fatal(err)
			}
			path, ok := strings.CutPrefix(u.Path, "/base/")
			if !ok || path != tc.suffix || u.Fragment != "" {
				t.Errorf("%s of %q goes to %s", tc.method, id, target)
			}
			r, ok := a2a.V1RESTServer(false).Route(verb, strings.TrimPrefix(u.EscapedPath(), "/base/"))
			if !ok || r.Method != tc.method || !r.Unenveloped || r.PathParams != nil && r.PathParams["id"] != id {
				t.Errorf("%s %s is routed as %+v", verb, target, r)
			}
			if tc.errand == translate.Get && u.RawQuery != "historyLength=0" {
				t.Errorf("the query is %q", u.RawQuery)
			}
		}
	}
}
