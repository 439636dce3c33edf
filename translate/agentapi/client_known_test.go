// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// msgJSON returns an object of a message, whose contents are JSON.
func msgJSON(id, status, kind, role, contents string) string {
	return fmt.Sprintf(`{"object":"message","id":%q,"status":%q,"type":%q,"role":%q,"content":%s}`, id, status, kind,
		role, contents)
}

// TestUnknownMessages tests the treatment of contents before their message.
func TestUnknownMessages(t *testing.T) {
	const (
		begin  = `{"object":"response","id":"r","status":"in_progress"}`
		end    = `{"object":"response","id":"r","status":"completed","output":null}`
		output = `"type":"data","data":{"call_id":"c","output":"secret"}`
		secret = "{" + output + "}"
	)
	content := func(id, status, members string) string {
		return fmt.Sprintf(`{"object":"content","status":%q,"msg_id":%q,%s}`, status, id, members)
	}
	tool := content("p", "completed", output)
	grows := func(id, text string) string {
		return content(id, "in_progress", fmt.Sprintf(`"type":"text","index":0,"delta":true,"text":%q`, text))
	}
	ends := func(messages string) string {
		return `{"object":"response","id":"r","status":"completed","output":[` + messages + `]}`
	}
	const says = `[{"type":"text","text":"It rains"}]`
	answer := msgJSON("m", "completed", "message", "assistant", says)
	nothing := heard{States: []string{"working", "awaiting-completion"}}
	once := heard{States: nothing.States, Chunks: []string{"It rains", "+ (last)"},
		Products: []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("It rains")}}}}
	whole := once
	whole.Chunks = []string{"It rains (last)"}
	for _, c := range []struct {
		name   string
		expose Expose
		events []string
		want   heard
	}{
		{"a tool's data before its message", ExposeNone,
			[]string{begin, tool, msgJSON("p", "completed", "plugin_call_output", "tool", "["+secret+"]"), answer, end}, whole},
		{"a tool's data, and the beginning of its message", ExposeNone,
			[]string{begin, tool, msgJSON("p", "in_progress", "plugin_call_output", "tool", "null"), tool, answer, end}, whole},
		{"a tool's data, whose message is in the output alone", ExposeNone,
			[]string{begin, tool,
				ends(msgJSON("p", "completed", "plugin_call_output", "tool", "["+secret+"]") + "," + answer)}, whole},
		{"a tool's data, whose message never comes", ExposeNone, []string{begin, tool, answer, end}, whole},
		{"a tool's data without any message", ExposeNone,
			[]string{begin, content("", "completed", output), end}, heard{States: []string{"working",
				"awaiting-completion: the agent has sent contents without their messages, so they are not shown"}}},
		{"an output whose messages do not say that they are any", ExposeNone,
			[]string{begin, ends(`{"id":"p","type":"plugin_call_output","content":[` + secret + `]}`)}, nothing},
		{"a message of a tool", ExposeNone, []string{begin, msgJSON("p", "in_progress", "message", "tool", "null"), tool,
			msgJSON("p", "completed", "message", "tool", "["+secret+"]"), end}, nothing},
		{"a message that turns out to be a tool's", ExposeNone, []string{begin,
			msgJSON("p", "in_progress", "message", "assistant", "null"),
			msgJSON("p", "completed", "plugin_call_output", "tool", "["+secret+"]"), tool, end}, nothing},
		{"a tool's data before its message, as a status", ExposeStatus,
			[]string{begin, tool, msgJSON("p", "completed", "plugin_call_output", "tool", "["+secret+"]"), end},
			heard{States: []string{"working", `working: {"call_id":"c","output":"secret"}`, "awaiting-completion"}}},
		{"a tool's data before its message, as a product", ExposeProduct,
			[]string{begin, tool, msgJSON("p", "completed", "plugin_call_output", "tool", "["+secret+"]"), end},
			heard{States: nothing.States,
				Chunks: []string{`{"call_id":"c","output":"secret"}`, "+ (last)"},
				Products: []task.Product{{ID: "p", Name: "plugin_call_output", DataItems: []task.DataItem{
					{Kind: task.DataKind, Data: []byte(`{"call_id":"c","output":"secret"}`)}}}}}},
		{"a tool's data whose message never comes, as a product", ExposeProduct, []string{begin, tool, end},
			heard{States: nothing.States, Chunks: []string{`{"call_id":"c","output":"secret"}`, "+ (last)"},
				Products: []task.Product{{ID: "p", DataItems: []task.DataItem{
					{Kind: task.DataKind, Data: []byte(`{"call_id":"c","output":"secret"}`)}}}}}},
		{"a piece behind a whole text, before their message, as a product", ExposeProduct, []string{begin,
			content("m", "completed", `"type":"text","index":0,"text":"It "`),
			content("m", "in_progress", `"type":"text","index":1,"delta":true,"text":"rains"`),
			msgJSON("m", "completed", "message", "assistant", `[{"type":"text","text":"It "},{"type":"text","text":"rains"}]`),
			end}, once},
		{"the user's message, as a status", ExposeStatus, []string{begin,
			msgJSON("u", "completed", "message", "user", says), msgJSON("s", "completed", "message", "system", says), end},
			nothing},
		{"the user's message, as a product", ExposeProduct, []string{begin,
			msgJSON("u", "in_progress", "message", "user", "null"), grows("u", "hi"),
			msgJSON("u", "completed", "message", "user", says), msgJSON("s", "completed", "message", "system", says), end},
			nothing},
		{"pieces before their message, as a product", ExposeProduct, []string{begin, grows("m", "It "), grows("m", "rains"),
			answer, end}, heard{States: once.States, Chunks: []string{"It ", "+rains", "+ (last)"}, Products: once.Products}},
		{"pieces before their message", ExposeNone,
			[]string{begin, grows("m", "It "), grows("m", "rains"), answer, end}, once},
		{"pieces before the beginning of their message", ExposeNone, []string{begin, grows("m", "It "),
			msgJSON("m", "in_progress", "message", "assistant", "null"), grows("m", "rains"), answer, end},
			heard{States: once.States, Chunks: []string{"It ", "+rains", "+ (last)"}, Products: once.Products}},
		{"pieces before a message that lists no contents", ExposeNone, []string{begin, grows("m", "It "),
			grows("m", "rains"), msgJSON("m", "completed", "message", "assistant", "null"), end}, once},
		{"pieces before a message that is in the output alone", ExposeNone,
			[]string{begin, grows("m", "It "), grows("m", "rains"), ends(answer)}, once},
		{"a call before its message is a question", ExposeNone, []string{begin,
			content("f", "completed", `"type":"data","data":{"call_id":"c-1","name":"pick"}`),
			msgJSON("f", "completed", "function_call", "assistant", `[{"type":"data","data":{"call_id":"c-1","name":"pick"}}]`),
			end}, heard{States: []string{"working", `awaiting-input: The agent calls the function pick. Answer with its ` +
			`output.|{"call_id":"c-1","name":"pick"}`}}},
		{"more than is waited for", ExposeNone,
			[]string{begin, grows("m", strings.Repeat("x", 16<<20))}, heard{States: []string{"working"},
				Err: "invalid-agent-response: the agent's answer has more than 16777216 bytes of contents before their messages"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events [][]byte
			for _, ev := range c.events {
				events = append(events, []byte(ev))
			}
			got := hear(Options{Expose: c.expose}, events)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if c.expose == ExposeNone && strings.Contains(fmt.Sprint(got), "secret") {
				t.Error("what the agent's tools say is shown")
			}
		})
	}
}

