// SPDX-License-Identifier: Apache-2.0

package v03

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/message"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// appendTask appends a Task with the last messages of its history.
func (s server) appendTask(dst []byte, t *task.Task, history int) []byte {
	dst = append(dst, `{"kind":"task","id":`...)
	dst = task.AppendString(dst, t.ID)
	dst = append(dst, `,"contextId":`...)
	dst = task.AppendString(dst, t.SessionID)
	dst = append(dst, `,"status":`...)
	dst = s.appendStatus(dst, t, &t.Status, status.Shown(t))
	if len(t.Products) > 0 {
		dst = append(dst, `,"artifacts":[`...)
		for i := range t.Products {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendArtifact(dst, &t.Products[i])
		}
		dst = append(dst, ']')
	}
	if shown := message.Last(t.MessageHistory, history); len(shown) > 0 {
		sep := `,"history":[`
		for i := range shown {
			if len(shown[i].DataItems) > 0 {
				m := extension.InHistory(&shown[i])
				dst = append(dst, sep...)
				dst = appendMessage(dst, t, m.ID, message.Role(&m), m.SentAt, m.DataItems, m.Extensions)
				sep = ","
			}
		}
		dst = append(dst, ']')
	}
	dst = status.AppendExtensions(dst, t.Extensions, t.Status.State, status.Name(t.Status.State, s.confirm))
	return append(dst, '}')
}

// appendStatus appends a TaskStatus of t.
func (s server) appendStatus(dst []byte, t *task.Task, st, said *task.Status) []byte {
	word := status.Name(st.State, s.confirm)
	if status.AwaitsAuth(st) {
		word = status.AuthRequired
	}
	dst = append(dst, `{"state":"`...)
	dst = append(append(dst, word...), '"')
	if said = status.WithoutMark(said); status.HasMessage(said) {
		dst = append(dst, `,"message":`...)
		dst = appendMessage(dst, t, "", "agent", st.ChangedAt, said.DataItems, said.Extensions)
	}
	return append(extension.AppendStatus(status.AppendTime(dst, st), said.Extensions), '}')
}

// appendMessage appends a Message of t. One without an id gets that of message.Made.
func appendMessage(
	dst []byte, t *task.Task, id, role string, at time.Time, items []task.DataItem, extra json.RawMessage,
) []byte {
	dst = append(dst, `{"kind":"message","role":"`...)
	dst = append(append(dst, role...), `","parts":`...)
	begin := len(dst)
	dst = part.Append(dst, "kind", items)
	if id == "" {
		id = message.Made(t.ID, at, dst[begin:])
	}
	dst = append(dst, `,"messageId":`...)
	dst = task.AppendString(dst, id)
	dst = append(dst, `,"taskId":`...)
	dst = task.AppendString(dst, t.ID)
	dst = append(dst, `,"contextId":`...)
	return append(extension.AppendMessage(task.AppendString(dst, t.SessionID), extra), '}')
}

// appendAnswer appends the answer to a message: a Message of the agent.
func appendAnswer(dst []byte, id jsonrpc.ID, p *task.Product, session string) []byte {
	dst = append(jsonrpc.BeginResult(dst, id), `{"kind":"message","role":"agent","parts":`...)
	dst = append(part.Append(dst, "kind", p.DataItems), `,"messageId":`...)
	dst = append(task.AppendString(dst, p.ID), `,"contextId":`...)
	return jsonrpc.End(append(extension.AppendAnswer(task.AppendString(dst, session), p.Extensions), '}'))
}

// appendArtifact appends an artifact, or a piece of one.
func appendArtifact(dst []byte, p *task.Product) []byte {
	dst = append(dst, `{"artifactId":`...)
	dst = task.AppendString(dst, p.ID)
	dst = wire.AppendOptional(dst, `,"name":`, p.Name)
	dst = wire.AppendOptional(dst, `,"description":`, p.Description)
	dst = part.Append(append(dst, `,"parts":`...), "kind", p.DataItems)
	return append(extension.AppendArtifact(dst, p.Extensions, ""), '}')
}

// NewStream implements translate.Server.
func (s server) NewStream(id jsonrpc.ID, c *translate.Call, t *task.Task) translate.Encoder {
	session := t.SessionID
	if e := message.Stream(t, c, s.confirm, func(dst []byte, p *task.Product) []byte {
		return appendAnswer(dst, id, p, session)
	}); e != nil {
		return e
	}
	return &encoder{server: s, id: id, history: c.History, task: task.Task{ID: t.ID, SessionID: t.SessionID}}
}

// encoder writes Tasks, TaskStatusUpdateEvents and TaskArtifactUpdateEvents. Every state of an agent waiting for the
// caller, or finished, ends the stream. Without confirm, awaiting completion is left out, since completed follows.
type encoder struct {
	server
	id      jsonrpc.ID
	history int
	task    task.Task    // its ids only
	said    *task.Status // the one left out
}

// Snapshot implements translate.Encoder.
func (e *encoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	dst = e.appendTask(jsonrpc.BeginResult(dst, e.id), t, e.history)
	return translate.Frame{Data: jsonrpc.End(dst), End: ends(&t.Status)}
}

// Event implements translate.Encoder.
func (e *encoder) Event(dst []byte, ev *task.Event) translate.Frame {
	switch {
	case ev.Task != nil:
		return e.Snapshot(dst, ev.Task)
	case ev.Status != nil:
		st, said := ev.Status, ev.Status
		switch {
		case st.State == task.AwaitingCompletion && !e.confirm:
			e.said = said
			return translate.Frame{}
		case st.State == task.Completed && len(st.DataItems) == 0 && e.said != nil:
			said = e.said
		}
		return e.status(dst, st, said)
	case ev.Chunk != nil:
		return e.chunk(dst, ev.Chunk)
	case ev.Message != nil && ev.Message.SenderRole == task.Partner:
		st := status.Of(ev.Message, task.Working)
		return e.status(dst, st, st)
	}
	return translate.Frame{}
}

// begin appends an event up to its own members.
func (e *encoder) begin(dst []byte, kind string) []byte {
	dst = append(jsonrpc.BeginResult(dst, e.id), `{"kind":"`...)
	dst = append(append(dst, kind...), `","taskId":`...)
	dst = task.AppendString(dst, e.task.ID)
	dst = append(dst, `,"contextId":`...)
	return task.AppendString(dst, e.task.SessionID)
}

// ends reports whether the stream ends with a status: an agent waiting for authorization resumes by itself.
func ends(st *task.Status) bool { return st.State.Settled() && !status.AwaitsAuth(st) }

func (e *encoder) status(dst []byte, st, said *task.Status) translate.Frame {
	end := ends(st)
	dst = append(e.begin(dst, "status-update"), `,"status":`...)
	dst = e.appendStatus(dst, &e.task, st, said)
	dst = strconv.AppendBool(append(dst, `,"final":`...), end)
	dst = status.AppendExtensions(dst, said.TaskExtensions, st.State, status.Name(st.State, e.confirm))
	return translate.Frame{Data: jsonrpc.End(append(dst, '}')), End: end}
}

func (e *encoder) chunk(dst []byte, c *task.Chunk) translate.Frame {
	dst = append(e.begin(dst, "artifact-update"), `,"artifact":`...)
	dst = appendArtifact(dst, &c.Product)
	dst = strconv.AppendBool(append(dst, `,"append":`...), c.Append)
	dst = strconv.AppendBool(append(dst, `,"lastChunk":`...), c.Last)
	dst = extension.AppendResult(dst, c.Extensions, task.None)
	return translate.Frame{Data: jsonrpc.End(append(dst, '}'))}
}
