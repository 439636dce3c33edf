// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// AppendTask implements translate.Server: an RpcResponse (§6.1.2).
func (server) AppendTask(dst []byte, id jsonrpc.ID, _ *translate.Call, t *task.Task) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	dst = form.AppendTask(dst, t)
	return jsonrpc.End(dst)
}

// NewStream implements translate.Server.
func (server) NewStream(id jsonrpc.ID, _ *translate.Call, t *task.Task) translate.Encoder {
	return &stream{id: id, task: t}
}

// stream writes StreamResponses (§6.2.2).
type stream struct {
	id    jsonrpc.ID
	task  *task.Task
	fixed fixedParts
}

// fixedParts are the common parts of the frames of a stream: up to the number of the event, from there to the object of
// a status or a piece, and behind that object. They are made for the first frame.
type fixedParts struct{ begin, status, chunk, end []byte }

func (s *stream) fixedParts() *fixedParts {
	f := &s.fixed
	if f.begin != nil {
		return f
	}
	b := append(jsonrpc.BeginResult(nil, s.id), `{"eventSeq":`...)
	toStatus := len(b)
	b = beginStatus(append(b, `,"eventData":`...), s.task)
	toChunk := len(b)
	b = append(beginChunk(append(b, `,"eventData":`...), s.task), ',')
	toEnd := len(b)
	b = bytes.Clone(jsonrpc.End(append(appendSession(b, s.task), '}')))
	f.begin, f.status = b[:toStatus:toStatus], b[toStatus:toChunk:toChunk]
	f.chunk, f.end = b[toChunk:toEnd:toEnd], b[toEnd:]
	return f
}

// Snapshot implements translate.Encoder. AIP's callers resume by event numbers, so no call asks for one.
func (s *stream) Snapshot(dst []byte, t *task.Task) translate.Frame {
	return translate.Frame{Data: s.append(dst, &task.Event{Task: t})}
}

// Event implements translate.Encoder.
func (s *stream) Event(dst []byte, ev *task.Event) translate.Frame {
	return translate.Frame{Data: s.append(dst, ev)}
}

// append appends the StreamResponse of an event.
func (s *stream) append(dst []byte, ev *task.Event) []byte {
	t := s.task
	dst = beginEvent(dst, s.id, ev.Seq)
	switch {
	case ev.Task != nil:
		dst = form.AppendTask(dst, ev.Task)
	case ev.Message != nil:
		dst = form.AppendMessage(dst, ev.Message)
	case ev.Status != nil:
		dst = form.AppendStatus(beginStatus(dst, t), ev.Status)
		dst = appendSession(appendExtensions(dst, ev.Status.TaskExtensions, task.EventObject), t)
	case ev.Chunk != nil:
		dst = beginChunk(dst, t)
		at := len(dst)
		dst = form.AppendChunk(dst, ev.Chunk)
		dst[at] = ',' // its members follow those of beginChunk
		dst = appendSession(dst[:len(dst)-1], t)
	default: // no event is like this, but a frame must be JSON
		dst = append(dst, "null"...)
	}
	dst = append(dst, '}')
	return jsonrpc.End(dst)
}

// Record implements translate.RecordEncoder: the log has AIP's own form, so a record is sent without being decoded,
// unless it has extensions of AIP's. They must be put in their place.
func (s *stream) Record(dst []byte, seq uint64, record []byte) translate.Frame {
	if !plainRecord(record) || isSnapshot(record) {
		if ev, err := task.DecodeEvent(record); err == nil {
			ev.Seq = seq
			return s.Event(dst, &ev)
		}
	}
	kind, value, _ := task.SplitEvent(record)
	f := s.fixedParts()
	dst = strconv.AppendUint(append(dst, f.begin...), seq, 10)
	switch kind {
	case task.StatusEvent:
		dst = append(append(dst, f.status...), value...)
		return translate.Frame{Data: append(dst, f.end...)}
	case task.ChunkEvent:
		dst = append(append(dst, f.chunk...), value[1:len(value)-1]...)
		return translate.Frame{Data: append(dst, f.end...)}
	}
	dst = append(dst, `,"eventData":`...)
	switch kind {
	case task.TaskEvent, task.MessageEvent:
		dst = append(dst, value...)
	default:
		dst = append(dst, "null"...)
	}
	return translate.Frame{Data: jsonrpc.End(append(dst, '}'))}
}

func beginEvent(dst []byte, id jsonrpc.ID, seq uint64) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	dst = append(dst, `{"eventSeq":`...)
	dst = strconv.AppendUint(dst, seq, 10)
	return append(dst, `,"eventData":`...)
}

