// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The types of a payload of message.send with a meaning for a task. A payload of another type is one data item.
const (
	textPayload   = "text"
	eventPayload  = "event"
	statusPayload = "status"
	jsonPayload   = "json"
	filePayload   = "file"
	imagePayload  = "image"
	cardPayload   = "action_card"
	// thoughtPayload is one of the asides.
	thoughtPayload = "thought"
)

// defaultBucket is the bucket of an object of storage.* without one.
const defaultBucket = "default"

// asides are the types of payloads outside a task, or about an agent's work on one. An entry with a dot at its end
// stands for all types that begin with it.
var asides = []string{thoughtPayload, "tool_call", "tool_result", "menu.", "peer.", "proxy."}

// The events for the state of a task in agents' payloads. AUN has no others.
const (
	taskStarted     = "task.started"
	taskCompleted   = "task.completed"
	taskInterrupted = "task.interrupted"
	taskError       = "task.error"
	taskTimeout     = "task.timeout"
)

// A Payload is the payload of a message: its content, and its subject.
type Payload struct {
	Items  []task.DataItem // its content; none in a mere event
	State  task.State      // the reported state of the task; None for none
	Native string          // the agent's own name of State
	Task   string          // the id of its task; empty if it names none
	Thread string          // its thread; empty for none
	Aside  bool            // it says nothing to a task, but shows its sender at work
	Starts bool            // its sender reports that it works, and will report the end
}

// ReadPayload reads a payload. ok is false if it does not fit its type, or means nothing to a task.
//
// Lenient: a payload that is a string, or has a text and no type, is a text.
func ReadPayload(v gjson.Result) (p Payload, ok bool) {
	if v.Type == gjson.String && v.Str != "" {
		return Payload{Items: []task.DataItem{task.Text(wire.Owned(v, v.Str))}}, true
	}
	if !v.IsObject() {
		return p, false
	}
	var typ, about, thread, said, data, event, state, attachments gjson.Result
	// In one reading: a payload lacks most of them, and its sender chooses its length.
	jsonrpc.Members(v, jsonrpc.Named{Name: "type", To: &typ}, jsonrpc.Named{Name: "task_id", To: &about},
		jsonrpc.Named{Name: "thread_id", To: &thread}, jsonrpc.Named{Name: "text", To: &said},
		jsonrpc.Named{Name: "data", To: &data}, jsonrpc.Named{Name: "event", To: &event},
		jsonrpc.Named{Name: "state", To: &state}, jsonrpc.Named{Name: "attachments", To: &attachments})
	kind := typ.Str
	p.Task, p.Thread = about.Str, thread.Str
	if id := jsonrpc.Member(data, "task_id").Str; kind != jsonPayload && data.IsObject() && id != "" {
		p.Task = id // the data of a json payload is its content
	}
	wire.Own(&p.Task, &p.Thread)
	if len(p.Task) > wire.MaxID || len(p.Thread) > wire.MaxID {
		return p, false
	}
	if isAside(kind) {
		p.Aside, p.State = true, task.Working
		if kind == thoughtPayload {
			p.Items = readThought(said, jsonrpc.Member(v, "items"))
		}
		return p, len(p.Items) <= wire.MaxItems
	}
	if said.Type == gjson.String && said.Str != "" {
		p.Items = []task.DataItem{task.Text(wire.Owned(said, said.Str))}
	}
	switch kind {
	case textPayload:
		return p, said.Type == gjson.String
	case "":
		return p, len(p.Items) > 0
	case cardPayload:
		p.State, p.Native, p.Items = task.AwaitingInput, cardPayload, readCard(v)
		return p, len(p.Items) > 0
	case eventPayload, statusPayload:
		p.Native = strings.Clone(event.Str)
		if p.Native == "" {
			p.Native = strings.Clone(state.Str)
		}
		if p.State = stateOfEvent(p.Native); p.State == task.None && kind == statusPayload {
			p.State = stateOfEvent("task." + p.Native)
		}
		if p.Starts = p.State == task.Working; p.State == task.None && len(p.Items) > 0 {
			p.State = task.Working // a name of its own, such as processing
		}
		if code := jsonrpc.Member(data, "error_code"); p.State == task.Failed && len(p.Items) == 0 && code.Str != "" {
			p.Items = []task.DataItem{task.Text(wire.Owned(code, code.Str))} // nothing more is known of the reason
		}
		return p, true
	case jsonPayload:
		if !data.Exists() {
			return p, false
		}
		var it task.DataItem
		wire.ReadAnyData(&it, data)
		p.Items = append(p.Items, it)
		return p, true
	default:
		n := len(p.Items)
		if it, ok := readImage(v); kind == imagePayload && ok {
			p.Items = append(p.Items, it)
		}
		jsonrpc.ForEach(attachments, func(_, a gjson.Result) bool {
			if it, ok := readAttachment(a); ok {
				p.Items = append(p.Items, it)
			}
			return len(p.Items) <= wire.MaxItems
		})
		if len(p.Items) == n {
			p.Items = []task.DataItem{{Kind: task.DataKind, Data: wire.Line(v)}}
		}
		return p, len(p.Items) <= wire.MaxItems
	}
}

