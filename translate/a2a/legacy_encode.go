// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"encoding/json"
	"strconv"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// The names of SSE events in v0.1. Some callers look at nothing else, some not at them.
const (
	legacyStatusUpdate   = "task_status_update"
	legacyArtifactUpdate = "task_artifact_update"
)

// word is legacyWord, but v0.1 has no word for a refusal.
func (s legacyServer) word(state task.State) string {
	if state == task.Rejected {
		state = task.Failed
	}
	return legacyWord(state, s.confirm)
}

// appendTask appends a Task with the last messages of its history.
func (s legacyServer) appendTask(dst []byte, t *task.Task, history int) []byte {
	dst = append(dst, `{"id":`...)
	dst = task.AppendString(dst, t.ID)
	dst = legacyOptional(dst, `,"sessionId":`, t.SessionID)
	dst = append(dst, `,"status":`...)
	dst = s.appendStatus(dst, &t.Status, legacySaid(t))
	for i := range t.Products {
		dst = append(dst, legacyNext(i, `,"artifacts":[`)...)
		dst = append(appendLegacyArtifact(dst, &t.Products[i], i), `,"lastChunk":true}`...)
	}
	dst = legacyClosed(dst, len(t.Products))
	if shown := v1History(t.MessageHistory, history); len(shown) > 0 {
		sep := `,"history":[`
		for i := range shown {
			if len(shown[i].DataItems) > 0 {
				m := inHistory(&shown[i])
				dst = append(dst, sep...)
				dst = appendLegacyMessage(dst, legacyRole(&m), m.DataItems, m.Extensions)
				sep = ","
			}
		}
		dst = append(dst, ']')
	}
	dst = appendLegacyMetadata(dst, t.Extensions, t.Status.State, s.word(t.Status.State))
	return append(dst, '}')
}

func (s legacyServer) appendStatus(dst []byte, st, said *task.Status) []byte {
	dst = append(dst, `{"state":"`...)
	dst = append(append(dst, s.word(st.State)...), '"')
	if legacySpeaks(said) {
		dst = append(dst, `,"message":`...)
		dst = appendLegacyMessage(dst, "agent", said.DataItems, said.Extensions)
	}
	return append(appendStatusRest(appendLegacyTime(dst, st), said.Extensions), '}')
}

func appendLegacyMessage(dst []byte, role string, items []task.DataItem, extra json.RawMessage) []byte {
	dst = append(dst, `{"role":"`...)
	dst = append(append(dst, role...), `","parts":`...)
	return append(appendMessageRest(appendLegacyParts(dst, items), extra), '}')
}

// appendLegacyArtifact appends an artifact, or a piece of one, up to where its flags stand. v0.1 knows it by its
// index: the place of the product in the task.
func appendLegacyArtifact(dst []byte, p *task.Product, index int) []byte {
	dst = append(dst, `{"parts":`...)
	dst = appendLegacyParts(dst, p.DataItems)
	dst = legacyOptional(dst, `,"name":`, p.Name)
	dst = legacyOptional(dst, `,"description":`, p.Description)
	dst = append(appendArtifactRest(dst, p.Extensions, p.ID), `,"index":`...)
	return strconv.AppendInt(dst, int64(index), 10)
}

// NewStream implements translate.Server.
func (s legacyServer) NewStream(id jsonrpc.ID, _ *translate.Call, t *task.Task) translate.Encoder {
	e := &legacyEncoder{legacyServer: s, id: id, taskID: t.ID}
	e.sees(t)
	return e
}

// legacyEncoder writes TaskStatusUpdateEvents and TaskArtifactUpdateEvents. Every state that rests ends its stream,
// since callers leave there.
type legacyEncoder struct {
	legacyServer
	id       jsonrpc.ID
	taskID   string
	products []string // ids of the task's products, each at its index
}

// sees notes the products of a task that is told of as a whole.
func (e *legacyEncoder) sees(t *task.Task) {
	for i := range t.Products {
		e.index(t.Products[i].ID)
	}
}

// index returns the index of a product. Most often it is that of the last one, which grows.
func (e *legacyEncoder) index(id string) int {
	for i := len(e.products) - 1; i >= 0; i-- {
		if e.products[i] == id {
			return i
		}
	}
	e.products = append(e.products, id)
	return len(e.products) - 1
}

// Snapshot implements translate.Encoder: v0.1 has no event for a whole task, so that its state must do.
func (e *legacyEncoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	e.sees(t)
	return e.status(dst, &t.Status, legacySaid(t))
}

// Event implements translate.Encoder.
func (e *legacyEncoder) Event(dst []byte, ev *task.Event) translate.Frame {
	switch {
	case ev.Task != nil:
		return e.Snapshot(dst, ev.Task)
	case ev.Status != nil:
		return e.status(dst, ev.Status, ev.Status)
	case ev.Chunk != nil:
		return e.chunk(dst, ev.Chunk)
	case ev.Message != nil && ev.Message.SenderRole == task.Partner:
		return e.message(dst, ev.Message)
	}
	return translate.Frame{}
}

// begin appends an event up to its own members.
func (e *legacyEncoder) begin(dst []byte) []byte {
	dst = append(jsonrpc.BeginResult(dst, e.id), `{"id":`...)
	return task.AppendString(dst, e.taskID)
}

// message tells of what the Partner says as news of a task that is at work.
func (e *legacyEncoder) message(dst []byte, m *task.Message) translate.Frame {
	st := &task.Status{State: task.Working, ChangedAt: m.SentAt, DataItems: m.DataItems, Extensions: m.Extensions}
	return e.status(dst, st, st)
}

func (e *legacyEncoder) status(dst []byte, st, said *task.Status) translate.Frame {
	end := st.State.Settled()
	dst = append(e.begin(dst), `,"status":`...)
	dst = e.appendStatus(dst, st, said)
	dst = strconv.AppendBool(append(dst, `,"final":`...), end)
	dst = appendLegacyMetadata(dst, said.TaskExtensions, st.State, e.word(st.State))
	return translate.Frame{Name: legacyStatusUpdate, Data: jsonrpc.End(append(dst, '}')), End: end}
}

func (e *legacyEncoder) chunk(dst []byte, c *task.Chunk) translate.Frame {
	dst = append(e.begin(dst), `,"artifact":`...)
	dst = appendLegacyArtifact(dst, &c.Product, e.index(c.Product.ID))
	dst = strconv.AppendBool(append(dst, `,"append":`...), c.Append)
	dst = strconv.AppendBool(append(dst, `,"lastChunk":`...), c.Last)
	dst = appendResultRest(append(dst, `},"final":false`...), c.Extensions, task.None)
	return translate.Frame{Name: legacyArtifactUpdate, Data: jsonrpc.End(append(dst, '}'))}
}
