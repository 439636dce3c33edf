// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// AppendTask implements translate.Server: a TaskResult.
func (s *serverV2) AppendTask(dst []byte, id jsonrpc.ID, _ *translate.Call, t *task.Task) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	dst = s.appendResult(dst, moment(t), t)
	return jsonrpc.End(dst)
}

// AppendNotification implements translate.Server: a TaskResult.
func (s *serverV2) AppendNotification(dst []byte, t *task.Task) []byte {
	return s.appendResult(dst, moment(t), t)
}

// moment is the id of a Message with a task: it names the task, its state and the time of entering it.
func moment(t *task.Task) string {
	return t.ID + "-" + string(t.Status.State) + "-" + strconv.FormatInt(t.Status.ChangedAt.UnixMilli(), 10)
}

// begin appends the members of every Message of the Partner; others follow. A Message sent again has the same id. A
// codec has no clock: at is the time of the event, as far as it is known.
func (s *serverV2) begin(dst []byte, kind, id string, at time.Time, t *task.Task) []byte {
	if at.IsZero() {
		at = epoch
	}
	dst = append(dst, `{"type":`...)
	dst = task.AppendString(dst, kind)
	dst = append(dst, `,"id":`...)
	dst = task.AppendString(dst, id)
	dst = append(dst, `,"sentAt":`...)
	dst = task.AppendTime(dst, at)
	dst = append(dst, `,"senderRole":"partner","senderId":`...)
	dst = task.AppendString(dst, s.sender())
	dst = append(dst, `,"taskId":`...)
	dst = task.AppendString(dst, t.ID)
	if t.GroupID != "" {
		dst = append(dst, `,"groupId":`...)
		dst = task.AppendString(dst, t.GroupID)
	}
	dst = append(dst, `,"sessionId":`...)
	return task.AppendString(dst, t.SessionID)
}

// appendResult appends a TaskResult, with products always present and histories if there are any.
func (s *serverV2) appendResult(dst []byte, id string, t *task.Task) []byte {
	dst = s.begin(dst, typeResult, id, t.Status.ChangedAt, t)
	dst = append(dst, `,"status":`...)
	dst = form.AppendStatus(dst, &t.Status)
	dst = form.AppendProducts(append(dst, `,"products":`...), t.Products)
	open := `,"commandHistory":[`
	for i := range t.MessageHistory {
		if t.MessageHistory[i].Command == task.NoCommand {
			continue // the Partner's own messages are no commands
		}
		dst = append(dst, open...)
		dst = appendCommand(dst, &t.MessageHistory[i])
		open = `,`
	}
	if open == `,` {
		dst = append(dst, ']')
	}
	if len(t.StatusHistory) > 0 {
		dst = form.AppendStatuses(append(dst, `,"statusHistory":`...), t.StatusHistory)
	}
	return append(appendExtensions(dst, t.Extensions, task.TaskObject), '}')
}

// NewStream implements translate.Server.
func (s *serverV2) NewStream(id jsonrpc.ID, _ *translate.Call, t *task.Task) translate.Encoder {
	return &streamV2{server: s, id: id, task: t, at: t.Status.ChangedAt}
}

// streamV2 writes StreamResponses. An event's id is made of its number.
type streamV2 struct {
	server *serverV2
	id     jsonrpc.ID
	task   *task.Task
	at     time.Time // of the last state sent: a chunk has no time of its own
}

// Snapshot implements translate.Encoder. AIP's callers resume by event numbers, so no call asks for one.
func (s *streamV2) Snapshot(dst []byte, t *task.Task) translate.Frame {
	return s.Event(dst, &task.Event{Task: t})
}

// Result implements translate.ResultEncoder: the reference's Leaders wait for a TaskResult, and read no other event.
func (s *streamV2) Result(dst []byte, seq uint64, t *task.Task) translate.Frame {
	return s.Event(dst, &task.Event{Seq: seq, Task: t})
}

// Event implements translate.Encoder. Version 2 has no event for a mere Message.
func (s *streamV2) Event(dst []byte, ev *task.Event) translate.Frame {
	number := "-" + strconv.FormatUint(ev.Seq, 10)
	switch {
	case ev.Task != nil:
		s.at = ev.Task.Status.ChangedAt
		dst = s.server.appendResult(beginEvent(dst, s.id, ev.Seq), ev.Task.ID+number, ev.Task)
	case ev.Status != nil:
		s.at = ev.Status.ChangedAt
		dst = s.server.begin(beginEvent(dst, s.id, ev.Seq), typeStatus, s.task.ID+number, s.at, s.task)
		dst = append(dst, `,"status":`...)
		dst = form.AppendStatus(dst, ev.Status)
		dst = append(appendExtensions(dst, ev.Status.TaskExtensions, task.EventObject), '}')
	case ev.Chunk != nil:
		dst = s.server.begin(beginEvent(dst, s.id, ev.Seq), typeChunk, s.task.ID+number, s.at, s.task)
		at := len(dst)
		dst = form.AppendChunk(dst, ev.Chunk)
		dst[at] = ',' // its members follow those of begin
	default:
		return translate.Frame{}
	}
	return translate.Frame{Data: jsonrpc.End(append(dst, '}'))}
}
