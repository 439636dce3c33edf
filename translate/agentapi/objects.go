// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// appendObject appends the members with which every object begins, and counts it.
func (e *encoder) appendObject(dst []byte, object, status string) []byte {
	dst = append(dst, `{"sequence_number":`...)
	dst = strconv.AppendInt(dst, e.numbered, 10)
	e.numbered++
	dst = append(append(append(dst, `,"object":"`...), object...), `","status":"`...)
	return append(append(dst, status...), `","error":`...)
}

// appendProgress appends a response that is created or in progress.
func (e *encoder) appendProgress(dst []byte, s *step) []byte {
	dst = append(e.appendObject(dst, objectResponse, s.text), "null"...)
	dst = e.appendResponse(dst)
	return e.appendSession(append(dst, `null,"output":null`...))
}

// appendResponse appends the members of a response from its id to its end, whose value follows.
func (e *encoder) appendResponse(dst []byte) []byte {
	dst = task.AppendString(append(dst, `,"id":`...), e.id)
	dst = strconv.AppendInt(append(dst, `,"created_at":`...), e.created, 10)
	return append(dst, `,"completed_at":`...)
}

// appendSession appends the last members of a response.
func (e *encoder) appendSession(dst []byte) []byte {
	dst = append(dst, `,"usage":null,"session_id":`...)
	return append(task.AppendString(dst, e.session), '}')
}

// appendEnd appends the last response.
func (e *encoder) appendEnd(dst []byte, s *step) []byte {
	status, code := endOf(s.status.State)
	dst = e.appendObject(dst, objectResponse, status)
	if code == "" {
		dst = append(dst, "null"...)
	} else {
		dst = append(append(append(dst, `{"code":"`...), code...), `","message":`...)
		dst = append(task.AppendString(dst, reasonOf(s.status)), '}')
	}
	dst = e.appendResponse(dst)
	if status != statusCompleted {
		return e.appendSession(append(dst, `null,"output":null`...))
	}
	dst = strconv.AppendInt(dst, s.status.ChangedAt.Unix(), 10)
	dst = append(dst, `,"output":[`...)
	for i, m := range e.messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m.written...)
	}
	return e.appendSession(append(dst, ']'))
}

// endOf returns the status of a response whose turn has ended in a state, and the code of its error; none for success.
func endOf(s task.State) (status, code string) {
	switch s {
	case task.Failed:
		return statusFailed, "AGENT_UNKNOWN_ERROR"
	case task.Rejected:
		return statusRejected, "REQUEST_REJECTED"
	case task.Canceled:
		return statusCanceled, "TASK_CANCELED"
	}
	return statusCompleted, ""
}

// reasonOf returns what the agent, or the gateway, says about the end of a task.
func reasonOf(st *task.Status) (text string) {
	for i := range st.DataItems {
		if it := &st.DataItems[i]; it.Kind == task.TextItem && it.Text != "" {
			if text != "" {
				text += "\n"
			}
			text += it.Text
		}
	}
	if text == "" {
		text = "The task is " + string(st.State) + "."
	}
	return text
}

// appendMessageBegin appends a message that is in progress.
func (e *encoder) appendMessageBegin(dst []byte, s *step) []byte {
	dst = append(e.appendObject(dst, objectMessage, statusInProgress), "null"...)
	dst = appendMessageHead(dst, s.message)
	return appendMessageTail(append(dst, "null"...), s.message)
}

// appendMessageHead appends the members of a message from its id to its content, whose value follows.
func appendMessageHead(dst []byte, m *message) []byte {
	dst = task.AppendString(append(dst, `,"id":`...), m.id)
	role := roleAssistant
	if strings.HasSuffix(m.kind, "_output") {
		role = roleTool
	}
	dst = append(append(append(dst, `,"type":"`...), m.kind...), `","role":"`...)
	return append(append(dst, role...), `","content":`...)
}

// appendMessageTail appends the last members of a message. Its metadata name the product.
func appendMessageTail(dst []byte, m *message) []byte {
	dst = append(dst, `,"code":null,"message":null,"usage":null,"metadata":`...)
	if m.product == nil {
		return append(dst, "null}"...)
	}
	dst = task.AppendString(append(dst, `{"productId":`...), m.product.ID)
	dst = wire.AppendOptional(dst, `,"name":`, m.product.Name)
	dst = wire.AppendOptional(dst, `,"description":`, m.product.Description)
	return append(dst, '}', '}')
}

// appendDelta appends a piece of a text.
func (e *encoder) appendDelta(dst []byte, s *step) []byte {
	dst = append(e.appendObject(dst, objectContent, statusInProgress), `null,"type":"text","index":`...)
	dst = strconv.AppendInt(dst, int64(s.content), 10)
	dst = task.AppendString(append(dst, `,"delta":true,"msg_id":`...), s.message.id)
	return append(task.AppendString(append(dst, `,"text":`...), s.text), '}')
}

// appendContent appends a content that is completed. The message repeats it.
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

// appendMembers appends the members of a content that is completed from its type to its end. What it says comes last.
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

// appendMessageEnd appends a message that is completed. The response repeats it.
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
