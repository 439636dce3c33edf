// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"encoding/json"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// appendTask appends a Task with the last messages of its history.
func (s v03Server) appendTask(dst []byte, t *task.Task, history int) []byte {
	dst = append(dst, `{"kind":"task","id":`...)
	dst = task.AppendString(dst, t.ID)
	dst = append(dst, `,"contextId":`...)
	dst = task.AppendString(dst, t.SessionID)
	dst = append(dst, `,"status":`...)
	dst = s.appendStatus(dst, t, &t.Status, legacySaid(t))
	for i := range t.Products {
		dst = append(dst, legacyNext(i, `,"artifacts":[`)...)
		dst = appendV03Artifact(dst, &t.Products[i])
	}
	dst = legacyClosed(dst, len(t.Products))
	if shown := v1History(t.MessageHistory, history); len(shown) > 0 {
		sep := `,"history":[`
		for i := range shown {
			if len(shown[i].DataItems) > 0 {
				m := inHistory(&shown[i])
				dst = append(dst, sep...)
				dst = appendV03Message(dst, t, m.ID, legacyRole(&m), m.SentAt, m.DataItems, m.Extensions)
				sep = ","
			}
		}
		dst = append(dst, ']')
	}
	dst = appendLegacyMetadata(dst, t.Extensions, t.Status.State, legacyWord(t.Status.State, s.confirm))
	return append(dst, '}')
}

// appendStatus appends a TaskStatus of t.
func (s v03Server) appendStatus(dst []byte, t *task.Task, st, said *task.Status) []byte {
	dst = append(dst, `{"state":"`...)
	dst = append(append(dst, legacyWord(st.State, s.confirm)...), '"')
	if legacySpeaks(said) {
		dst = append(dst, `,"message":`...)
		dst = appendV03Message(dst, t, "", "agent", st.ChangedAt, said.DataItems, said.Extensions)
	}
	return append(appendStatusRest(appendLegacyTime(dst, st), said.Extensions), '}')
}

// appendV03Message appends a Message that belongs to t. One without an id gets one that is the same wherever the message
// is told, and no other's: it is made of the task's, the time and the content.
func appendV03Message(dst []byte, t *task.Task, id, role string, at time.Time, items []task.DataItem, extra json.RawMessage) []byte {
	dst = append(dst, `{"kind":"message","role":"`...)
	dst = append(append(dst, role...), `","parts":`...)
	begin := len(dst)
	dst = appendParts(dst, "kind", items)
	if id == "" {
		id = t.ID + "-" + strconv.FormatUint(uint64(crc32.ChecksumIEEE(dst[begin:])), 36)
		if !at.IsZero() {
			id += "-" + strconv.FormatInt(at.UnixMilli(), 36)
		}
	}
	dst = append(dst, `,"messageId":`...)
	dst = task.AppendString(dst, id)
	dst = append(dst, `,"taskId":`...)
	dst = task.AppendString(dst, t.ID)
	dst = append(dst, `,"contextId":`...)
	return append(appendMessageRest(task.AppendString(dst, t.SessionID), extra), '}')
}

// appendV03Artifact appends an artifact, or a piece of one.
func appendV03Artifact(dst []byte, p *task.Product) []byte {
	dst = append(dst, `{"artifactId":`...)
	dst = task.AppendString(dst, p.ID)
	dst = legacyOptional(dst, `,"name":`, p.Name)
	dst = legacyOptional(dst, `,"description":`, p.Description)
	dst = appendParts(append(dst, `,"parts":`...), "kind", p.DataItems)
	return append(appendArtifactRest(dst, p.Extensions, ""), '}')
}

// NewStream implements translate.Server.
func (s v03Server) NewStream(id jsonrpc.ID, c *translate.Call, t *task.Task) translate.Encoder {
	return &v03Encoder{v03Server: s, id: id, history: c.History, task: task.Task{ID: t.ID, SessionID: t.SessionID}}
}

// v03Encoder writes Tasks, TaskStatusUpdateEvents and TaskArtifactUpdateEvents. Every state that rests ends its
// stream, but where completion needs no word of the caller, that a task awaits it is not told.
type v03Encoder struct {
	v03Server
	id      jsonrpc.ID
	history int
	task    task.Task    // its names only
	said    *task.Status // the one that was not told
}

// Snapshot implements translate.Encoder.
func (e *v03Encoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	dst = e.appendTask(jsonrpc.BeginResult(dst, e.id), t, e.history)
	return translate.Frame{Data: jsonrpc.End(dst), End: t.Status.State.Settled()}
}

// Event implements translate.Encoder.
func (e *v03Encoder) Event(dst []byte, ev *task.Event) translate.Frame {
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
		st := &task.Status{State: task.Working, ChangedAt: ev.Message.SentAt, DataItems: ev.Message.DataItems, Extensions: ev.Message.Extensions}
		return e.status(dst, st, st)
	}
	return translate.Frame{}
}

// begin appends an event up to its own members.
func (e *v03Encoder) begin(dst []byte, kind string) []byte {
	dst = append(jsonrpc.BeginResult(dst, e.id), `{"kind":"`...)
	dst = append(append(dst, kind...), `","taskId":`...)
	dst = task.AppendString(dst, e.task.ID)
	dst = append(dst, `,"contextId":`...)
	return task.AppendString(dst, e.task.SessionID)
}

func (e *v03Encoder) status(dst []byte, st, said *task.Status) translate.Frame {
	end := st.State.Settled()
	dst = append(e.begin(dst, "status-update"), `,"status":`...)
	dst = e.appendStatus(dst, &e.task, st, said)
	dst = strconv.AppendBool(append(dst, `,"final":`...), end)
	dst = appendLegacyMetadata(dst, said.TaskExtensions, st.State, legacyWord(st.State, e.confirm))
	return translate.Frame{Data: jsonrpc.End(append(dst, '}')), End: end}
}

func (e *v03Encoder) chunk(dst []byte, c *task.Chunk) translate.Frame {
	dst = append(e.begin(dst, "artifact-update"), `,"artifact":`...)
	dst = appendV03Artifact(dst, &c.Product)
	dst = strconv.AppendBool(append(dst, `,"append":`...), c.Append)
	dst = strconv.AppendBool(append(dst, `,"lastChunk":`...), c.Last)
	dst = appendResultRest(dst, c.Extensions, task.None)
	return translate.Frame{Data: jsonrpc.End(append(dst, '}'))}
}