// TestWaitingIsGivenBack: contents waiting for one message are no longer counted when it is known.
func TestWaitingIsGivenBack(t *testing.T) {
	s := Client(Options{}).NewStream(nil).(*stream)
	for i, kind := range []string{"message", "plugin_call"} {
		for _, ev := range []string{
			fmt.Sprintf(`{"object":"content","status":"completed","msg_id":"%d","type":"text","text":"x"}`, i),
			fmt.Sprintf(`{"object":"message","id":"%d","type":%q,"status":"in_progress"}`, i, kind),
		} {
			if _, err := s.Event("", []byte(ev)); err != nil {
				t.Fatal(err)
			}
			if waits := s.waiting > 0; waits != strings.Contains(ev, `"content"`) {
				t.Errorf("%d bytes wait behind %s", s.waiting, ev)
			}
		}
	}
	if s.contents != 1 {
		t.Errorf("%d contents are kept", s.contents)
	}
}

// TestContentsThatSayNothing: of pieces without a text nothing is kept, and nothing is counted.
func TestContentsThatSayNothing(t *testing.T) {
	for _, begin := range []string{`{}`, `{"object":"message","id":"m","type":"function_call","status":"in_progress"}`} {
		s := Client(Options{Expose: ExposeProduct}).NewStream(nil).(*stream)
		for _, ev := range []string{
			begin, `{"object":"content","status":"in_progress","msg_id":"m","type":"text","delta":true,"text":""}`,
			`{"object":"content","status":"in_progress","msg_id":"m","type":"data","delta":true,"data":{"arguments":"{"}}`,
		} {
			if rep, err := s.Event("", []byte(ev)); err != nil || len(rep.Chunks) > 0 {
				t.Fatalf("%s is read as %+v, %v", ev, rep, err)
			}
		}
		if s.contents != 0 || s.waiting != 0 {
			t.Errorf("behind %s, %d contents are kept, and %d bytes wait", begin, s.contents, s.waiting)
		}
	}
}

