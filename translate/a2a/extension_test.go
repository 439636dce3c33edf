// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// extraVersions say the same in every version of A2A, with members without a field in the canon.
var extraVersions = []struct {
	name                            string
	server                          translate.Server
	client                          translate.Client
	request, reply, status, product string
	task, update, piece             string // paths of the task in a result, and of the contents in events
	modes                           string // their path in the params
}{
	{
		"0.1", a2a.LegacyServer(true), a2a.Legacy(),
		`{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t1","acceptedOutputModes":["text"],` +
			`"message":{"role":"user",` +
			`"parts":[{"type":"text","text":"hi","px":1,"metadata":{"pm":1}}],"metadata":{"mm":1},"extensions":["e"],` +
			`"referenceTaskIds":["r"],` +
			`"mx":{"a":` + "\n" +
			`[1.0]},"mnull":null,"Parts":"no"},"metadata":{"pp":1},"qx":1,"tenant":"no","Session_ID":"no"}}`,
		`{"id":"T","status":{"state":"input-required","message":{"role":"agent","parts":[{"type":"text","text":"q"}],` +
			`"metadata":{"mm":1},"extensions":["e"],"mx":1,"taskId":"no"},"sx":2,"STATE":"no"},` +
			`"artifacts":[{"index":0,"parts":[{"type":"text","text":"x","px":1}],"metadata":{"am":1},"extensions":["ae"],` +
			`"ax":1,"artifact_id":"no"}],"metadata":{"tm":1,"aipState":"no"},"tx":{"b":null},"kind":"task"}`,
		`{"id":"T","status":{"state":"working","message":{"role":"agent","parts":[{"type":"text","text":"w"}],"mx":1}},` +
			`"final":false,"metadata":{"em":1},"ex":1}`,
		`{"id":"T","artifact":{"index":0,"parts":[{"type":"text","text":"x"}],"ax":1},"metadata":{"em":1},"ex":1}`,
		"", "", "", "acceptedOutputModes",
	},
	{
		"0.3", a2a.V03Server(true), a2a.V03(),
		`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m1",` +
			`"role":"user",` +
			`"parts":[{"kind":"text","text":"hi","px":1,"metadata":{"pm":1}}],"metadata":{"mm":1},"extensions":["e"],` +
			`"referenceTaskIds":["r"],` +
			`"mx":{"a":` + "\n" +
			`[1.0]},"mnull":null,"message_id":"no"},"configuration":{"acceptedOutputModes":["text"],"cx":1,` +
			`"return_immediately":true},"metadata":{"pp":1},"qx":1,"tenant":"no"}}`,
		`{"kind":"task","id":"T","contextId":"c","status":{"state":"input-required","message":{"kind":"message",` +
			`"messageId":"m","role":"agent","parts":[{"kind":"text","text":"q"}],"metadata":{"mm":1},"extensions":["e"],` +
			`"mx":1,"task_id":"no"},"sx":2},` +
			`"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"x","px":1}],"metadata":{"am":1},` +
			`"extensions":["ae"],"ax":1}],"metadata":{"tm":1,"aipState":"no"},"tx":{"b":null}}`,
		`{"kind":"status-update","taskId":"T","contextId":"c","status":{"state":"working","message":{"kind":"message",` +
			`"messageId":"m","role":"agent","parts":[{"kind":"text","text":"w"}],"mx":1}},"final":false,"metadata":{"em":1},` +
			`"ex":1}`,
		`{"kind":"artifact-update","taskId":"T","contextId":"c","artifact":{"artifactId":"a","parts":[{"kind":"text",` +
			`"text":"x"}],"ax":1},"metadata":{"em":1},"ex":1}`,
		"", "", "", "configuration.acceptedOutputModes",
	},
	{
		"1.0", a2a.V1Server(true), a2a.V1(),
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER",` +
			`"parts":[{"text":"hi","px":1,"metadata":{"pm":1}}],"metadata":{"mm":1},"extensions":["e"],` +
			`"referenceTaskIds":["r"],` +
			`"mx":{"a":` + "\n" +
			`[1.0]},"mnull":null,"task_id":"no"},"configuration":{"acceptedOutputModes":["text"],"cx":1,"blocking":true},` +
			`"metadata":{"pp":1},"qx":1,"tenant":"no"}}`,
		`{"task":{"id":"T","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m",` +
			`"role":"ROLE_AGENT","parts":[{"text":"q"}],"metadata":{"mm":1},"extensions":["e"],"mx":1,"context_id":"no"},` +
			`"sx":2},` +
			`"artifacts":[{"artifactId":"a","parts":[{"text":"x","px":1}],"metadata":{"am":1},"extensions":["ae"],"ax":1}],` +
			`"metadata":{"tm":1,"aipState":"no"},"tx":{"b":null}}}`,
		`{"statusUpdate":{"taskId":"T","contextId":"c","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"m",` +
			`"role":"ROLE_AGENT","parts":[{"text":"w"}],"mx":1}},"metadata":{"em":1},"ex":1}}`,
		`{"artifactUpdate":{"taskId":"T","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}],"ax":1},` +
			`"metadata":{"em":1},"ex":1}}`,
		"task.", "statusUpdate.", "artifactUpdate.", "configuration.acceptedOutputModes",
	},
}

