// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestHistory: an agent gets the messages of a request as its caller has sent them.
func TestHistory(t *testing.T) {
	const hello = `{"role":"user","type":"message","content":[{"type":"text","text":"hello"}]}`
	for _, c := range []struct{ name, sent, want string }{ // want is empty for the sent messages
		{"one message", hello, ""},
		{"two messages of the user", hello + "," + hello, ""},
		{"a system prompt and a conversation", `{"role":"system","type":"message","content":[` +
			`{"type":"text","text":"be brief"},{"type":"text","text":"be kind"}]},` + hello +
			`,{"role":"assistant","type":"message","content":[{"type":"text","text":"hi"}]},` + hello, ""},
		{"tools", hello +
			`,{"role":"assistant","type":"plugin_call","content":[{"type":"data","data":{"call_id":"1"}}]}` +
			`,{"role":"assistant","type":"plugin_call","content":[{"type":"data","data":{"call_id":"2"}}]}` +
			`,{"role":"tool","type":"plugin_call_output","content":[{"type":"data","data":{"call_id":"1","output":"a"}}]}` +
			`,{"role":"tool","type":"plugin_call_output","content":[{"type":"data","data":{"call_id":"2","output":"b"}}]}`, ""},
		{"a system prompt alone",
			`{"role":"system","type":"message","content":[{"type":"refusal","refusal":"no"},{"type":"text","text":"a"}]}`, ""},
		{"a picture of a tool", `{"role":"tool","type":"mcp_call_output","content":[` +
			`{"type":"image","image_url":"https://x/a"},` +
			`{"type":"file","file_url":"https://x/b","filename":"b","file_id":"f"}]}`, ""},
		{"ids and metadata", `{"role":"user","type":"message","id":"m\"1","content":[{"type":"text","text":"a"},` +
			`{"type":"text","text":"b"}],"metadata":{"trace":"t9"}},` +
			`{"role":"user","type":"message","id":7,"content":[{"type":"text","text":"c"}],"metadata":[1]}`, ""},
		{"metadata alone",
			`{"role":"user","type":"message","content":[{"type":"text","text":"a"}],"metadata":{}}`, ""},
		{"an action", `{"role":"user","type":"a2ui_action","content":[{"type":"data","data":{"click":"b"}}]}`, ""},
		{"an answer without its question",
			`{"role":"user","type":"mcp_approval_response","content":[{"type":"data","data":{"approve":true}}]}`, ""},
		{"roles that are not said", `{"content":[{"text":"a"}]},{"type":"reasoning","content":[{"text":"b"}]},` +
			`{"type":"function_call_output","content":[{"type":"data","data":{"call_id":"1"}}]}`,
			`{"role":"user","type":"message","content":[{"type":"text","text":"a"}]},` +
				`{"role":"assistant","type":"reasoning","content":[{"type":"text","text":"b"}]},` +
				`{"role":"tool","type":"function_call_output","content":[{"type":"data","data":{"call_id":"1"}}]}`},
		{"messages that say nothing", `{"role":"system"},` + hello + `,{"role":"assistant","content":[]}`, hello},
		{"contents that are texts", `{"role":"system","content":"a"},{"role":"user","content":"b"}`,
			`{"role":"system","type":"message","content":[{"type":"text","text":"a"}]},` +
				`{"role":"user","type":"message","content":[{"type":"text","text":"b"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.sent
			}
			check(t, `{"input":[`+c.sent+`]}`, c.want)
		})
	}
	check(t, `{"input":"hello"}`, hello)
}

// check compares the messages that an agent gets for a request.
func check(t *testing.T, body, want string) {
	t.Helper()
	call, err := decode(body)
	if err != nil {
		t.Fatal(err)
	}
	got := Client(Options{}).AppendTurn(nil, &agent.Turn{Message: call.Message}, true)
	if d := cmp.Diff("["+want+"]", gjson.GetBytes(got, "input").Raw); d != "" {
		t.Errorf("the agent gets other messages (-sent +got):\n%s", d)
	}
}

// TestMarks: a plain message gets no marks, and a Leader may write the marks itself. The metadata of items without a
// meaning for the Agent API become metadata of their message.
func TestMarks(t *testing.T) {
	call, err := decode(`{"input":[{"role":"user","type":"message","content":[{"text":"a"},{"text":"b"}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]task.DataItem{task.Text("a"), task.Text("b")}, call.Message.DataItems); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	item := func(text, metadata string) task.DataItem {
		return task.DataItem{Kind: task.TextItem, Text: text, Metadata: []byte(metadata)}
	}
	for _, c := range []struct {
		name  string
		items []task.DataItem
		want  string
	}{
		{"a role", []task.DataItem{item("a", `{"agentapi":{"role":"system"}}`), task.Text("b")},
			`{"role":"system","type":"message","content":[{"type":"text","text":"a"}]},` +
				`{"role":"user","type":"message","content":[{"type":"text","text":"b"}]}`},
		{"no role", []task.DataItem{item("a", `{"agentapi":{"role":"root"}}`)},
			`{"role":"user","type":"message","content":[{"type":"text","text":"a"}]}`},
		{"other metadata", []task.DataItem{task.Text("a"), item("b", "{\"k\":\n1,\"agentapi\":{\"type\":\"refusal\"}}")},
			`{"role":"user","type":"message","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"}],` +
				`"metadata":{"dataItems":{"1":{"k":1}}}}`},
		{"other metadata beside those of the message", []task.DataItem{
			item("a", `{"k":1,"agentapi":{"metadata":{"m":1}}}`)},
			`{"role":"user","type":"message","content":[{"type":"text","text":"a"}],` +
				`"metadata":{"m":1,"dataItems":{"0":{"k":1}}}}`},
		{"other metadata beside a message that has none", []task.DataItem{
			item("a", `{"k":1,"agentapi":{"metadata":{ }}}`)},
			`{"role":"user","type":"message","content":[{"type":"text","text":"a"}],` +
				`"metadata":{"dataItems":{"0":{"k":1}}}}`},
		{"marks that are none", []task.DataItem{item("a", `{"agentapi":5}`)},
			`{"role":"user","type":"message","content":[{"type":"text","text":"a"}],` +
				`"metadata":{"dataItems":{"0":{"agentapi":5}}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Client(Options{}).AppendTurn(nil, &agent.Turn{Message: task.Message{DataItems: c.items}}, true)
			if d := cmp.Diff("["+c.want+"]", gjson.GetBytes(got, "input").Raw); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestAnswersAsMessages: a caller answering an agent by messages of the Agent API has named their questions in them.
func TestAnswersAsMessages(t *testing.T) {
	const request = `{"role":"assistant","type":"mcp_approval_request","content":[{"type":"data","data":{"id":"a"}}]}`
	const sent = request + `,{"role":"user","type":"mcp_approval_response","id":"r","content":[` +
		`{"type":"data","data":{"approval_request_id":"a","approve":true,"id":"x"}}]}`
	call, err := decode(`{"input":[` + sent + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	asked := []task.DataItem{{Kind: task.DataKind, Data: []byte(`{"id":"a"}`), Metadata: typed(typeApprovalRequest)}}
	got := Client(Options{}).AppendTurn(nil,
		&agent.Turn{Message: call.Message, From: task.AwaitingInput, Asked: asked}, true)
	if d := cmp.Diff("["+sent+"]", gjson.GetBytes(got, "input").Raw); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
