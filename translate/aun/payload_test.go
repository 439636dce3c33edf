// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
)

// A payload is read by its type.
//
// Lenient: a string for a payload, or a `text` without a type
func TestReadPayload(t *testing.T) {
	for in, want := range map[string]Payload{
		`{"type":"text","text":"Hello","thread_id":"t"}`: {Items: []task.DataItem{task.Text("Hello")}, Thread: "t"},
		`{"type":"json","task_id":"y","data":{"a":1,"task_id":"x"}}`: {Task: "y",
			Items: []task.DataItem{{Kind: task.DataKind, Data: json.RawMessage(`{"a":1,"task_id":"x"}`)}}},
		`{"type":"json","data":[1]}`: {Items: []task.DataItem{{Kind: task.DataKind, Data: json.RawMessage(`{"value":[1]}`),
			Metadata: json.RawMessage(`{"data_part_compat":true}`)}}},
		`{"type":"image","text":"See","attachments":[{"url":"https://x/y.png","filename":"y","content_type":"image/png"}]}`: {
			Items: []task.DataItem{task.Text("See"),
				{Kind: task.FileItem, Name: "y", MIMEType: "image/png", URI: "https://x/y.png"}}},
		`{"type":"file","attachments":[{"url":"data:text/plain;base64,QUJD"}]}`: {
			Items: []task.DataItem{{Kind: task.FileItem, MIMEType: "text/plain", Bytes: "QUJD"}}},
		`{"type":"voice","attachments":[{"object_key":"k"}]}`: {Items: []task.DataItem{
			{Kind: task.DataKind, Data: json.RawMessage(`{"type":"voice","attachments":[{"object_key":"k"}]}`)}}},
		`{"type":"event","event":"task.completed","data":{"task_id":"x"}}`: {
			State: task.AwaitingCompletion, Native: "task.completed", Task: "x"},
		`{"type":"event","event":"task.timeout","text":"Too slow"}`: {
			State: task.Failed, Native: "task.timeout", Items: []task.DataItem{task.Text("Too slow")}},
		`{"type":"event","event":"task.error","data":{"error_code":"agent_busy"}}`: {
			State: task.Failed, Native: "task.error", Items: []task.DataItem{task.Text("agent_busy")}},
		`{"type":"event","event":"task.error","text":"Too many","data":{"error_code":"agent_busy"}}`: {
			State: task.Failed, Native: "task.error", Items: []task.DataItem{task.Text("Too many")}},
		`{"type":"status","state":"input_required","text":"Which?","task_id":"x"}`: {
			State: task.AwaitingInput, Native: "input_required", Task: "x", Items: []task.DataItem{task.Text("Which?")}},
		`{"type":"status","state":"typing"}`: {Native: "typing"},
		`{"type":"status","state":"started","task_id":"x"}`: {
			State: task.Working, Native: "started", Task: "x", Starts: true},
		`{"type":"status","state":"processing","text":"I read"}`: {
			State: task.Working, Native: "processing", Items: []task.DataItem{task.Text("I read")}},
		`{"type":"status","state":"processing","event":"task.started","text":"I read"}`: {
			State: task.Working, Native: "task.started", Starts: true, Items: []task.DataItem{task.Text("I read")}},
		`{"type":"event","event":"build.done","text":"It is built"}`: {
			State: task.Working, Native: "build.done", Items: []task.DataItem{task.Text("It is built")}},
		`{"type":"status","state":"error"}`: {State: task.Failed, Native: "error"},
		`"Hello"`:                           {Items: []task.DataItem{task.Text("Hello")}},
		`{"text":"Hello","chat_id":"c"}`:    {Items: []task.DataItem{task.Text("Hello")}},
		`{"type":"thought","thread_id":"t","items":[{"kind":"tool_call","name":"Bash","text":"rm"},` +
			`{"kind":"text","text":"so"}],"text":"hm"}`: {State: task.Working, Thread: "t", Aside: true,
			Items: []task.DataItem{task.Thought("hm"), task.Thought("so")}},
		`{"type":"tool_call","text":"rm"}`:   {State: task.Working, Aside: true},
		`{"type":"menu.response","menu":[]}`: {State: task.Working, Aside: true},
		`{"type":"menus","text":"Soup"}`: {Items: []task.DataItem{
			{Kind: task.DataKind, Data: json.RawMessage(`{"type":"menus","text":"Soup"}`)}}},
		`{"type":"action_card","title":"Permission","text":"Run rm?",` +
			`"actions":[{"label":"allow","value":"1"},{"value":"no"}]}`: {
			State: task.AwaitingInput, Native: "action_card",
			Items: []task.DataItem{task.Text("Permission\nRun rm?\n[allow | no]")}},
		`{"type":"action_card","title":"Permission","description":"Run rm?"}`: {State: task.AwaitingInput,
			Native: "action_card", Items: []task.DataItem{task.Text("Permission\nRun rm?")}},
		`{"type":"file","attachments":[{"owner_aid":"bob.aid.pub","object_key":"shared/u 1/f.txt",` +
			`"content_type":"text/plain"}]}`: {Items: []task.DataItem{{Kind: task.FileItem, Name: "f.txt",
			MIMEType: "text/plain", URI: "https://bob.aid.pub/shared/u%201/f.txt"}}},
		`{"type":"file","attachments":[{"owner_aid":"bob.aid.pub","object_key":"f","bucket":"default",` +
			`"url":"aun://storage/default/f"}]}`: {Items: []task.DataItem{
			{Kind: task.FileItem, Name: "f", URI: "https://bob.aid.pub/f"}}},
		`{"type":"file","attachments":[{"owner_aid":"bob.aid.pub","object_key":"f","url":"https://x/f"}]}`: {
			Items: []task.DataItem{{Kind: task.FileItem, URI: "https://x/f"}}},
		`{"type":"file","attachments":[{"owner_aid":"u@h/x","object_key":"f"}]}`: {Items: []task.DataItem{{
			Kind: task.DataKind,
			Data: json.RawMessage(`{"type":"file","attachments":[{"owner_aid":"u@h/x","object_key":"f"}]}`)}}},
		`{"type":"file","attachments":[{"owner_aid":"b.c","object_key":"f","bucket":"b"}]}`: {Items: []task.DataItem{{
			Kind: task.DataKind,
			Data: json.RawMessage(`{"type":"file","attachments":[{"owner_aid":"b.c","object_key":"f","bucket":"b"}]}`)}}},
		`{"type":"image","alt":"a chart","data_base64":"QUJD","mime_type":"image/png"}`: {
			Items: []task.DataItem{{Kind: task.FileItem, Name: "a chart", MIMEType: "image/png", Bytes: "QUJD"}}},
		`{"type":"link","url":"https://x"}`: {Items: []task.DataItem{
			{Kind: task.DataKind, Data: json.RawMessage(`{"type":"link","url":"https://x"}`)}}},
	} {
		got, ok := ReadPayload(gjson.Parse(in))
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %v (-want +got):\n%s", in, ok, diff)
		}
	}
	for _, in := range []string{
		`""`, `7`, `{}`, `{"text":""}`, `{"type":"action_card"}`, `{"type":"text"}`,
		`{"type":"json"}`, `{"type":"text","text":1}`, `[]`,
	} {
		if p, ok := ReadPayload(gjson.Parse(in)); ok {
			t.Errorf("%s is read as %+v", in, p)
		}
	}
}

