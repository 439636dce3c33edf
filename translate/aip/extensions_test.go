// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

func holds(t *testing.T, out gjson.Result, want map[string]string) {
	t.Helper()
	for path, json := range want {
		if got := out.Get(path).Raw; got != json {
			t.Errorf("%s is %q, want %q, in\n%s", path, got, json, out.Raw)
		}
	}
	if strings.Contains(out.Raw, `"no"`) {
		t.Errorf("something is written in the place of something else:\n%s", out.Raw)
	}
}

// TestExtensionsOfCommands: a Leader's extensions reach a Partner of any version, in the Leader's place for them.
func TestExtensionsOfCommands(t *testing.T) {
	const members = `"id":"m","command":"start","senderId":"l","taskId":"t1","x":{"y":` + "\n" +
		`[1.0]},"null":null,"sender_id":"no",` +
		`"metadata":{"a2a":{"message":{"extensions":["e"]}}},"dataItems":[{"type":"text","text":"hi","ix":1,"TEXT":"no",` +
		`"metadata":{"im":1}},{"type":"data","data":{},"ix":2}]}}}`
	for from, body := range map[string]string{
		"v1": `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"type":"message",` + members,
		"v2": `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"command":{"type":"task-command",` + members,
	} {
		call, err := decodeBy(t, sides()[from].server, []byte(body))
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		for to, s := range sides() {
			for _, stream := range []bool{false, true} {
				out := translatetest.Strict(t, s.client.AppendTurn(nil, &agent.Turn{Ref: agent.Ref{Task: "T", Session: "S"},
					Message: call.Message}, stream))
				at := "message."
				if to == "v2" && !stream {
					at = "command."
				}
				holds(t, out, map[string]string{
					at + "x": `{"y":[1.0]}`, at + "null": "", at + "metadata": `{"a2a":{"message":{"extensions":["e"]}}}`,
					at + "dataItems.0.ix": "1", at + "dataItems.0.metadata": `{"im":1}`, at + "dataItems.1.ix": "2", at +
						"dataItems.1.metadata": "",
				})
			}
		}
	}
}

// TestExtensionsOfTasks: a Partner's extensions reach a Leader of any version, in the Partner's place for them.
func TestExtensionsOfTasks(t *testing.T) {
	const state = `"status":{"state":"working","stateChangedAt":"2025-09-01T12:00:00+08:00","sx":1,"STATE":"no",` +
		`"dataItems":[{"type":"text","text":"w","ix":1}]}`
	result := func(json string) []byte { return []byte(`{"jsonrpc":"2.0","id":1,"result":` + json + `}`) }
	for from, texts := range map[string][3]string{
		"v1": {
			`{"type":"task","id":"T","sessionId":"S",` + state +
				`,"products":[{"id":"p","px":1,"dataItems":[{"type":"text","text":"x","ix":1}],"metadata":{"a2a":{"z":1}}}],` +
				`"tx":{"y":null},"products_":"no"}`,
			`{"eventSeq":1,"eventData":{"type":"status-update","taskId":"T","sessionId":"S",` + state + `,"ex":1}}`,
			`{"eventSeq":2,"eventData":{"type":"product-chunk","taskId":"T","sessionId":"S","product":{"id":"p","px":1,` +
				`"dataItems":[]},"append":true,"lastChunk":false,"ex":1,"metadata":{"a2a":{"z":1}}}}`,
		},
		"v2": {
			`{"type":"task-result","id":"r","sentAt":"2025-09-01T12:00:00+08:00","senderRole":"partner","senderId":"P",` +
				`"taskId":"T","sessionId":"S",` + state +
				`,"products":[{"id":"p","px":1,"dataItems":[{"type":"text","text":"x","ix":1}],"metadata":{"a2a":{"z":1}}}],` +
				`"tx":{"y":null},"products_":"no"}`,
			`{"eventSeq":1,"eventData":{"type":"task-status-update","id":"r","taskId":"T","sessionId":"S",` + state +
				`,"ex":1}}`,
			`{"eventSeq":2,"eventData":{"type":"product-chunk","id":"r","taskId":"T","sessionId":"S","product":{"id":"p",` +
				`"px":1,"dataItems":[]},"append":true,"lastChunk":false,"ex":1,"metadata":{"a2a":{"z":1}}}}`,
		},
	} {
		client := sides()[from].client
		rep, err := client.Reply(result(texts[0]), nil)
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		events := client.NewStream(nil)
		news, err := events.Event("", result(texts[1]))
		if err != nil {
			t.Fatal(err)
		}
		piece, err := events.Event("", result(texts[2]))
		if err != nil {
			t.Fatal(err)
		}
		now := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: rep.State, DataItems: rep.Items,
			Extensions: rep.Extensions}, Extensions: rep.TaskExtensions, Products: rep.Products}
		status := task.Event{Seq: 1, Status: &task.Status{State: news.State, DataItems: news.Items,
			Extensions: news.Extensions, TaskExtensions: news.TaskExtensions}}
		chunk := task.Event{Seq: 2, Chunk: &piece.Chunks[0]}
		for to, s := range sides() {
			t.Run(from+" to "+to, func(t *testing.T) {
				whole := map[string]string{
					"status.sx": "1", "status.dataItems.0.ix": "1", "products.0.px": "1", "products.0.dataItems.0.ix": "1",
					"tx":                  `{"y":null}`,
					"products.0.metadata": `{"a2a":{"z":1}}`, "metadata": "",
				}
				holds(t, translatetest.Strict(t, s.server.AppendTask(nil, jsonrpc.ID("1"), new(translate.Call), &now)), whole)
				holds(t, gjson.ParseBytes(s.server.AppendNotification(nil, &now)), whole)
				encoder := s.server.NewStream(jsonrpc.ID("1"), new(translate.Call), &now)
				holds(t, translatetest.Strict(t, encoder.Event(nil, &status).Data).Get("eventData"),
					map[string]string{"status.sx": "1", "ex": "1", "status.dataItems.0.ix": "1", "status.taskMetadata": ""})
				holds(t, translatetest.Strict(t, encoder.Event(nil, &chunk).Data).Get("eventData"),
					map[string]string{"product.px": "1", "ex": "1", "metadata": `{"a2a":{"z":1}}`})
				recorder, ok := encoder.(translate.RecordEncoder)
				if !ok {
					return
				}
				for _, ev := range []task.Event{{Seq: 3, Task: &now}, status, chunk} {
					want, got := string(encoder.Event(nil, &ev).Data), string(recorder.Record(nil, ev.Seq,
						task.AppendEvent(nil, &ev)).Data)
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("(-decoded +direct):\n%s", d)
					}
				}
			})
		}
	}
}

