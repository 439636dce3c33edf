// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// change returns what the product has become since before: where the contents only repeat what was said in pieces,
// nothing, or that the product is complete.
func (m *agentMessage) change(before task.Product, last bool) []task.Chunk {
	now := m.product()
	if !m.begun && len(now.DataItems) == 0 {
		return nil
	}
	var known []task.Product
	if m.begun && !m.mixed {
		known = []task.Product{before}
	}
	m.begun, m.mixed = true, false
	chunks := task.Diff(known, []task.Product{now})
	for i := range chunks {
		if chunks[i].Last = last; len(chunks[i].Product.DataItems) == 0 {
			chunks[i].Product.DataItems = nothing(&now)
		}
	}
	if last && len(chunks) == 0 {
		chunks = append(chunks, end(&now))
	}
	return chunks
}

// end returns a piece that adds nothing to a product, and is its last one.
func end(p *task.Product) task.Chunk {
	return task.Chunk{Product: task.Product{ID: p.ID, Name: p.Name, DataItems: nothing(p)}, Append: true, Last: true}
}

// nothing returns what a piece has that adds nothing to a product: an empty text where that changes nothing, since not
// every caller takes a piece without any data items.
func nothing(p *task.Product) []task.DataItem {
	if n := len(p.DataItems); n > 0 && p.DataItems[n-1].PlainText() {
		return []task.DataItem{task.Text("")}
	}
	return nil
}

// extend takes what a message has beside its contents, which its product has as well.
func (m *agentMessage) extend(of *members) {
	if wire.Absent(of.metadata) && wire.Absent(of.usage) {
		return
	}
	var x wire.Extensions
	add := func(name string, v gjson.Result) {
		if wire.Absent(v) {
			v = gjson.ParseBytes(wire.MemberOf(family.Of(m.extensions), name))
		}
		x.Add(name, v)
	}
	add("metadata", of.metadata)
	add("usage", of.usage)
	m.extensions = x.JSON(family, "")
}

// end adds the end of each product whose message the response has not completed.
func (r *reader) end(rep *agent.Report) {
	for _, id := range slices.Sorted(maps.Keys(r.messages)) {
		msg := r.messages[id]
		if msg.shows && !msg.begun && len(msg.contents) > 0 { // nothing is hidden, and its message never came
			rep.Chunks = append(rep.Chunks, msg.change(task.Product{}, false)...)
		}
		if msg.begun && !msg.complete {
			now := msg.product()
			rep.Chunks = append(rep.Chunks, end(&now))
		}
	}
}

// Conclude implements translate.Concluder: some agents end their stream behind a complete message, without the end of
// the response. An agent that ends it elsewhere was stopped.
func (r *reader) Conclude() (rep agent.Report, ok bool) { // Lenient: no end of the response
	if r.ended == nil || !r.ended.answers {
		return rep, false
	}
	for _, msg := range r.messages {
		if !msg.complete {
			return rep, false
		}
	}
	return agent.Report{
		State: task.AwaitingCompletion, NativeState: "complete", Revision: "complete", Presumed: true,
	}, true
}

// reason returns why a response has ended without being completed.
func (r *reader) reason(m *members) string {
	text := errorText(m.failure.Get("code"), m.failure.Get("message"))
	if text == "" {
		text = r.failure
	}
	switch {
	case text != "":
		return text
	case m.status.Str == statusIncomplete:
		return "the agent's answer is incomplete"
	}
	return "the agent says that the run is " + wire.Clean(m.status.Str, wire.MaxWord) + ", and gives no reason"
}

// What a caller of the Agent API is shown of a response that has not been completed is kept with the status: its own
// word for that, and its error, whose code callers compare.

// ended returns the extensions of a status that stand for the end of a response.
func ended(status, failure gjson.Result) json.RawMessage {
	var x wire.Extensions
	x.Add("status", status)
	addError(&x, failure.Get("code"), failure.Get("message"))
	return x.JSON(family, "")
}

// failed returns the extensions of a status that stand for an error.
func failed(code, message gjson.Result) json.RawMessage {
	var x wire.Extensions
	addError(&x, code, message)
	return x.JSON(family, "")
}

func addError(x *wire.Extensions, code, message gjson.Result) {
	word, text := wire.Clean(code.String(), wire.MaxWord), wire.Clean(message.String(), wire.MaxSentence)
	if word == "" {
		return
	}
	dst := task.AppendString([]byte(`{"code":`), word)
	dst = append(task.AppendString(append(dst, `,"message":`...), text), '}')
	x.Add("error", gjson.ParseBytes(dst))
}
