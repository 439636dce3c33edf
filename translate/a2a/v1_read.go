// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"bytes"
	"hash/crc32"
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Reply reads a Task or a Message. It copies body once; the report's texts are views of that copy.
func (c v1Client) Reply(body []byte, known []task.Product) (agent.Report, error) {
	res, err := c.parse(body)
	if err != nil {
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, v1Failed(res.Failure)
	}
	if kind, _ := v1Shape(res.Result); kind == v1Nothing {
		return agent.Report{}, refuse("the agent's answer is neither a Task nor a Message")
	}
	r := v1Reader{known: known}
	return r.report(res.Result)
}

// Push reads a StreamResponse, with or without an envelope around it: A2A 1.0 sends none, but agents that told 0.3
// of their tasks may. Notifications come at least once, and in any order.
func (v1Client) Push(body []byte, known []task.Product) (agent.Report, error) {
	v, err := pushed(body)
	if err != nil {
		return agent.Report{}, err
	}
	r := v1Reader{known: known}
	return r.report(v)
}

func (c v1Client) NewStream(known []task.Product) translate.Stream {
	return &v1Events{client: c, reader: v1Reader{known: known}}
}

// v1Events reads the StreamResponses of one stream. They have no names, but some agents name those that are
// errors.
type v1Events struct {
	client v1Client
	reader v1Reader
}

func (s *v1Events) Event(event string, data []byte) (agent.Report, error) {
	if len(data) == 0 {
		return agent.Report{}, nil
	}
	res, err := s.client.parse(data)
	if err != nil {
		switch event {
		case "", "message", "error":
		default: // a ping, or whatever else the agent's server sends for itself
			err = nil
		}
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, v1Failed(res.Failure)
	}
	return s.reader.report(res.Result)
}

// parse reads what an agent answers, whatever the HTTP status. It copies body; the response is a view of the
// copy.
func (c v1Client) parse(body []byte) (jsonrpc.Response, error) {
	if !c.rest {
		return response(bytes.Clone(body))
	}
	v, bad := jsonrpc.ParseValue(bytes.Clone(body), jsonrpc.Limits{Bytes: math.MaxInt})
	switch {
	case bad != nil && bad.Code == jsonrpc.InvalidRequest: // a key that appears twice, or a depth
		return jsonrpc.Response{}, refuse("the agent's answer is refused: %s", bad.Detail)
	case bad != nil:
		return jsonrpc.Response{}, refuse("the agent's answer is not one JSON value")
	}
	return jsonrpc.Response{Result: v, Failure: v1Failure(v)}, nil
}

// v1Failure returns the error that a body without an envelope is, in the form of the one that has it: the
// code is a status of HTTP then. It is nil where the body is no error.
func v1Failure(body gjson.Result) *jsonrpc.Failure {
	var inner, code, message, details gjson.Result
	read := func(key string, v gjson.Result) {
		switch key {
		case "error":
			inner = v
		case "code":
			code = v
		case "message":
			message = v
		case "details", "data":
			details = v
		}
	}
	members(body, read)
	if inner.Exists() {
		code, message, details = gjson.Result{}, gjson.Result{}, gjson.Result{}
		members(inner, read)
	} else if code.Type != gjson.Number || message.Type != gjson.String { // some leave the member error out
		return nil
	}
	f := &jsonrpc.Failure{Message: message.Str, Data: details}
	f.Code, _ = jsonrpc.Int(code)
	return f
}

// v1Kind says which of the members of a StreamResponse a value is.
type v1Kind uint8

const (
	v1Nothing v1Kind = iota
	v1Task
	v1Message
	v1StatusUpdate
	v1ArtifactUpdate
)

// v1Shape returns what an answer is about, and that. Sent messages and streams wrap it; GetTask and CancelTask
// do not, and so it is told by its members as well, whatever was asked for.
func v1Shape(result gjson.Result) (kind v1Kind, v gjson.Result) {
	var id, status, artifact, message bool
	members(result, func(key string, m gjson.Result) {
		switch key {
		case "task":
			if m.IsObject() {
				kind, v = v1Task, m
			}
		case "message":
			if m.IsObject() {
				kind, v = v1Message, m
			}
		case "statusUpdate":
			if m.IsObject() {
				kind, v = v1StatusUpdate, m
			}
		case "artifactUpdate":
			if m.IsObject() {
				kind, v = v1ArtifactUpdate, m
			}
		case "id":
			id = true
		case "status":
			status = true
		case "artifact":
			artifact = true
		case "messageId":
			message = true
		}
	})
	switch {
	case kind != v1Nothing:
		return kind, v
	case artifact:
		return v1ArtifactUpdate, result
	case status && id:
		return v1Task, result
	case status:
		return v1StatusUpdate, result
	case message:
		return v1Message, result
	}
	return v1Nothing, result
}

// v1Members are the members of the four, by the names that they share.
type v1Members struct {
	id, taskID, contextID, status, artifact, artifacts, append, last, messageID, parts gjson.Result

	rest wire.Extensions
}

