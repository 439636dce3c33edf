// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// appendObject appends the first members of every object, and counts it.
func (e *encoder) appendObject(dst []byte, object, status string) []byte {
	dst = append(dst, `{"sequence_number":`...)
	dst = strconv.AppendInt(dst, e.numbered, 10)
	e.numbered++
	dst = append(append(append(dst, `,"object":"`...), object...), `","status":"`...)
	return append(append(dst, status...), `","error":`...)
}

// appendProgress appends a response: created or in progress.
func (e *encoder) appendProgress(dst []byte, s *step) []byte {
	dst = append(e.appendObject(dst, objectResponse, s.text), "null"...)
	dst = e.appendResponse(dst)
	return e.appendSession(append(dst, `null,"output":null`...), nil)
}

// appendResponse appends the members of a response from its id to its time of completion, without the value of the
// latter.
func (e *encoder) appendResponse(dst []byte) []byte {
	dst = task.AppendString(append(dst, `,"id":`...), e.id)
	dst = strconv.AppendInt(append(dst, `,"created_at":`...), e.created, 10)
	return append(dst, `,"completed_at":`...)
}

// appendSession appends the last members of a response.
func (e *encoder) appendSession(dst []byte, usage json.RawMessage) []byte {
	dst = append(appendOrNull(append(dst, `,"usage":`...), usage), `,"session_id":`...)
	return append(task.AppendString(dst, e.session), '}')
}

// appendOrNull appends a value, or null if there is none.
func appendOrNull(dst []byte, value json.RawMessage) []byte {
	if len(value) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, wire.OneLine(value)...)
}

// appendEnd appends the last response. A failed one has the messages completed before.
func (e *encoder) appendEnd(dst []byte, s *step) []byte {
	end := endOf(s.status)
	dst = e.appendObject(dst, objectResponse, end.status)
	if end.code == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendFailure(dst, end.code, end.message)
	}
	dst = e.appendResponse(dst)
	if end.status == statusCompleted {
		dst = strconv.AppendInt(dst, s.status.ChangedAt.Unix(), 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"output":`...)
	empty := len(dst)
	for _, m := range e.messages {
		if m.done {
			dst = append(append(dst, ','), m.written...)
		}
	}
	switch {
	case len(dst) > empty:
		dst[empty] = '['
		dst = append(dst, ']')
	case end.status == statusCompleted:
		dst = append(dst, '[', ']')
	default:
		dst = append(dst, "null"...)
	}
	return e.appendSession(dst, e.usage)
}

// appendFailure appends the error of a response.
func appendFailure(dst []byte, code, message string) []byte {
	dst = task.AppendString(append(dst, `{"code":`...), code)
	return append(task.AppendString(append(dst, `,"message":`...), message), '}')
}

// appendMessageBegin appends a message in progress.
func (e *encoder) appendMessageBegin(dst []byte, s *step) []byte {
	dst = append(e.appendObject(dst, objectMessage, statusInProgress), "null"...)
	dst = appendMessageHead(dst, s.message)
	return appendMessageTail(append(dst, "null"...), s.message)
}

// appendMessageHead appends the members of a message from its id to its content, without the value of the latter.
func appendMessageHead(dst []byte, m *message) []byte {
	dst = task.AppendString(append(dst, `,"id":`...), m.id)
	role := roleAssistant
	if isOutput(m.kind) {
		role = roleTool
	}
	dst = append(append(append(dst, `,"type":"`...), m.kind...), `","role":"`...)
	return append(append(dst, role...), `","content":`...)
}

// appendMessageTail appends the last members of a message. Its metadata name the product, beside the agent's own
// members there.
func appendMessageTail(dst []byte, m *message) []byte {
	dst = append(dst, `,"code":null,"message":null,"usage":`...)
	if m.product == nil {
		return append(dst, `null,"metadata":null}`...)
	}
	dst = append(appendOrNull(dst, usageOf(m.product.Extensions)), `,"metadata":`...)
	dst = task.AppendString(append(dst, `{"productId":`...), m.product.ID)
	own := gjson.ParseBytes(wire.MemberOf(family.Of(m.product.Extensions), "metadata"))
	for _, named := range [...][2]string{{"name", m.product.Name}, {"description", m.product.Description}} {
		if !jsonrpc.Member(own, named[0]).Exists() {
			dst = wire.AppendOptional(dst, `,"`+named[0]+`":`, named[1])
		}
	}
	if own.IsObject() {
		jsonrpc.ForEach(own, func(key, v gjson.Result) bool {
			if key.Str != "productId" {
				dst = append(append(append(append(dst, ','), key.Raw...), ':'), wire.OneLine([]byte(v.Raw))...)
			}
			return true
		})
	}
	return append(dst, '}', '}')
}

// appendDelta appends a piece of a text.
func (e *encoder) appendDelta(dst []byte, s *step) []byte {
	dst = append(e.appendObject(dst, objectContent, statusInProgress), `null,"type":"text","index":`...)
	dst = strconv.AppendInt(dst, int64(s.content), 10)
	dst = task.AppendString(append(dst, `,"delta":true,"msg_id":`...), s.message.id)
	return append(task.AppendString(append(dst, `,"text":`...), s.text), '}')
}

// appendContent appends a completed content. The message repeats it.
func (e *encoder) appendContent(dst []byte, s *step) []byte {
	m := s.message
	c := &m.contents[s.content]
	begin := len(dst)
	dst = append(e.appendObject(dst, objectContent, statusCompleted), "null,"...)
	dst = c.appendMembers(dst, s.content, m.id)
	before := len(m.written)
	if before > 0 {
		m.written = append(m.written, ',')
	}
	m.written = append(m.written, dst[begin:]...)
	e.kept += int64(len(m.written)-before) - c.size()
	*c = content{item: task.DataItem{Kind: c.item.Kind}, done: true}
	return dst
}

// appendMembers appends the members of a completed content from its type to its end. Its text or data come last.
func (c *content) appendMembers(dst []byte, index int, message string) []byte {
	it, delta := c.item, "false"
	if it.Kind == task.TextItem {
		it.Text, delta = string(c.text), "null"
	}
	said := appendContent(nil, &it)
	kind, rest, _ := bytes.Cut(said, []byte{','})
	dst = append(append(dst, kind...), `,"index":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	dst = append(append(append(dst, `,"delta":`...), delta...), `,"msg_id":`...)
	dst = append(task.AppendString(dst, message), ',')
	return append(append(dst, rest...), '}')
}

// appendMessageEnd appends a completed message. The response repeats it.
func (e *encoder) appendMessageEnd(dst []byte, s *step) []byte {
	m := s.message
	begin := len(dst)
	dst = append(e.appendObject(dst, objectMessage, statusCompleted), "null"...)
	dst = append(appendMessageHead(dst, m), '[')
	dst = appendMessageTail(append(append(dst, m.written...), ']'), m)
	e.kept += int64(len(dst) - begin - len(m.written))
	m.written = bytes.Clone(dst[begin:])
	return dst
}
