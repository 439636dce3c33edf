// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"encoding/json"
	"strconv"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/message"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The names of SSE events in v0.1. Some callers read nothing else, others ignore them.
const (
	statusUpdate   = "task_status_update"
	artifactUpdate = "task_artifact_update"
)

// stateName is status.Name, but v0.1 has no state for a rejected task.
func (s server) stateName(state task.State) string {
	if state == task.Rejected {
		state = task.Failed
	}
	return status.Name(state, s.confirm)
}

// appendTask appends a Task with the last messages of its history.
func (s server) appendTask(dst []byte, t *task.Task, history int) []byte {
	dst = append(dst, `{"id":`...)
	dst = task.AppendString(dst, t.ID)
	dst = wire.AppendOptional(dst, `,"sessionId":`, t.SessionID)
	dst = append(dst, `,"status":`...)
	dst = s.appendStatus(dst, &t.Status, status.Shown(t))
	if len(t.Products) > 0 {
		dst = append(dst, `,"artifacts":[`...)
		for i := range t.Products {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendArtifact(dst, &t.Products[i], i), `,"lastChunk":true}`...)
		}
		dst = append(dst, ']')
	}
	if shown := message.Last(t.MessageHistory, history); len(shown) > 0 {
		sep := `,"history":[`
		for i := range shown {
			if len(shown[i].DataItems) > 0 {
				m := extension.InHistory(&shown[i])
				dst = append(dst, sep...)
				dst = appendMessage(dst, message.Role(&m), m.DataItems, m.Extensions)
				sep = ","
			}
		}
		dst = append(dst, ']')
	}
	dst = status.AppendExtensions(dst, t.Extensions, t.Status.State, s.stateName(t.Status.State))
	return append(dst, '}')
}

func (s server) appendStatus(dst []byte, st, said *task.Status) []byte {
	dst = append(dst, `{"state":"`...)
	dst = append(append(dst, s.stateName(st.State)...), '"')
	if status.HasMessage(said) {
		dst = append(dst, `,"message":`...)
		dst = appendMessage(dst, "agent", said.DataItems, said.Extensions)
	}
	return append(extension.AppendStatus(status.AppendTime(dst, st), said.Extensions), '}')
}

func appendMessage(dst []byte, role string, items []task.DataItem, extra json.RawMessage) []byte {
	dst = append(dst, `{"role":"`...)
	dst = append(append(dst, role...), `","parts":`...)
	return append(extension.AppendMessage(appendParts(dst, items), extra), '}')
}

// appendArtifact appends an artifact, or a piece of one, up to its flags. v0.1 identifies it by its index: the place of
// the product in the task.
func appendArtifact(dst []byte, p *task.Product, index int) []byte {
	dst = append(dst, `{"parts":`...)
	dst = appendParts(dst, p.DataItems)
	dst = wire.AppendOptional(dst, `,"name":`, p.Name)
	dst = wire.AppendOptional(dst, `,"description":`, p.Description)
	dst = append(extension.AppendArtifact(dst, p.Extensions, p.ID), `,"index":`...)
	return strconv.AppendInt(dst, int64(index), 10)
}

// NewStream implements translate.Server.
func (s server) NewStream(id jsonrpc.ID, _ *translate.Call, t *task.Task) translate.Encoder {
	e := &encoder{server: s, id: id, taskID: t.ID}
	e.note(t)
	return e
}

// encoder writes TaskStatusUpdateEvents and TaskArtifactUpdateEvents. Every state of a waiting or finished agent ends
// the stream, since callers leave there.
type encoder struct {
	server
	id       jsonrpc.ID
	taskID   string
	products []string // ids of the task's products, each at its index
}

// note records the products of a whole task.
func (e *encoder) note(t *task.Task) {
	for i := range t.Products {
		e.index(t.Products[i].ID)
	}
}

// index returns the index of a product. Most often it is the last one, as that grows.
func (e *encoder) index(id string) int {
	for i := len(e.products) - 1; i >= 0; i-- {
		if e.products[i] == id {
			return i
		}
	}
	e.products = append(e.products, id)
	return len(e.products) - 1
}

// Snapshot implements translate.Encoder. v0.1 has no event for a whole task, so only its state is sent.
func (e *encoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	e.note(t)
	return e.status(dst, &t.Status, status.Shown(t))
}

// Event implements translate.Encoder.
func (e *encoder) Event(dst []byte, ev *task.Event) translate.Frame {
	switch {
	case ev.Task != nil:
		return e.Snapshot(dst, ev.Task)
	case ev.Status != nil:
		return e.status(dst, ev.Status, ev.Status)
	case ev.Chunk != nil:
		return e.chunk(dst, ev.Chunk)
	case ev.Message != nil && ev.Message.SenderRole == task.Partner:
		st := status.Of(ev.Message, task.Working)
		return e.status(dst, st, st)
	}
	return translate.Frame{}
}

// begin appends an event up to its own members.
func (e *encoder) begin(dst []byte) []byte {
	dst = append(jsonrpc.BeginResult(dst, e.id), `{"id":`...)
	return task.AppendString(dst, e.taskID)
}

func (e *encoder) status(dst []byte, st, said *task.Status) translate.Frame {
	end := st.State.Settled()
	dst = append(e.begin(dst), `,"status":`...)
	dst = e.appendStatus(dst, st, said)
	dst = strconv.AppendBool(append(dst, `,"final":`...), end)
	dst = status.AppendExtensions(dst, said.TaskExtensions, st.State, e.stateName(st.State))
	return translate.Frame{Name: statusUpdate, Data: jsonrpc.End(append(dst, '}')), End: end}
}

func (e *encoder) chunk(dst []byte, c *task.Chunk) translate.Frame {
	dst = append(e.begin(dst), `,"artifact":`...)
	dst = appendArtifact(dst, &c.Product, e.index(c.Product.ID))
	dst = strconv.AppendBool(append(dst, `,"append":`...), c.Append)
	dst = strconv.AppendBool(append(dst, `,"lastChunk":`...), c.Last)
	dst = extension.AppendResult(append(dst, `},"final":false`...), c.Extensions, task.None)
	return translate.Frame{Name: artifactUpdate, Data: jsonrpc.End(append(dst, '}'))}
}