// stateOfEvent returns the state for an event, or for the state of a status.
func stateOfEvent(name string) task.State {
	switch name {
	case taskStarted:
		return task.Working
	case taskCompleted:
		return task.AwaitingCompletion
	case taskInterrupted:
		return task.Canceled
	case taskError, taskTimeout:
		return task.Failed
	}
	state, _ := State(name)
	if state == task.Accepted {
		return task.None
	}
	return state
}

// isAside reports whether a payload of a type is an aside.
func isAside(kind string) bool {
	return slices.ContainsFunc(asides, func(name string) bool {
		return kind == name || strings.HasSuffix(name, ".") && strings.HasPrefix(kind, name)
	})
}

// readThought reads an agent's thoughts: a text, or the texts among its items. Some items are tool calls.
func readThought(said, items gjson.Result) (thoughts []task.DataItem) {
	if said.Type == gjson.String && said.Str != "" {
		thoughts = append(thoughts, task.Thought(wire.Owned(said, said.Str)))
	}
	jsonrpc.ForEach(items, func(_, one gjson.Result) bool {
		text := jsonrpc.Member(one, "text")
		if jsonrpc.Member(one, "kind").Str == textPayload && text.Type == gjson.String && text.Str != "" {
			thoughts = append(thoughts, task.Thought(wire.Owned(text, text.Str)))
		}
		return len(thoughts) <= wire.MaxItems
	})
	return thoughts
}

// readCard reads a card with buttons, a question: its title and text, and the possible answers.
func readCard(v gjson.Result) []task.DataItem {
	var lines, labels []string
	for _, name := range []string{"title", "text", "description"} {
		if text := jsonrpc.Member(v, name).Str; text != "" {
			lines = append(lines, text)
		}
	}
	jsonrpc.ForEach(jsonrpc.Member(v, "actions"), func(_, a gjson.Result) bool {
		if label := cmp.Or(jsonrpc.Member(a, "label").Str, jsonrpc.Member(a, "value").Str); label != "" {
			labels = append(labels, label)
		}
		return len(labels) < wire.MaxItems
	})
	if len(labels) > 0 {
		lines = append(lines, "["+strings.Join(labels, " | ")+"]")
	}
	if len(lines) == 0 {
		return nil
	}
	return []task.DataItem{task.Text(strings.Join(lines, "\n"))}
}

// readImage reads an image with its bytes or URL in the payload itself.
func readImage(v gjson.Result) (it task.DataItem, ok bool) {
	it = task.DataItem{Kind: task.FileItem, Name: cmp.Or(jsonrpc.Member(v, "filename").Str, jsonrpc.Member(v, "alt").Str),
		MIMEType: cmp.Or(jsonrpc.Member(v, "mime_type").Str, jsonrpc.Member(v, "content_type").Str),
		Bytes:    jsonrpc.Member(v, "data_base64").Str}
	wire.Own(&it.Name, &it.MIMEType, &it.Bytes)
	uri := jsonrpc.Member(v, "url").Str
	if it.Bytes == "" {
		readURI(&it, uri)
	}
	return it, it.Bytes != "" || uri != ""
}