// TestExtensionsOfOthers: another family's extensions are metadata in everything sent.
func TestExtensionsOfOthers(t *testing.T) {
	extra := json.RawMessage(`{"a2a":{"message":{"extensions":["e"]}}}`)
	state := task.Task{ID: "t", SessionID: "s", Extensions: extra, Status: task.Status{State: task.Working,
		Extensions: extra, TaskExtensions: extra}, Products: []task.Product{{ID: "p", Extensions: extra}}}
	for version, s := range sides() {
		out := translatetest.Strict(t, s.client.AppendTurn(nil, &agent.Turn{Ref: agent.Ref{Task: "t"},
			Message: task.Message{Extensions: extra}}, true))
		holds(t, out, map[string]string{"message.metadata": string(extra)})
		out = translatetest.Strict(t, s.server.AppendTask(nil, jsonrpc.ID("1"), new(translate.Call), &state))
		holds(t, out, map[string]string{"metadata": string(extra), "status.metadata": string(extra),
			"products.0.metadata": string(extra)})
		ev := task.Event{Seq: 1, Status: &state.Status}
		encoder := s.server.NewStream(jsonrpc.ID("1"), new(translate.Call), &state)
		sent := encoder.Event(nil, &ev).Data
		holds(t, translatetest.Strict(t, sent).Get("eventData"), map[string]string{"metadata": string(extra),
			"status.metadata": string(extra)})
		if recorder, ok := encoder.(translate.RecordEncoder); ok {
			if d := cmp.Diff(string(sent), string(recorder.Record(nil, 1, task.AppendEvent(nil, &ev)).Data)); d != "" {
				t.Errorf("%s (-decoded +direct):\n%s", version, d)
			}
		}
	}
}

// TestForm: AIP's extensions keep their place, and never take the place of something else.
func TestForm(t *testing.T) {
	extra := json.RawMessage(`{"aip":{"x":1,"id":"no","state":2},"a2a":{"y":2}}`)
	s := task.Status{State: task.Working, DataItems: []task.DataItem{{Kind: task.TextItem, Text: "t",
		Metadata: json.RawMessage(`{"aip":{"text":"no","z":3}}`)}},
		Extensions: extra, TaskExtensions: extra}
	want := `{"state":"working","stateChangedAt":"0001-01-01T00:00:00Z","dataItems":[{"type":"text","text":"t","z":3}],` +
		`"x":1,"id":"no","metadata":{"a2a":{"y":2}}}`
	if d := cmp.Diff(want, string(form.AppendStatus(nil, &s))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(`,"x":1,"state":2,"metadata":{"a2a":{"y":2}}`, string(appendExtensions(nil, s.TaskExtensions,
		task.EventObject))); d != "" {
		t.Error(d)
	}
	p := task.Product{ID: "p", Extensions: extra}
	if d := cmp.Diff(`{"id":"p","dataItems":[],"x":1,"state":2,"metadata":{"a2a":{"y":2}}}`,
		string(form.AppendProduct(nil, &p))); d != "" {
		t.Error(d)
	}
}
