// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// change returns the change of the product since before. If the contents only repeat the pieces, it is nothing, or the
// end of the product.
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
			chunks[i].Product.DataItems = task.Nothing(&now)
		}
	}
	if last && len(chunks) == 0 {
		chunks = append(chunks, task.End(&now))
	}
	return chunks
}

// extend takes the members of a message beside its contents. Its product has them as well.
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
			rep.Chunks = append(rep.Chunks, task.End(&now))
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
	rep = agent.Report{
		State: task.AwaitingCompletion, NativeState: "complete", Revision: "complete", Presumed: true,
	}
	if len(r.open) > 0 {
		rep.State, rep.Items = task.AwaitingInput, r.question()
	}
	return rep, true
}

// reason returns the reason why a response has ended without being completed.
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

// ended returns the extensions of a status for the end of a response that is not completed. They are for callers of the
// Agent API: the agent's own word for the end, and its error, since callers compare its code. A message of an error has
// no such word.
func ended(status, code, message gjson.Result) json.RawMessage {
	var x wire.Extensions
	x.Add("status", status)
	if word := wire.Clean(code.String(), wire.MaxWord); word != "" {
		text := wire.Clean(message.String(), wire.MaxSentence)
		x.Add("error", gjson.ParseBytes(appendFailure(nil, word, text)))
	}
	return x.JSON(family, "")
}