func TestAppendPayload(t *testing.T) {
	for want, it := range map[string]task.DataItem{
		`{"type":"text","text":"Hello","task_id":"x","thread_id":"t"}`: task.Text("Hello"),
		`{"type":"file","attachments":[{"url":"https://x","filename":"n","content_type":"a/b"}],` +
			`"task_id":"x","thread_id":"t"}`: {Kind: task.FileItem, URI: "https://x", Name: "n", MIMEType: "a/b"},
		`{"type":"file","attachments":[{"url":"data:a/b;base64,QUJD","content_type":"a/b"}],` +
			`"task_id":"x","thread_id":"t"}`: {Kind: task.FileItem, Bytes: "QUJD", MIMEType: "a/b"},
		`{"type":"json","data":{"a":1},"task_id":"x","thread_id":"t"}`: {
			Kind: task.DataKind, Data: json.RawMessage(`{"a":1}`)},
		`{"type":"json","data":{},"task_id":"x","thread_id":"t"}`: {Kind: task.DataKind},
	} {
		if diff := cmp.Diff(want, string(AppendPayload(nil, &it, "x", "t"))); diff != "" {
			t.Errorf("a payload (-want +got):\n%s", diff)
		}
	}
	about := `"data":{"task_id":"x"},"task_id":"x","thread_id":"t"}`
	for state, want := range map[task.State]string{
		task.Working:       `{"type":"event","event":"task.started",` + about,
		task.Completed:     `{"type":"event","event":"task.completed",` + about,
		task.Canceled:      `{"type":"event","event":"task.interrupted",` + about,
		task.AwaitingInput: `{"type":"status","state":"input_required",` + about,
		task.Rejected: `{"type":"event","event":"task.error","data":{"task_id":"x","error_code":"rejected"},` +
			`"task_id":"x","thread_id":"t"}`,
		task.Accepted: "",
	} {
		got, ok := AppendEvent(nil, state, "x", "t")
		if string(got) != want || ok != (want != "") {
			t.Errorf("%s: %s", state, got)
		}
		if p, ok := ReadPayload(gjson.ParseBytes(got)); ok && (p.Task != "x" || p.Thread != "t" || p.State == task.None) {
			t.Errorf("%s is read as %+v", got, p)
		}
	}
}

