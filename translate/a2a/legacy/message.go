// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"hash/crc32"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/reply"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// messageWord is the state of an agent after a Message in place of a Task, and the id of the product.
const messageWord = "message"

// resultOf returns the members of an agent's answer. Some agents put them into another object.
func resultOf(v gjson.Result) result {
	m := membersOf(v)
	if m.status.Exists() || m.artifact.Exists() || !m.inner.IsObject() {
		return m
	}
	inner := membersOf(m.inner)
	if !inner.id.Exists() {
		inner.id = m.id
	}
	inner.final = inner.final || m.final
	return inner
}

// said returns the parts of a Message in place of a Task, or its text: it is the result, or in it, as in an example of
// v0.1 itself.
func (m *result) said() gjson.Result {
	switch {
	case m.raw.Type == gjson.String:
		return m.raw
	case m.parts.Exists():
		return m.parts
	case m.message.Type == gjson.String && !m.id.Exists():
		return m.message
	}
	return partsOf(m.message)
}

// partsOf returns the parts of a Message.
func partsOf(message gjson.Result) gjson.Result {
	var parts, content gjson.Result
	jsonrpc.Members(message, jsonrpc.Named{Name: "parts", To: &parts}, jsonrpc.Named{Name: "content", To: &content})
	if parts.Exists() {
		return parts
	}
	return content
}

// finished reads a Message in place of a Task: the agent has finished, and the content is the product.
func (m *result) finished(said gjson.Result) (rep agent.Report, err error) {
	p := task.Product{ID: messageWord}
	if p.DataItems, err = part.Read(said); err != nil {
		return rep, err
	}
	rep.State, rep.NativeState = task.AwaitingCompletion, messageWord
	rep.Full, rep.Products = true, []task.Product{p}
	rep.Revision = messageWord + " " + strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(said.Raw))), 16)
	return rep, nil
}

// news reads an event. A Message in place of one is the word of a working agent, unless it is final.
func (m *result) news(a *artifacts) (rep agent.Report, err error) {
	said := m.said()
	switch {
	case m.status.Exists() || m.artifact.Exists() || !said.Exists():
		return m.reportBy(&streamForm, a)
	case jsonrpc.Member(m.raw, "role").Str == "user": // the gateway's own
		return rep, nil
	case m.final:
		whole, err := m.finished(said)
		for _, p := range whole.Products {
			rep.Chunks = append(rep.Chunks, task.Chunk{Product: p, Last: true})
		}
		rep.State, rep.NativeState, rep.Revision = whole.State, whole.NativeState, whole.Revision
		return rep, err
	}
	rep.State, rep.NativeState = task.Working, messageWord
	rep.Items, err = part.Read(said)
	return rep, err
}

// recall reads an agent's answer outside of a status and artifacts: in its history, or beside the status, as a result
// or an error.
func (m *result) recall(rep *agent.Report) {
	rep.Items = reply.Recalled(m.history, func(m gjson.Result) ([]task.DataItem, error) {
		return part.Read(partsOf(m))
	})
	text := m.answer.String()
	if m.answer.Type != gjson.String {
		text = wire.Reason(m.failure)
	}
	if text != "" && len(rep.Items) == 0 {
		rep.Items = []task.DataItem{task.Text(text)}
	}
}
