// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// vector returns the events of an answer of the real server.
func vector(t testing.TB, name string) (events [][]byte) {
	t.Helper()
	file, err := os.ReadFile("testdata/" + name + ".sse")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data: ")); ok {
			events = append(events, data)
		}
	}
	return events
}

// heard is a Leader's view of an answer.
type heard struct {
	States   []string // each with its texts
	Chunks   []string // +text is appended
	Products []task.Product
	Err      string
}

// hear reads the events of an answer.
func hear(o Options, events [][]byte) (h heard) {
	s := Client(o).NewStream(nil)
	var fold task.Fold
	for _, ev := range events {
		rep, err := s.Event("", ev)
		if err != nil {
			h.Err = err.Error()
			break
		}
		for i := range rep.Chunks {
			c := &rep.Chunks[i]
			text := map[bool]string{true: "+"}[c.Append] + said(c.Product.DataItems)
			h.Chunks = append(h.Chunks, text+map[bool]string{true: " (last)"}[c.Last])
			fold.Apply(task.Event{Chunk: c})
		}
		if rep.State != task.None {
			state := string(rep.State)
			if len(rep.Items) > 0 {
				state += ": " + said(rep.Items)
			}
			h.States = append(h.States, state)
		}
	}
	h.Products = fold.Task().Products
	for i := range h.Products { // the ids are random
		h.Products[i].ID, _, _ = strings.Cut(h.Products[i].ID, "_")
	}
	return h
}

// said returns items as a line.
func said(items []task.DataItem) string {
	var parts []string
	for i := range items {
		switch it := &items[i]; it.Kind {
		case task.TextItem:
			parts = append(parts, it.Text)
		default:
			parts = append(parts, string(it.Data)+it.URI+it.Bytes)
		}
	}
	return strings.Join(parts, "|")
}

func product(name string, items ...task.DataItem) task.Product {
	return task.Product{ID: "msg", Name: name, DataItems: items}
}

// TestVectors tests a Leader's view of the answers of the real server.
func TestVectors(t *testing.T) {
	hello := product("", task.Text("Hello"))
	call := task.DataItem{Kind: task.DataKind,
		Data: json.RawMessage(`{"call_id":"c1","name":"get_weather","arguments":"{\"city\": \"x\"}"}`)}
	output := task.DataItem{Kind: task.DataKind,
		Data: json.RawMessage(`{"call_id":"c1","name":"get_weather",` +
			`"output":"[{\"type\": \"text\", \"text\": \"sunny\"}]"}`)}
	for _, c := range []struct {
		name   string
		expose Expose
		want   heard
	}{
		{"hello", ExposeNone, heard{
			States: []string{"accepted", "working", "awaiting-completion"}, Chunks: []string{"Hel", "+lo", "+ (last)"},
			Products: []task.Product{hello},
		}},
		{"tool", ExposeNone, heard{
			States: []string{"accepted", "working", "awaiting-completion"}, Chunks: []string{"Hel", "+lo", "+ (last)"},
			Products: []task.Product{hello},
		}},
		{"tool", ExposeStatus, heard{
			States: []string{"accepted", "working", "working: hmm ok", "working: " + said([]task.DataItem{call}),
				"working: " + said([]task.DataItem{output}), "awaiting-completion"},
			Chunks: []string{"Hel", "+lo", "+ (last)"}, Products: []task.Product{hello},
		}},
		{"tool", ExposeProduct, heard{
			States: []string{"accepted", "working", "awaiting-completion"},
			Chunks: []string{"hmm", "+ ok", "+ (last)", said([]task.DataItem{call}), "+ (last)",
				said([]task.DataItem{output}), "+ (last)", "Hel", "+lo", "+ (last)"},
			Products: []task.Product{
				product("reasoning", task.Text("hmm ok")), product("plugin_call", call),
				product("plugin_call_output", output), hello,
			},
		}},
		{"boom", ExposeNone, heard{
			States: []string{"accepted", "working",
				"failed: AGENT_UNKNOWN_ERROR: Unknown agent error: RuntimeError: kaput"},
			Chunks: []string{"Hi"}, Products: []task.Product{product("", task.Text("Hi"))},
		}},
		{"badreq", ExposeNone, heard{
			Err: "invalid-agent-response: the agent's server reports an error, and not a response: 1 validation error " +
				"for AgentRequest input Field required [type=missing, input_value={'session_id': 'x'}, " +
				"input_type=dict] For further information visit https://errors.pydantic.dev/2.10/v/missing",
		}},
		{"stop", ExposeNone, heard{ // it ends without an end
			States:   []string{"accepted", "working"},
			Chunks:   []string{"x", "+x", "+x", "+x", "+x", "+x", "+x", "+x"},
			Products: []task.Product{product("", task.Text("xxxxxxxx"))},
		}},
	} {
		if d := cmp.Diff(c.want, hear(Options{Expose: c.expose}, vector(t, c.name))); d != "" {
			t.Errorf("%s, %s (-want +got):\n%s", c.name, exposeNames[c.expose], d)
		}
	}
}