// TestAppendMenu: a payload asking for a menu is answered in a form for every generation of applications.
func TestAppendMenu(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"menu.query"}`: `{"type":"menu.response","items":[],"data":[]}`,
		`{"type":"menu.list","id":"q1","thread_id":"t"}`: `{"type":"menu.response","id":"q1","thread_id":"t",` +
			`"items":[],"data":[]}`,
		`{"type":"menu.query","id":7,"name":"chatmode","cmd":"/chatmode"}`: `{"type":"menu.response","id":7,` +
			`"name":"chatmode","cmd":"/chatmode","items":[],"data":[]}`,
		`{"type":"menu.update","id":"u","name":{}}`: `{"type":"menu.response","id":"u",` +
			`"error":{"code":"NOT_FOUND","message":"the agent has no menu"}}`,
		`{"type":"menu.response","id":"q1"}`: "", `{"type":"thought"}`: "", `"menu.query"`: "", `7`: "",
	} {
		got, ok := AppendMenu(nil, gjson.Parse(in))
		if string(got) != want || ok != (want != "") {
			t.Errorf("%s is answered %s, %v", in, got, ok)
		}
	}
}

// FuzzAssignee: any call of an assignee is read or refused, and a written payload is read as the same.
func FuzzAssignee(f *testing.F) {
	f.Add(Complete, `{"artifacts":[{"id":"a","type":"text","content":"x"}]}`)
	f.Add(UpdatedEvent,
		`{"status":"input_required","message":{"type":"multipart","content":["a",{"type":"json","content":1}]}}`)
	f.Add(ArtifactEvent, `{"artifact":{"id":"a","type":"file","content":"data:a/b;base64,QUJD"},"append":true}`)
	f.Add(MessageSend, `{"payload":{"type":"image","text":"x","attachments":[{"url":"u"}]}}`)
	f.Fuzz(func(t *testing.T, method, params string) {
		if !gjson.Valid(params) {
			return
		}
		rep, err := reportOf(method, gjson.Parse(params))
		if err != nil {
			return
		}
		for i := range rep.Items {
			if text := AppendPayload(nil, &rep.Items[i], "x", "t"); !json.Valid(text) {
				t.Errorf("a payload is %s", text)
			}
		}
		for _, c := range rep.Chunks {
			if c.Product.ID == "" && method != MessageSend {
				t.Error("a product has no id")
			}
			if text := AppendArtifact(nil, &c.Product); !json.Valid(text) {
				t.Errorf("an artifact is %s", text)
			}
		}
	})
}