// TestConcludeAsks: an agent with an open question before its last message waits for the answer.
func TestConcludeAsks(t *testing.T) {
	s := Client(Options{}).NewStream(nil).(*stream)
	for _, ev := range []string{
		`{"object":"message","id":"q","status":"completed","type":"mcp_approval_request","role":"assistant",` +
			`"content":[{"type":"data","data":{"id":"a","name":"pay"}}]}`,
		`{"object":"message","id":"m","status":"completed","content":[{"type":"text","text":"May I?"}]}`,
	} {
		if _, err := s.Event("", []byte(ev)); err != nil {
			t.Fatal(err)
		}
	}
	if rep, ok := s.Conclude(); !ok || rep.State != task.AwaitingInput || len(rep.Items) != 2 || !rep.Presumed {
		t.Errorf("it amounts to %+v, %v", rep, ok)
	}
}

// TestConclude: an agent ending its stream behind a complete answer has answered. Elsewhere it was stopped.
//
// Lenient: the end of its stream behind a complete message, without the response's
func TestConclude(t *testing.T) {
	message := func(id, status, kind, role string) string {
		content := "null"
		if status == "completed" {
			content = `[{"type":"text","text":"a"}]`
		}
		return msgJSON(id, status, kind, role, content)
	}
	answer := message("m", "completed", "message", "assistant")
	for _, c := range []struct {
		name   string
		events []string
		want   bool
	}{
		{"an answer", []string{message("m", "in_progress", "message", "assistant"), answer}, true},
		{"an answer behind a call", []string{message("p", "completed", "plugin_call", "assistant"),
			message("p", "completed", "plugin_call_output", "tool"), answer}, true},
		{"an interface", []string{answer, message("u", "completed", "a2ui_response", "assistant")}, true},
		{"nothing", nil, false},
		{"a call behind a message", []string{answer, message("p", "completed", "plugin_call", "assistant")}, false},
		{"the user's own message", []string{message("u", "completed", "message", "user")}, false},
		{"another message in progress", []string{message("t", "in_progress", "message", "assistant"), answer}, false},
		{"a piece of another message", []string{answer,
			`{"object":"content","msg_id":"n","type":"text","delta":true,"text":"b"}`}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, o := range []Options{{}, {Expose: ExposeProduct}} {
				s := Client(o).NewStream(nil)
				for _, ev := range c.events {
					if _, err := s.Event("", []byte(ev)); err != nil {
						t.Fatal(err)
					}
				}
				rep, ok := s.(translate.Concluder).Conclude()
				said, err := s.Event("", []byte("[DONE]"))
				if ok != c.want || (rep.State == task.AwaitingCompletion) != c.want || rep.Presumed != c.want ||
					err != nil || said.State != rep.State {
					t.Errorf("it amounts to %+v and %v; behind [DONE] to %+v, %v", rep, ok, said, err)
				}
			}
		})
	}
}