// readAttachment reads an attachment with a URL of its own, or the URL of an object of storage.*.
func readAttachment(a gjson.Result) (it task.DataItem, ok bool) {
	it = task.DataItem{Kind: task.FileItem, Name: jsonrpc.Member(a, "filename").Str}
	it.MIMEType = jsonrpc.Member(a, "content_type").Str
	key, uri := jsonrpc.Member(a, "object_key").Str, jsonrpc.Member(a, "url").Str
	if object := urlOfObject(a, key); object != "" && (uri == "" || strings.HasPrefix(uri, "aun:")) {
		uri = object
		it.Name = cmp.Or(it.Name, path.Base(key))
	}
	wire.Own(&it.Name, &it.MIMEType)
	readURI(&it, uri)
	return it, uri != ""
}

// urlOfObject returns the URL for reading an object of storage.*; empty for none. The URL has the host of the owner,
// and no bucket, so only an object in the default bucket has one.
func urlOfObject(a gjson.Result, key string) string {
	owner, bucket := jsonrpc.Member(a, "owner_aid").Str, jsonrpc.Member(a, "bucket").Str
	key = strings.TrimPrefix(key, "/")
	if key == "" || cmp.Or(bucket, defaultBucket) != defaultBucket || !isHost(owner) {
		return ""
	}
	return (&url.URL{Scheme: "https", Host: owner, Path: "/" + key}).String()
}

// isHost reports whether an AID can be the host of a URL.
func isHost(aid string) bool {
	return aid != "" && len(aid) <= wire.MaxID && strings.Trim(aid, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// AppendPayload appends a data item as a payload.
func AppendPayload(dst []byte, it *task.DataItem, taskID, thread string) []byte {
	switch it.Kind {
	case task.TextItem:
		dst = it.AppendText(append(dst, `{"type":"text","text":`...))
	case task.FileItem:
		dst = wire.AppendFileURI(append(dst, `{"type":"file","attachments":[{"url":`...), it, "")
		dst = wire.AppendOptional(dst, `,"filename":`, it.Name)
		dst = append(wire.AppendOptional(dst, `,"content_type":`, it.MIMEType), `}]`...)
	default:
		value, _ := wire.AnyData(it) // a payload has no metadata
		dst = append(append(dst, `{"type":"json","data":`...), value...)
	}
	return appendAbout(dst, taskID, thread)
}

// AppendEvent appends the payload for the state of a task; ok is false if there is none for it.
func AppendEvent(dst []byte, state task.State, taskID, thread string) (_ []byte, ok bool) {
	var name, code string
	switch state {
	case task.Working:
		name = taskStarted
	case task.Completed:
		name = taskCompleted
	case task.Canceled:
		name = taskInterrupted
	case task.Failed, task.Rejected:
		name, code = taskError, string(state)
	case task.AwaitingInput:
		dst = append(dst, `{"type":"status","state":"input_required","data":{"task_id":`...)
		return appendAbout(append(task.AppendString(dst, taskID), '}'), taskID, thread), true
	default:
		return dst, false
	}
	dst = append(append(append(dst, `{"type":"event","event":"`...), name...), `","data":{"task_id":`...)
	dst = wire.AppendOptional(task.AppendString(dst, taskID), `,"error_code":`, code)
	return appendAbout(append(dst, '}'), taskID, thread), true
}

// AppendProgress appends the payload with the words of an agent working on a task.
func AppendProgress(dst []byte, said, taskID, thread string) []byte {
	dst = task.AppendString(append(dst, `{"type":"status","state":"working","text":`...), said)
	dst = task.AppendString(append(dst, `,"data":{"task_id":`...), taskID)
	return appendAbout(append(dst, '}'), taskID, thread)
}

// appendAbout appends the task and the thread of a payload, and its last brace.
func appendAbout(dst []byte, taskID, thread string) []byte {
	dst = wire.AppendOptional(dst, `,"task_id":`, taskID)
	return append(wire.AppendOptional(dst, `,"thread_id":`, thread), '}')
}

// Report returns the report of a payload of an agent. id is the message's: the words of a working agent are a product
// of this id.
func (p *Payload) Report(id string) agent.Report {
	rep := agent.Report{State: p.State, NativeState: p.Native}
	switch {
	case p.State == task.None && len(p.Items) > 0:
		rep.Chunks = []task.Chunk{{Product: task.Product{ID: id, DataItems: p.Items}, Last: true}}
	case p.State != task.None:
		rep.Items = p.Items
	}
	return rep
}
