// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

func TestClientEvent(t *testing.T) {
	event := func(s string) string {
		return `{"jsonrpc":"2.0","id":"1","result":{"eventSeq":7,"eventData":` + s + `}}`
	}
	for name, tt := range map[string]struct {
		event, data string
		want        agent.Report
		kind        task.Kind // Internal if there is no error
	}{
		"nothing":      {"", "", agent.Report{}, task.Internal},
		"ping":         {"ping", "2025-09-01 12:00:00", agent.Report{}, task.Internal},
		"garbage":      {"", "2025-09-01 12:00:00", agent.Report{}, task.InvalidAgentResponse},
		"message name": {"message", "ping", agent.Report{}, task.InvalidAgentResponse},
		"named error": {"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Stream events expired"}}`,
			agent.Report{}, task.TaskNotFound},
		"no data": {"", `{"jsonrpc":"2.0","id":"1","result":{"eventSeq":7}}`, agent.Report{},
			task.InvalidAgentResponse},
		"later version": {"", event(`{"type":"product-removed","taskId":"t"}`), agent.Report{}, task.Internal},
		"chunk": {"",
			event(`{"type":"product-chunk","product":{"id":"p","dataItems":[{"type":"text","text":"a"}]},"append":true,` +
				`"lastChunk":null}`),
			agent.Report{Chunks: []task.Chunk{{ // the product does not exist, so this begins it
				Product: task.Product{ID: "p", DataItems: []task.DataItem{task.Text("a")}}}}}, task.Internal},
		"chunk, message": {"",
			event(`{"type":"product-chunk","id":"m","dataItems":[],"senderRole":"partner","product":{"id":"p"},` +
				`"lastChunk":true}`),
			agent.Report{Chunks: []task.Chunk{{Product: task.Product{ID: "p"}, Last: true}}}, task.Internal},
		"chunk, no product": {"", event(`{"type":"product-chunk","product":[]}`), agent.Report{}, task.InvalidAgentResponse},
		"append text": {"", event(`{"type":"product-chunk","product":{"id":"p"},"append":"true"}`), agent.Report{},
			task.InvalidAgentResponse},
		"lastChunk number": {"", event(`{"type":"product-chunk","product":{"id":"p"},"lastChunk":1}`), agent.Report{},
			task.InvalidAgentResponse},
		"status": {"",
			event(`{"type":"task-status-update","id":"m","dataItems":[{"type":"text","text":"no"}],` +
				`"status":{"state":"awaiting-input","dataItems":[{"type":"text","text":"a"}]}}`),
			agent.Report{State: task.AwaitingInput, NativeState: "awaiting-input", Verbatim: true,
				Items: []task.DataItem{task.Text("a")}}, task.Internal},
		"wrong state": {"", event(`{"type":"status-update","status":{"state":"done"}}`), agent.Report{},
			task.InvalidAgentResponse},
		"message": {"", event(`{"type":"message","id":"m","dataItems":[{"type":"text","text":"a"}]}`),
			agent.Report{State: task.Working, NativeState: "message", Items: []task.DataItem{task.Text("a")}}, task.Internal},
		"empty message": {"", event(`{"type":"message","id":"m","dataItems":[]}`), agent.Report{}, task.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			for version, s := range sides() {
				got, err := s.client.NewStream(nil).Event(tt.event, []byte(tt.data))
				if (err != nil) != (tt.kind != task.Internal) || err != nil && task.KindOf(err) != tt.kind {
					t.Errorf("%s: got %v, want %v", version, err, tt.kind)
				}
				if d := cmp.Diff(tt.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(agent.Report{}, "Revision",
					"RevisionDated")); d != "" {
					t.Errorf("%s:\n%s", version, d)
				}
			}
		})
	}
}

func FuzzClientEvent(f *testing.F) {
	var events []json.RawMessage
	if err := json.Unmarshal(vector(f, "13-stream-start.events.json"), &events); err != nil {
		f.Fatal(err)
	}
	for _, ev := range events {
		f.Add("", []byte(ev))
	}
	f.Add("ping", []byte("x"))
	f.Add("message",
		[]byte(`{"result":{"eventSeq":1,"eventData":{"type":"message","dataItems":[{"type":"text","text":"a"}]}}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		rep, err := Client("gateway").NewStream(nil).Event(name, data)
		plausible(t, rep, err)
	})
}

func FuzzClientText(f *testing.F) { translatetest.FuzzTexts(f, Client("gateway"), Server()) }