// TestEvents tests answers beside those of the vectors.
func TestEvents(t *testing.T) {
	const (
		begin = `{"object":"response","id":"r","status":"in_progress"}`
		end   = `{"object":"response","id":"r","status":"completed","output":null}`
		says  = `{"object":"message","id":"m","type":"message","role":"assistant","status":"in_progress"}`
	)
	content := func(status string, delta string, rest string) string {
		return fmt.Sprintf(`{"object":"content","status":%q,"delta":%s,"msg_id":"m",%s}`, status, delta, rest)
	}
	grows := func(index int, text string) string {
		return content("in_progress", "true", fmt.Sprintf(`"type":"text","index":%d,"text":%q`, index, text))
	}
	complete := func(contents string) string {
		return `{"object":"message","id":"m","type":"message","status":"completed","content":[` + contents + `]}`
	}
	approval := `{"object":"message","id":"a","type":"mcp_approval_request","status":"completed","content":[` +
		`{"type":"data","data":{"id":"apr-1","name":"rm","arguments":"{}","server_label":"shell"}}]}`
	call := `{"object":"message","id":"f","type":"function_call","status":"completed","content":[` +
		`{"type":"data","data":{"call_id":"c-1","name":"pick","arguments":"{}"}}]}`
	for _, c := range []struct {
		name   string
		events []string
		want   heard
	}{
		{"the specification's own example", []string{
			`{"status":"created","id":"response_1","object":"response"}`,
			`{"status":"created","id":"msg_1","object":"message","type":"assistant"}`,
			`{"status":"in_progress","type":"text","index":0,"delta":true,"text":"Hello","object":"content"}`,
			`{"status":"in_progress","type":"text","index":0,"delta":true,"text":", ","object":"content"}`,
			`{"status":"in_progress","type":"text","index":0,"delta":true,"text":"world","object":"content"}`,
			`{"status":"completed","type":"text","index":0,"delta":false,"text":"Hello, world!","object":"content"}`,
			`{"status":"completed","id":"msg_1","object":"message"}`,
			`{"status":"completed","id":"response_1","object":"response"}`,
		}, heard{
			States: []string{"accepted", "awaiting-completion"}, Chunks: []string{"Hello", "+, ", "+world", "+!", "+ (last)"},
			Products: []task.Product{product("", task.Text("Hello, world!"))},
		}},
		{"a text that is another one in the end", []string{begin, says, grows(0, "Hallo"),
			content("completed", "null", `"type":"text","index":0,"text":"Hello"`), end}, heard{
			States: []string{"working", "awaiting-completion"}, Chunks: []string{"Hallo", "Hello", "+ (last)"},
			Products: []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("Hello")}}},
		}},
		{"contents that grow by turns", []string{begin, says, grows(0, "a"), grows(1, "c"), grows(0, "b"),
			complete(`{"type":"text","text":"ab"},{"type":"text","text":"c"}`), end}, heard{
			States: []string{"working", "awaiting-completion"}, Chunks: []string{"a", "+c", "+b", "abc (last)"},
			Products: []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("abc")}}},
		}},
		{"escapes that differ", []string{begin, says, grows(0, "é"),
			`{"object":"content","status":"completed","msg_id":"m","type":"text","index":0,"text":"\u00e9"}`, end}, heard{
			States: []string{"working", "awaiting-completion"}, Chunks: []string{"é", "+ (last)"},
			Products: []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("é")}}},
		}},
		{"a text and an image", []string{begin, says, grows(0, "see"),
			content("completed", "false", `"type":"text","index":0,"text":"see"`),
			content("in_progress", "false", `"type":"image","index":null,"image_url":""`),
			content("completed", "false", `"type":"image","index":1,"image_url":"https://x/a.png"`), end}, heard{
			States: []string{"working", "awaiting-completion"}, Chunks: []string{"see", "+https://x/a.png", "+ (last)"},
			Products: []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("see"),
				{Kind: task.FileItem, URI: "https://x/a.png", MIMEType: "image/png"}}}},
		}},
		{"only in the output", []string{begin,
			`{"object":"response","status":"completed","output":[` + complete(`{"type":"text","text":"all"}`) + `]}`},
			heard{
				States: []string{"working", "awaiting-completion"}, Chunks: []string{"all (last)"},
				Products: []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("all")}}},
			}},
		{"twice the same", []string{begin, says, grows(0, "x"), complete(`{"type":"text","text":"x"}`),
			complete(`{"type":"text","text":"y"}`), grows(0, "z"),
			`{"object":"response","status":"completed","output":[` + complete(`{"type":"text","text":"x"}`) + `]}`},
			heard{
				States: []string{"working", "awaiting-completion"}, Chunks: []string{"x", "+ (last)"},
				Products: []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("x")}}},
			}},
		{"a message of the user", []string{begin,
			`{"object":"message","id":"m","type":"message","role":"user","status":"completed","content":[` +
				`{"type":"text","text":"hi"}]}`, end},
			heard{States: []string{"working", "awaiting-completion"}}},
		{"heartbeats, [DONE] and what is unknown", []string{begin, "", "[DONE]",
			`{"object":"message","type":"heartbeat","id":"h","status":"in_progress"}`, `{"object":"beat"}`, `{}`,
			`{"object":"response","status":"unknown"}`, `{"object":"response","status":"dreaming"}`, `"text"`, end},
			heard{States: []string{"working", "awaiting-completion"}}},
		{"numbers that are strings", []string{`{"sequence_number":"0","object":"response","status":"created","id":"r"}`},
			heard{States: []string{"accepted"}}},
		{"incomplete", []string{begin, says, grows(0, "half"),
			`{"object":"response","id":"r","status":"incomplete","error":null}`}, heard{
			States: []string{"working", "failed: the agent's answer is incomplete"}, Chunks: []string{"half"},
			Products: []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("half")}}},
		}},
		{"canceled", []string{begin, `{"object":"response","status":"canceled"}`}, heard{
			States: []string{"working", "canceled: the agent says that the run is canceled, and gives no reason"}}},
		{"rejected", []string{`{"object":"response","status":"rejected","error":{"code":"NO","message":"not now"}}`},
			heard{States: []string{"rejected: NO: not now"}}},
		{"an error in a message", []string{begin,
			`{"object":"message","id":"m","type":"message","status":"failed","code":"TIMEOUT","message":"too slow"}`,
			`{"object":"response","status":"failed","error":null}`},
			heard{States: []string{"working", "failed: TIMEOUT: too slow"}}},
		{"a message that is an error", []string{begin,
			`{"object":"message","id":"m","type":"error","status":"completed","code":"TIMEOUT","message":"too slow"}`},
			heard{States: []string{"working", "failed: TIMEOUT: too slow"}}},
		{"no reason", []string{`{"object":"response","status":"failed"}`}, heard{
			States: []string{"failed: the agent says that the run is failed, and gives no reason"}}},
		{"a request for approval", []string{begin, approval, end}, heard{States: []string{"working",
			`awaiting-input: The agent asks for approval to call rm. Answer yes or no, or with {"approve": true}.|` +
				`{"id":"apr-1","name":"rm","arguments":"{}","server_label":"shell"}`}}},
		{"an open call", []string{begin, call, `{"object":"response","status":"completed","output":[` + call + `]}`},
			heard{States: []string{"working", `awaiting-input: The agent calls the function pick. Answer with its output.|` +
				`{"call_id":"c-1","name":"pick","arguments":"{}"}`}}},
		{"a call that is answered", []string{begin, call,
			`{"object":"message","id":"o","type":"function_call_output","role":"tool","status":"completed","content":[` +
				`{"type":"data","data":{"call_id":"c-1","output":"4"}}]}`, end},
			heard{States: []string{"working", "awaiting-completion"}}},
		{"an approval that is answered", []string{begin, approval,
			`{"object":"message","id":"o","type":"mcp_approval_response","status":"completed","content":[` +
				`{"type":"data","data":{"approval_request_id":"apr-1","approve":true}}]}`, end},
			heard{States: []string{"working", "awaiting-completion"}}},
		{"an index that is none", []string{begin, content("in_progress", "true", `"type":"text","index":-1,"text":"x"`)},
			heard{States: []string{"working"},
				Err: "invalid-agent-response: the agent's answer has a content whose index is no integer from 0 to 999"}},
		{"no JSON", []string{begin, "hello"}, heard{States: []string{"working"},
			Err: "invalid-agent-response: the agent's event is not one JSON value"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events [][]byte
			for _, ev := range c.events {
				events = append(events, []byte(ev))
			}
			if d := cmp.Diff(c.want, hear(Options{}, events)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestReply tests answers other than streams.
func TestReply(t *testing.T) {
	known := []task.Product{{ID: "m-0", DataItems: []task.DataItem{task.Text("before")}}}
	rep, err := Client(Options{}).Reply([]byte(`{"object":"response","id":"r","status":"completed","usage":{"n":1},`+
		`"output":[{"object":"message","id":"m","type":"message","role":"assistant","content":[`+
		`{"type":"text","text":"all"}]},{"object":"message","id":"n","type":"reasoning","content":[]}]}`), known)
	want := agent.Report{
		State: task.AwaitingCompletion, NativeState: "completed", Revision: "completed r", Full: true,
		Products:       append(known[:1:1], task.Product{ID: "m", DataItems: []task.DataItem{task.Text("all")}}),
		TaskExtensions: json.RawMessage(`{"agentapi":{"usage":{"n":1}}}`),
	}
	if d := cmp.Diff(want, rep); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for body, want := range map[string]string{
		`{"detail":[{"type":"missing","loc":["body"]}]}`: "the agent's server reports an error, and not a response",
		`{"error":"it broke"}`:                           "the agent's server reports an error, and not a response: it broke",
		`{"status":"success"}`:                           "the agent's answer is no response of the Agent API",
		`[]`:                                             "the agent's answer is no response of the Agent API",
		`<html>`:                                         "the agent's answer is not one JSON value",
	} {
		_, err := Client(Options{}).Reply([]byte(body), nil)
		if e, ok := errors.AsType[*task.Error](err); !ok || e.Kind != task.InvalidAgentResponse || e.Detail != want {
			t.Errorf("%s is reported as %v", body, err)
		}
	}
}

// TestOtherSession: a response of another session of the gateway is no answer. An agent may have a name of its own for
// the session.
//
// Lenient: a session id of its own
func TestOtherSession(t *testing.T) {
	for _, o := range []Options{{}, {CancelPath: "/stop"}} {
		gave := func(session string) bool { return session == "session-1" || session == "session-2" }
		c := Client(o).For(translate.Query{ID: "x-1", Session: "session-1", Gave: gave})
		if _, ok := c.(translate.Canceler); ok != (o.CancelPath != "") {
			t.Errorf("the client of a request can cancel: %v", ok)
		}
		for session, other := range map[string]bool{`"session-1"`: false, `"session-2"`: true,
			`null`: false, `"mine-1234"`: false, `"session-3"`: false} {
			response := []byte(`{"object":"response","id":"r","status":"completed","output":[],"session_id":` + session + `}`)
			_, err := c.Reply(response, nil)
			_, inStream := c.NewStream(nil).Event("", response)
			for _, err := range []error{err, inStream} {
				if errors.Is(err, translate.ErrOtherAnswer) != other || (err != nil) != other {
					t.Errorf("a response of the session %s: %v", session, err)
				}
			}
		}
	}
}

// TestBusy: the line of a busy session is known, in a stream and out of it.
func TestBusy(t *testing.T) {
	busy := []byte(`{"error": "Task s:s is already in RUNNING state."}`)
	_, reply := Client(Options{}).Reply(busy, nil)
	_, event := Client(Options{}).NewStream(nil).Event("", busy)
	for _, err := range []error{reply, event} {
		if !errors.Is(err, translate.ErrBusy) || task.KindOf(err) != task.AgentUnavailable {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestTurns holds the requests, byte for byte.
func TestTurns(t *testing.T) {
	text, data := task.Text, func(s string) task.DataItem {
		return task.DataItem{Kind: task.DataKind, Data: json.RawMessage(s)}
	}
	asked := func(kind, s string) task.DataItem {
		it := data(s)
		it.Metadata = typed(kind)
		return it
	}
	approval := []task.DataItem{text("?"), asked(typeApprovalRequest, `{"id":"a-1","name":"rm"}`)}
	call := []task.DataItem{text("?"), asked(typeFunctionCall, `{"call_id":"c-1","name":"pick"}`)}
	message := func(contents string) string {
		return `{"role":"user","type":"message","content":[` + contents + `]}`
	}
	answer := func(kind, role, data string) string {
		return `{"role":"` + role + `","type":"` + kind + `","content":[{"type":"data","data":{` + data + `}}]}`
	}
	approved := func(rest string) string {
		return answer("mcp_approval_response", "user", `"approval_request_id":"a-1","approve":`+rest)
	}
	outputs := func(rest string) string {
		return answer("function_call_output", "tool", `"call_id":"c-1","name":"pick","output":`+rest)
	}
	for _, c := range []struct {
		name  string
		asked []task.DataItem
		items []task.DataItem
		want  string
	}{
		{"a text", nil, []task.DataItem{text("hi")}, message(`{"type":"text","text":"hi"}`)},
		{"nothing", nil, nil, message("")},
		{"metadata", nil, []task.DataItem{text("a"), {Kind: task.TextItem, Text: "b", Metadata: []byte(`{"k":1}`)}},
			`{"role":"user","type":"message","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],` +
				`"metadata":{"dataItems":{"1":{"k":1}}}}`},
		{"yes", approval, []task.DataItem{text(" Yes. ")}, approved("true")},
		{"no", approval, []task.DataItem{text("no")}, approved("false")},
		{"neither", approval, []task.DataItem{text("why?")}, message(`{"type":"text","text":"why?"}`)},
		{"a reason", approval, []task.DataItem{data(`{"approve":false,"reason":"too risky"}`)},
			approved(`false,"reason":"too risky"`)},
		{"another request", approval, []task.DataItem{data(`{"approve":true,"approval_request_id":"a-2"}`)},
			message(`{"type":"data","data":{"approve":true,"approval_request_id":"a-2"}}`)},
		{"yes and more", approval, []task.DataItem{data(`{"approve":true}`), text("but be quick")},
			approved("true") + "," + message(`{"type":"text","text":"but be quick"}`)},
		{"nothing to an approval", approval, nil, message("")},
		{"a text as output", call, []task.DataItem{text("four")}, outputs(`"four"`)},
		{"data as output", call, []task.DataItem{text("see"), data(`{"n":4}`)},
			outputs(`"{\"n\":4}"`) + "," + message(`{"type":"text","text":"see"}`)},
		{"the member output", call, []task.DataItem{data(`{"call_id":"c-1","output":"4"}`)}, outputs(`"4"`)},
		{"the member output, an object", call, []task.DataItem{data(`{"output":{"n":4}}`)}, outputs(`"{\"n\":4}"`)},
		{"both", append(approval[:2:2], call...), []task.DataItem{text("yes"), data(`{"n":4}`)},
			approved("true") + "," + outputs(`"{\"n\":4}"`)},
	} {
		turn := &agent.Turn{Ref: agent.Ref{Task: "t", Session: "s"}, Message: task.Message{DataItems: c.items}}
		if c.asked != nil {
			turn.From, turn.Asked = task.AwaitingInput, c.asked
		}
		got := string(Client(Options{}).AppendTurn(nil, turn, true))
		want := `{"input":[` + c.want + `],"stream":true,"user_id":"s","session_id":"s"}`
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if _, bad := jsonrpc.ParseValue([]byte(got), jsonrpc.Limits{}); bad != nil {
			t.Errorf("%s: %v", c.name, bad)
		}
	}
	turn := &agent.Turn{Ref: agent.Ref{Session: "s"}, Message: task.Message{
		DataItems: []task.DataItem{text("x")}, Extensions: json.RawMessage(`{"agentapi":{"model":"m","Session_ID":"evil",` +
			`"user_id":"evil","stream":false},"a2a":{"k":1}}`)}}
	want := `{"input":[` + message(`{"type":"text","text":"x"}`) + `],"stream":true,"user_id":"s","session_id":"s",` +
		`"model":"m","metadata":{"a2a":{"k":1}}}`
	if d := cmp.Diff(want, string(Client(Options{}).AppendTurn(nil, turn, true))); d != "" {
		t.Errorf("extensions (-want +got):\n%s", d)
	}
	turn.Message = task.Message{Params: json.RawMessage(`{"timeout":1,"payload":{"a":1},"session_id":"evil"}`)}
	want = `{"input":[` + message(`{"type":"text","text":""}`) + `],"stream":true,"user_id":"s","session_id":"s",` +
		`"metadata":{"aip":{"commandParams":{"payload":{"a":1},"session_id":"evil"}}}}`
	if d := cmp.Diff(want, string(Client(Options{}).AppendTurn(nil, turn, true))); d != "" {
		t.Errorf("parameters of a command (-want +got):\n%s", d)
	}
	canceler, ok := Client(Options{CancelPath: "/stop"}).(translate.SessionCanceler)
	if !ok {
		t.Fatal("it cannot cancel")
	}
	if got := string(canceler.AppendCancel(nil, turn.Ref)); got != `{"user_id":"s","session_id":"s"}` {
		t.Errorf("a cancel is %s", got)
	}
	if _, ok := Client(Options{}).(translate.Canceler); ok {
		t.Error("it cancels by a path that it does not have")
	}
}

// TestManyContents: an agent cannot make the gateway hold any number of contents by indexes skipping some. Complete
// messages do not count.
func TestManyContents(t *testing.T) {
	for name, completes := range map[string]bool{"left open": false, "completed": true} {
		t.Run(name, func(t *testing.T) {
			var events [][]byte
			for i := range 20 {
				events = append(events, fmt.Appendf(nil, `{"object":"content","status":"in_progress","type":"text",`+
					`"msg_id":"m%d","index":999,"delta":true,"text":"x"}`, i))
				if completes {
					events = append(events, fmt.Appendf(nil, `{"object":"message","status":"completed","type":"message",`+
						`"id":"m%d","content":[{"type":"text","text":"x"}]}`, i))
				}
			}
			h := hear(Options{}, events)
			if refused := strings.Contains(h.Err, "more than 10000 contents"); refused == completes {
				t.Errorf("the stream ends with %q", h.Err)
			}
		})
	}
}