// holds compares members of an outgoing body, by their paths, with their JSON.
func holds(t *testing.T, out gjson.Result, prefix string, want map[string]string) {
	t.Helper()
	for path, json := range want {
		if got := out.Get(prefix + path).Raw; got != json {
			t.Errorf("%s%s is %q, want %q, in\n%s", prefix, path, got, json, out.Raw)
		}
	}
	if strings.Contains(out.Raw, `"no"`) {
		t.Errorf("a member is shown in the place of another one:\n%s", out.Raw)
	}
}

// TestExtensionsOfRequests: a caller's members beyond the canon come to an agent of any version.
func TestExtensionsOfRequests(t *testing.T) {
	for _, from := range extraVersions {
		req, bad := jsonrpc.Parse([]byte(from.request), jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		call, err := from.server.Decode(&translate.Request{Request: req, HTTP: "POST"})
		if err != nil {
			t.Fatalf("%s: %v", from.name, err)
		}
		ev := task.Event{Status: new(task.Status), Cause: &call.Message}
		stored, err := task.DecodeEvent(task.AppendEvent(nil, &ev))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(call.Message, *stored.Cause, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("the log changes it (-said +stored):\n%s", d)
		}
		for _, to := range extraVersions {
			t.Run(from.name+" to "+to.name, func(t *testing.T) {
				turn := &agent.Turn{Ref: agent.Ref{Task: "T", Session: "S"}, Message: call.Message,
					References: []string{"R", "T"}}
				for _, stream := range []bool{false, true} {
					want := map[string]string{
						"message.metadata": `{"mm":1}`, "message.extensions": `["e"]`,
						"message.referenceTaskIds": `["R","T"]`, "message.mx": `{"a":[1.0]}`,
						"message.mnull": "", "message.parts.0.px": "1", "message.parts.0.metadata": `{"pm":1}`,
						"metadata": `{"pp":1}`, "qx": "1",
						to.modes: `["text"]`, "tenant": "",
					}
					if from.name != "0.1" && to.name != "0.1" {
						want["configuration.cx"] = "1"
					}
					if to.name == "0.1" {
						want["message.referenceTaskIds"] = ""
					}
					holds(t, translatetest.Strict(t, to.client.AppendTurn(nil, turn, stream)), "", want)
				}
				turn.From = task.AwaitingCompletion
				if to.name != "0.1" {
					holds(t, translatetest.Strict(t, to.client.AppendTurn(nil, turn, false)), "",
						map[string]string{"message.referenceTaskIds": `["T","R"]`})
				}
			})
		}
	}
}

// TestExtensionsOfHistories: a caller's members beyond the protocol are for the agent, and no history shows them.
func TestExtensionsOfHistories(t *testing.T) {
	for _, from := range extraVersions {
		req, bad := jsonrpc.Parse([]byte(from.request), jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		call, err := from.server.Decode(&translate.Request{Request: req, HTTP: "POST"})
		if err != nil {
			t.Fatalf("%s: %v", from.name, err)
		}
		before := string(task.AppendMessage(nil, &call.Message))
		get := &translate.Call{History: -1}
		get.Message.Command = task.Get
		for _, to := range extraVersions {
			t.Run(from.name+" to "+to.name, func(t *testing.T) {
				said := call.Message
				said.Extensions = append([]byte(`{"aip":{"y":1},`), said.Extensions[1:]...)
				tk := &task.Task{ID: "T", Status: task.Status{State: task.Working},
					MessageHistory: []task.Message{said}}
				holds(t, translatetest.Strict(t, to.server.AppendTask(nil, jsonrpc.ID("1"), get, tk)), "history.0.",
					map[string]string{
						"metadata": `{"mm":1,"aip":{"y":1}}`, "extensions": `["e"]`, "referenceTaskIds": `["r"]`,
						"mx":         "",
						"parts.0.px": "", "parts.0.metadata": `{"pm":1}`,
					})
			})
		}
		if after := string(task.AppendMessage(nil, &call.Message)); after != before {
			t.Errorf("%s: showing it has changed it: %s", from.name, after)
		}
	}
}

// TestExtensionsOfReplies: an agent's members beyond the canon come to a caller of any version, in answers, in events,
// and by way of the log.
func TestExtensionsOfReplies(t *testing.T) {
	result := func(json string) []byte { return []byte(`{"jsonrpc":"2.0","id":1,"result":` + json + `}`) }
	for _, from := range extraVersions {
		rep, err := from.client.Reply(result(from.reply), nil)
		if err != nil {
			t.Fatalf("%s: %v", from.name, err)
		}
		var fold task.Fold
		apply := func(ev task.Event) {
			ev, err := task.DecodeEvent(task.AppendEvent(nil, &ev))
			if err != nil {
				t.Fatal(err)
			}
			fold.Apply(ev)
		}
		apply(task.Event{Task: &task.Task{ID: "t1", SessionID: "s1", Status: task.Status{State: task.Accepted}}})
		for _, c := range task.Diff(nil, rep.Products) {
			apply(task.Event{Chunk: &c})
		}
		apply(task.Event{Status: &task.Status{State: rep.State, DataItems: rep.Items, Extensions: rep.Extensions,
			TaskExtensions: rep.TaskExtensions}})
		if d := cmp.Diff(0, len(task.Diff(fold.Task().Products, rep.Products))); d != "" {
			t.Errorf("%s: what is known is sent again", from.name)
		}
		events := from.client.NewStream(nil)
		status, err := events.Event("", result(from.status))
		if err != nil {
			t.Fatal(err)
		}
		piece, err := events.Event("", result(from.product))
		if err != nil || len(piece.Chunks) != 1 {
			t.Fatalf("%s: %+v, %v", from.name, piece, err)
		}
		for _, to := range extraVersions {
			t.Run(from.name+" to "+to.name, func(t *testing.T) {
				c := &translate.Call{History: -1}
				c.Message.Command = task.Start
				out := translatetest.Strict(t, to.server.AppendTask(nil, jsonrpc.ID("1"), c, fold.Task()))
				holds(t, out, to.task, map[string]string{
					"status.message.metadata": `{"mm":1}`, "status.message.extensions": `["e"]`,
					"status.message.mx": "1", "status.sx": "2",
					"artifacts.0.metadata.am": "1", "artifacts.0.extensions": `["ae"]`, "artifacts.0.ax": "1",
					"artifacts.0.parts.0.px": "1",
					"metadata":               `{"tm":1}`, "tx": `{"b":null}`,
				})
				s := to.server.NewStream(jsonrpc.ID("1"), c, fold.Task())
				frame := s.Event(nil,
					&task.Event{Status: &task.Status{State: status.State, DataItems: status.Items,
						Extensions: status.Extensions, TaskExtensions: status.TaskExtensions}})
				holds(t, translatetest.Strict(t, frame.Data), to.update,
					map[string]string{"status.message.mx": "1", "metadata": `{"em":1}`, "ex": "1"})
				frame = s.Event(nil, &task.Event{Chunk: &piece.Chunks[0]})
				holds(t, translatetest.Strict(t, frame.Data), to.piece,
					map[string]string{"artifact.ax": "1", "metadata": `{"em":1}`, "ex": "1"})
			})
		}
	}
}

// TestExtensionsOfOtherFamilies: another family's members are metadata, and nothing else.
func TestExtensionsOfOtherFamilies(t *testing.T) {
	extra := json.RawMessage(`{"aip":{"x":1,"extensions":"no"}}`)
	items := []task.DataItem{{Kind: task.TextItem, Text: "hi", Metadata: json.RawMessage(`{"m":1,"aip":{"x":1}}`)}}
	state := &task.Task{
		ID: "t1", SessionID: "s1", Extensions: extra,
		Status:   task.Status{State: task.AwaitingInput, DataItems: items, Extensions: extra},
		Products: []task.Product{{ID: "p", DataItems: items, Extensions: extra}},
	}
	for _, v := range extraVersions {
		turn := &agent.Turn{Message: task.Message{DataItems: items, Extensions: extra}}
		out := translatetest.Strict(t, v.client.AppendTurn(nil, turn, true))
		for path, want := range map[string]string{"message.metadata": string(extra), "message.x": "", "metadata": "",
			"message.parts.0.metadata": string(items[0].Metadata)} {
			if got := out.Get(path).Raw; got != want {
				t.Errorf("%s: %s is %q, want %q", v.name, path, got, want)
			}
		}
		out = translatetest.Strict(t,
			v.server.AppendTask(nil, jsonrpc.ID("1"),
				&translate.Call{Call: task.Call{Message: task.Message{Command: task.Start}}}, state))
		for path, want := range map[string]string{"metadata.aip.x": "1", "x": "", "status.message.metadata.aip.x": "1",
			"artifacts.0.metadata.aip.x": "1", "status.message.extensions": ""} {
			if got := out.Get(v.task + path).Raw; got != want {
				t.Errorf("%s: %s is %q, want %q", v.name, path, got, want)
			}
		}
	}
}

// TestCommandParams: parameters of a command not used by the gateway are metadata of the message, in AIP's part of it.
// So they set nothing of the agent's own protocol. A message without content gets an empty text.
func TestCommandParams(t *testing.T) {
	for _, v := range extraVersions {
		for _, from := range []task.State{task.None, task.AwaitingInput, task.AwaitingCompletion} {
			turn := &agent.Turn{From: from, Message: task.Message{
				Params:     json.RawMessage(`{"responseTimeout":1,"payload":{"a":1},"skillId":"s","metadata":{"b":1}}`),
				Extensions: json.RawMessage(`{"a2a":{"message":{"metadata":{"mm":1}}},"aip":{"y":2}}`),
			}}
			out := translatetest.Strict(t, v.client.AppendTurn(nil, turn, true))
			for path, want := range map[string]string{
				"message.metadata": `{"mm":1,"aip":{"commandParams":{"payload":{"a":1},"skillId":"s",` +
					`"metadata":{"b":1}},"y":2}}`,
				"metadata": "", "message.parts.#": "1", "message.parts.0.text": `""`,
			} {
				if got := out.Get(path).Raw; got != want {
					t.Errorf("%s, from %q: %s is %s, want %s", v.name, from, path, got, want)
				}
			}
		}
	}
}

// TestExtensionsOfProducts: v0.1 has a product's id in the metadata, but the agent's own comes first.
func TestExtensionsOfProducts(t *testing.T) {
	for extra, want := range map[string]string{
		``: `{"productId":"p"}`,
		`{"a2a":{"metadata":{"productId":"theirs","a":1}}}`: `{"productId":"theirs","a":1}`,
		`{"a2a":{"metadata":{"a":1}},"aip":{}}`:             `{"a":1,"aip":{},"productId":"p"}`,
	} {
		state := &task.Task{ID: "t", Products: []task.Product{{ID: "p", Extensions: json.RawMessage(extra)}}}
		out := translatetest.Strict(t,
			a2a.LegacyServer(true).AppendTask(nil, jsonrpc.ID("1"), new(translate.Call), state))
		if got := out.Get("artifacts.0.metadata").Raw; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestExtensionsOfAnswers: a message in place of a task is a product, and its members beyond the canon are the
// product's.
func TestExtensionsOfAnswers(t *testing.T) {
	for _, c := range []struct {
		client translate.Client
		result string
	}{
		{a2a.V03(),
			`{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"x"}],"metadata":{"a":1},` +
				`"extensions":["e"]}`},
		{a2a.V1(),
			`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}],"metadata":{"a":1},"extensions":["e"]}}`},
	} {
		rep, err := c.client.Reply([]byte(`{"jsonrpc":"2.0","id":1,"result":`+c.result+`}`), nil)
		want := []task.Product{{ID: "m", DataItems: []task.DataItem{task.Text("x")},
			Extensions: json.RawMessage(`{"a2a":{"metadata":{"a":1},"extensions":["e"]}}`)}}
		if d := cmp.Diff(want, rep.Products); d != "" || err != nil {
			t.Errorf("%v\n%s", err, d)
		}
	}
}

func FuzzExtraReply(f *testing.F) {
	for _, v := range extraVersions {
		for _, result := range []string{v.reply, v.status, v.product} {
			f.Add([]byte(result))
		}
	}
	f.Add([]byte(`{"id":"T","status":{"state":"working"},"artifacts":[{"artifactId":"a","parts":[{"text":"x",` +
		`"metadata":{"a2a":{"text":"y"}},"Text":1}],"metadata":{"a2a":{},"\u0061ip":1}}]}`))
	f.Fuzz(func(t *testing.T, result []byte) {
		for _, from := range extraVersions {
			rep, err := from.client.Push(result, nil)
			if err != nil {
				continue
			}
			now := task.Task{ID: "t", SessionID: "s", Extensions: rep.TaskExtensions, Products: rep.Products,
				Status: task.Status{State: task.Working, DataItems: rep.Items, Extensions: rep.Extensions,
					TaskExtensions: rep.TaskExtensions}}
			if out := task.AppendTask(nil, &now); !json.Valid(out) || bytes.ContainsAny(out, "\n\r") {
				t.Fatalf("%q", out)
			}
			for _, to := range extraVersions {
				translatetest.Strict(t, to.server.AppendTask(nil, jsonrpc.ID("1"), &translate.Call{History: -1}, &now))
				s := to.server.NewStream(jsonrpc.ID("1"), new(translate.Call), &now)
				translatetest.Strict(t, s.Event(nil, &task.Event{Status: &now.Status}).Data)
				for i := range rep.Chunks {
					translatetest.Strict(t, s.Event(nil, &task.Event{Chunk: &rep.Chunks[i]}).Data)
				}
			}
		}
	})
}

// TestExtensionsOfTheFinalText: the final text of an agent is shown with the state of its completed task.
func TestExtensionsOfTheFinalText(t *testing.T) {
	finished := &task.Status{State: task.AwaitingCompletion, DataItems: []task.DataItem{task.Text("bye")},
		Extensions:     json.RawMessage(`{"a2a":{"message":{"metadata":{"mm":1}}}}`),
		TaskExtensions: json.RawMessage(`{"a2a":{"ex":1}}`)}
	completed := &task.Status{State: task.Completed}
	now := &task.Task{ID: "t", SessionID: "s", Status: *completed, StatusHistory: []task.Status{*finished, *completed}}
	for _, v := range []struct {
		server       translate.Server
		task, update string
	}{{a2a.V03Server(false), "", ""}, {a2a.V1Server(false), "task.", "statusUpdate."}} {
		c := &translate.Call{Call: task.Call{Message: task.Message{Command: task.Start}}}
		want := map[string]string{"status.message.parts.0.text": `"bye"`, "status.message.metadata": `{"mm":1}`}
		holds(t, translatetest.Strict(t, v.server.AppendTask(nil, jsonrpc.ID("1"), c, now)), v.task, want)
		s := v.server.NewStream(jsonrpc.ID("1"), c, now)
		if f := s.Event(nil, &task.Event{Status: finished}); f.Data != nil {
			t.Errorf("%s shows a task that awaits completion: %s", v.server.Name(), f.Data)
		}
		want["ex"] = "1"
		holds(t, translatetest.Strict(t, s.Event(nil, &task.Event{Status: completed}).Data), v.update, want)
	}
}
