// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"strconv"

	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// NewStream implements translate.Server.
func (s Server) NewStream(_ jsonrpc.ID, _ *translate.Call, t *task.Task) translate.Encoder {
	return &encoder{Server: s, taskID: t.ID}
}

// encoder writes the events of a task, one notification for each event of the log. Each has the number of the event for
// its seq, by which a client recognizes an event that it has had. Without confirm, awaiting completion is left out,
// since completed follows.
type encoder struct {
	Server
	taskID string
	said   *task.Status // the status left out
}

// Snapshot implements translate.Encoder.
func (e *encoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	if e.FromNow {
		return translate.Frame{}
	}
	return e.whole(dst, t, 0)
}

// whole appends a task.updated with the whole task.
func (e *encoder) whole(dst []byte, t *task.Task, seq uint64) translate.Frame {
	name := nameOf(t.Status.State, e.Confirm)
	begin := len(dst)
	dst = e.appendTask(BeginEvent(dst, EventPrefix+name), t, false)
	if len(dst)-begin > MaxFrame-maxSeq { // the client gets the task, and is answered with the sizes
		dst = append(e.appendHead(append(BeginEvent(dst[:begin], EventPrefix+name), '{'), t), '}')
	}
	if seq > 0 {
		dst = appendSeq(dst[:len(dst)-1], seq)
		dst = append(dst, '}')
	}
	return translate.Frame{Name: name, Data: jsonrpc.End(dst)}
}

// maxSeq is the most bytes of the member seq and the end of a frame.
const maxSeq = 64

// Event implements translate.Encoder.
func (e *encoder) Event(dst []byte, ev *task.Event) translate.Frame {
	switch {
	case ev.Task != nil:
		return e.whole(dst, ev.Task, ev.Seq)
	case ev.Status != nil:
		st, said := ev.Status, ev.Status
		switch {
		case st.State == task.AwaitingCompletion && !e.Confirm:
			e.said = said
			return translate.Frame{}
		case st.State == task.Completed && len(st.DataItems) == 0 && e.said != nil:
			said = &task.Status{State: st.State, DataItems: e.said.DataItems}
		}
		return e.status(dst, ev, said)
	case ev.Chunk != nil:
		return e.chunk(dst, ev)
	case ev.Message != nil && ev.Message.SenderRole == task.Partner:
		m := ev.Message
		return e.status(dst, ev, &task.Status{State: task.Working, ChangedAt: m.SentAt, DataItems: m.DataItems})
	}
	return translate.Frame{}
}

// nameOf returns the name of the event of a state.
func nameOf(s task.State, confirm bool) string {
	switch StateName(s, confirm) {
	case "completed":
		return Completed
	case "failed":
		return Failed
	}
	return Updated
}

// BeginEvent appends an event up to its params. The caller appends them, then calls jsonrpc.End.
func BeginEvent(dst []byte, method string) []byte {
	dst = task.AppendString(append(dst, `{"jsonrpc":"2.0","method":`...), method)
	return append(dst, `,"params":`...)
}

func appendSeq(dst []byte, seq uint64) []byte {
	return strconv.AppendUint(append(dst, `,"seq":`...), seq, 10)
}

// status appends an event of a state; said has the agent's words.
func (e *encoder) status(dst []byte, ev *task.Event, said *task.Status) translate.Frame {
	state, at := said.State, said.ChangedAt
	if ev.Status != nil {
		at = ev.Status.ChangedAt
	}
	name := nameOf(state, e.Confirm)
	begin := len(dst)
	dst = e.begin(dst, name)
	dst = task.AppendString(append(dst, `,"status":`...), StateName(state, e.Confirm))
	dst = appendTime(dst, `,"updated_at":`, at)
	if ev.Offer != nil { // the others are withdrawn
		dst = wire.AppendStrings(dst, `,"artifact_ids":`, ev.Offer)
	}
	bare := len(dst)
	if dst = appendSaid(dst, said); len(dst)-begin > MaxFrame-maxSeq {
		dst = dst[:bare]
	}
	dst = append(appendSeq(dst, ev.Seq), '}')
	return translate.Frame{Name: name, Data: jsonrpc.End(dst)}
}

// begin appends an event up to its own members.
func (e *encoder) begin(dst []byte, name string) []byte {
	dst = BeginEvent(dst, EventPrefix+name)
	return task.AppendString(append(dst, `{"task_id":`...), e.taskID)
}

// chunk appends an event of an artifact or a piece of one. An artifact too large for a frame is named with its size.
func (e *encoder) chunk(dst []byte, ev *task.Event) translate.Frame {
	c := ev.Chunk
	begin := len(dst)
	dst = AppendArtifact(append(e.begin(dst, Artifact), `,"artifact":`...), &c.Product)
	if len(dst)-begin > MaxFrame-maxSeq-len(`,"append":false,"last_chunk":false`) {
		dst = append(e.begin(dst[:begin], Artifact), `,"artifact":{"id":`...)
		dst = task.AppendString(dst, c.Product.ID)
		dst = strconv.AppendInt(append(dst, `,"size":`...), task.ProductsSize([]task.Product{c.Product}), 10)
		dst = strconv.AppendInt(append(dst, `,"error":{"code":`...), codes.TaskTooLarge, 10)
		dst = append(dst, `,"message":"Task output too large"}}`...)
	}
	dst = strconv.AppendBool(append(dst, `,"append":`...), c.Append)
	dst = strconv.AppendBool(append(dst, `,"last_chunk":`...), c.Last)
	dst = append(appendSeq(dst, ev.Seq), '}')
	return translate.Frame{Name: Artifact, Data: jsonrpc.End(dst)}
}