func v1MembersOf(object gjson.Result) (m v1Members) {
	members(object, func(key string, v gjson.Result) {
		switch key {
		case "id":
			m.id = v
		case "taskId":
			m.taskID = v
		case "contextId":
			m.contextID = v
		case "status":
			m.status = v
		case "artifact":
			m.artifact = v
		case "artifacts":
			m.artifacts = v
		case "append":
			m.append = v
		case "lastChunk":
			m.last = v
		case "messageId":
			m.messageID = v
		case "parts":
			m.parts = v
		case "kind", "type", "role", "history", "final": // of no use here, or of other versions
		default:
			addResult(&m.rest, key, v)
		}
	})
	return m
}

// v1Reader makes reports of what an agent says in one turn.
type v1Reader struct {
	known []task.Product  // when the turn began
	seen  map[string]bool // the artifacts of the turn by id; true for those that were added to
	named bool            // it has been told what the agent calls the task
}

// report reads an answer, an event of a stream or a notification. What it cannot recognise means nothing.
func (r *v1Reader) report(result gjson.Result) (agent.Report, error) {
	var rep agent.Report
	if !result.IsObject() {
		return rep, refuse("the agent's answer is no object")
	}
	kind, v := v1Shape(result)
	m := v1MembersOf(v)
	switch kind {
	case v1Task:
		if !m.status.Exists() {
			return rep, refuse("the agent's answer is a Task that has no status")
		}
		if err := r.whole(&rep, m.artifacts); err != nil {
			return agent.Report{}, err
		}
		if err := v1StatusForm.read(&rep, m.status); err != nil {
			return agent.Report{}, err
		}
		rep.Revision, rep.RevisionDated = legacyStamp(&rep, m.status, m.artifacts)
		rep.TaskExtensions = m.rest.JSON(family, resultWords)
		r.name(&rep, m.id, m.contextID)
	case v1Message:
		return r.message(&m, v)
	case v1StatusUpdate:
		if m.status.Exists() {
			if err := v1StatusForm.read(&rep, m.status); err != nil {
				return agent.Report{}, err
			}
			rep.Revision, rep.RevisionDated = legacyStamp(&rep, m.status, gjson.Result{})
			rep.TaskExtensions = m.rest.JSON(family, resultWords)
		}
		if !r.named { // a stream is about one task, so what comes later has nothing to add, and may be wrong
			r.name(&rep, m.taskID, m.contextID)
		}
	case v1ArtifactUpdate:
		if err := r.chunk(&rep, &m); err != nil {
			return agent.Report{}, err
		}
		if !r.named {
			r.name(&rep, m.taskID, m.contextID)
		}
	}
	return rep, nil
}

func (r *v1Reader) name(rep *agent.Report, id, session gjson.Result) {
	if id.Str != "" {
		rep.Ref, r.named = &agent.Ref{Task: id.Str, Session: session.Str}, true
	}
}

// message reads a Message that answers a turn without a task. The agent has finished with it, and has nothing that
// could be asked for or canceled; but it may know the conversation again.
func (r *v1Reader) message(m *v1Members, v gjson.Result) (agent.Report, error) {
	items, err := v1Items(m.parts, false)
	if err != nil {
		return agent.Report{}, err
	}
	id := m.messageID.Str
	if id == "" {
		id = "message"
	}
	r.named = true
	return agent.Report{
		State: task.AwaitingCompletion, NativeState: "message",
		Full: true, Products: []task.Product{{ID: id, DataItems: items, Extensions: m.rest.JSON(family, artifactWords)}},
		Ref:      &agent.Ref{Task: m.taskID.Str, Session: m.contextID.Str},
		Revision: "message " + strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(v.Raw))), 16),
	}, nil
}

// v1StatusForm is that of 1.0. A status that names no state says that the agent does not know.
var v1StatusForm = statusForm{
	version: "1.0", state: v1State, authRequired: "TASK_STATE_AUTH_REQUIRED",
	parts: func(list gjson.Result) ([]task.DataItem, error) { return v1Items(list, false) },
}

// v1State returns the AIP state that a state of A2A 1.0 means. The schema before 1.0 wrote CANCELLED.
func v1State(word string) (s task.State, ok bool) {
	switch word {
	case "", "TASK_STATE_UNSPECIFIED":
		return task.None, true
	case "TASK_STATE_SUBMITTED":
		return task.Accepted, true
	case "TASK_STATE_WORKING":
		return task.Working, true
	case "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED":
		return task.AwaitingInput, true
	case "TASK_STATE_COMPLETED":
		return task.AwaitingCompletion, true
	case "TASK_STATE_FAILED":
		return task.Failed, true
	case "TASK_STATE_CANCELED", "TASK_STATE_CANCELLED":
		return task.Canceled, true
	case "TASK_STATE_REJECTED":
		return task.Rejected, true
	}
	return task.None, false
}

// AppendDescribe implements translate.Describer.
func (c v1Client) AppendDescribe(dst []byte) []byte {
	if c.rest {
		return dst
	}
	return c.end(append(c.begin(dst, describeID, v1ExtendedCard), '{', '}'))
}

// Description implements translate.Describer.
func (c v1Client) Description(body []byte) ([]byte, error) {
	if !c.rest {
		return description(body, func(f *jsonrpc.Failure) error { return v1Failed(f) })
	}
	if !gjson.ValidBytes(body) {
		return nil, refuse("the agent's answer is no card")
	}
	if f := v1Failure(gjson.ParseBytes(body)); f != nil {
		return nil, v1Failed(f)
	}
	return body, nil
}