// beginStatus begins a TaskStatusUpdateEvent (§6.2.3), up to its status.
func beginStatus(dst []byte, t *task.Task) []byte {
	dst = append(dst, `{"type":"status-update","taskId":`...)
	dst = task.AppendString(dst, t.ID)
	return append(dst, `,"status":`...)
}

// beginChunk begins a ProductChunkEvent (§6.2.4), up to its other members.
func beginChunk(dst []byte, t *task.Task) []byte {
	dst = append(dst, `{"type":"product-chunk","taskId":`...)
	return task.AppendString(dst, t.ID)
}

func appendSession(dst []byte, t *task.Task) []byte {
	dst = append(dst, `,"sessionId":`...)
	dst = task.AppendString(dst, t.SessionID)
	return append(dst, '}')
}

// errorForm is AIP's form of a kind of error.
type errorForm struct {
	code      int
	message   string
	errorType string // in the data, if the code is not specific
}

// errorTable holds every kind. Codes and messages are those of §5.2; −32050 is the gateway's own, from the range
// left to servers by JSON-RPC.
var errorTable = [...]errorForm{
	task.Internal:                 {-32603, "Internal server error", ""},
	task.ParseError:               {-32700, "Invalid JSON payload", ""},
	task.InvalidRequest:           {-32600, "Invalid JSON-RPC Request", ""},
	task.MethodNotFound:           {-32601, "Method not found", ""},
	task.InvalidParams:            {-32602, "Invalid method parameters", ""},
	task.TaskNotFound:             {-32001, "Task not found", ""},
	task.TaskNotCancelable:        {-32002, "Task cannot be canceled", ""},
	task.NotificationNotSupported: {-32003, "Notification is not supported", ""},
	task.UnsupportedOperation:     {-32004, "This operation is not supported", ""},
	task.ContentTypeNotSupported:  {-32005, "Incompatible content types", ""},
	task.InvalidAgentResponse:     {-32006, "Invalid agent response type", ""},
	task.GroupNotSupported:        {-32007, "Group communication is not supported", ""},
	task.AuthenticationRequired:   {-32008, "Authentication required", ""},
	task.AuthorizationFailed:      {-32009, "Authorization failed", ""},
	task.AccessTokenInvalid:       {-32010, "Invalid access token", ""},
	task.LimitExceeded:            {-32050, "Limit exceeded", ""},
	task.AgentUnavailable:         {-32603, "Internal server error", "AGENT_UNAVAILABLE"},
	task.AgentTimeout:             {-32603, "Internal server error", "AGENT_TIMEOUT"},
	task.StoreUnavailable:         {-32603, "Internal server error", ""},
	task.InvitationRejected:       {-32009, "Authorization failed", "INVITATION_REJECTED"},
	task.ConnectionFailed:         {-32603, "Internal error", "CONNECTION_FAILED"}, // as §7.3 shows it
}

// AppendError implements translate.Server: an error response (§5.2).
func (server) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := wire.ErrorOf(err)
	return appendError(dst, id, e, &errorTable[e.Kind])
}

// IsInvitation implements translate.GroupServer.
func (server) IsInvitation(method string) bool { return method == methodGroup }

// AppendInvitationError implements translate.GroupServer. Its data always has an errorType (§7.3): the reference code
// of v02.01 cannot read an error without one.
func (server) AppendInvitationError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := wire.ErrorOf(err)
	return appendInvitationError(dst, id, e, errorTable[e.Kind])
}

func appendInvitationError(dst []byte, id jsonrpc.ID, e *task.Error, w errorForm) []byte {
	w = w.typed(e.Kind)
	return appendError(dst, id, e, &w)
}

// typed returns the form with a type: the name of the kind if the form has none.
func (w errorForm) typed(k task.Kind) errorForm {
	if w.errorType == "" {
		w.errorType = strings.ToUpper(strings.ReplaceAll(k.String(), "-", "_"))
	}
	return w
}

func appendError(dst []byte, id jsonrpc.ID, e *task.Error, w *errorForm) []byte {
	data := wire.ErrorData(e, w.errorType)
	if e.Kind == task.ConnectionFailed {
		data = connectionData(e, w.errorType)
	}
	return jsonrpc.AppendError(dst, id, w.code, w.message, data)
}

// connectionData returns the data of an error of a message broker. Its details are an object (§7.3).
func connectionData(e *task.Error, errorType string) []byte {
	dst := task.AppendString([]byte(`{"errorType":`), errorType)
	dst = append(dst, `,"details":{`...)
	for _, key := range []string{"host", "port"} {
		if value, err := json.Marshal(e.Data[key]); err == nil && e.Data[key] != nil {
			dst = append(task.AppendString(dst, key), ':')
			dst = append(append(dst, value...), ',')
		}
	}
	return append(task.AppendString(append(dst, `"reason":`...), e.Detail), `}}`...)
}
