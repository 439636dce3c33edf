// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/message"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/reply"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Reply reads a Task or a Message. It copies body once; the report's texts are views of that copy.
func (c client) Reply(body []byte, known []task.Product) (agent.Report, error) {
	res, err := c.parse(body)
	if err != nil {
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, failed(res.Failure)
	}
	if kind, _ := shapeOf(res.Result); kind == isNothing {
		return agent.Report{}, wire.Refuse("the agent's answer is neither a Task nor a Message")
	}
	r := reader{known: known, query: c.query, session: c.query.Session}
	return r.report(res.Result)
}

// Push reads a StreamResponse, with or without an envelope around it: A2A 1.0 has none, but agents also supporting 0.3
// may send one. Notifications come at least once, and in any order.
func (c client) Push(body []byte, known []task.Product) (agent.Report, error) {
	v, err := reply.Pushed(body)
	if err != nil {
		return agent.Report{}, err
	}
	v, _ = respell(v)
	r := reader{known: known, query: c.query, session: c.query.Session}
	return r.report(v)
}

func (c client) NewStream(known []task.Product) translate.Stream {
	s := c.newStream(known)
	return &s
}

func (c client) newStream(known []task.Product) stream {
	return stream{client: c, reader: reader{known: known, query: c.query, session: c.query.Session}}
}

// stream reads the StreamResponses of one stream. They have no names, but some agents name errors.
type stream struct {
	client  client
	reader  reader
	last    wire.LastPiece
	answers message.Answers
}

func (s *stream) Event(event string, data []byte) (agent.Report, error) {
	if len(data) == 0 {
		return agent.Report{}, nil
	}
	if reply.IsDone(data) {
		return agent.Report{Last: true}, nil
	}
	res, err := s.client.parse(data)
	if err != nil {
		switch event {
		case "", "message", "error":
			return agent.Report{}, wire.Informal(event, data, err)
		}
		return agent.Report{}, nil // such as a ping of the agent's server
	}
	if res.Failure != nil {
		return agent.Report{}, failed(res.Failure)
	}
	rep, err := s.reader.report(res.Result)
	if err != nil {
		return rep, wire.Informal(event, data, err)
	}
	if !s.client.rest { // it belongs to the stream, and so all others do, whatever their ids
		s.client.query, s.reader.query = translate.Query{}, translate.Query{}
	}
	rep.Follows = follows(&rep)
	s.answers.Add(&rep)
	return rep, nil
}

// follows returns what may follow a report in its stream. 1.0 does not say whether an asking agent goes on.
func follows(rep *agent.Report) agent.Following {
	switch {
	case !rep.EndsTurn():
		return agent.FollowsNothing
	case rep.Message || rep.State == task.AwaitingInput:
		return agent.FollowsMore
	}
	return agent.FollowsStragglers
}

// parse reads an agent's answer, whatever the HTTP status. It copies body: the response is a view of the copy.
func (c client) parse(body []byte) (jsonrpc.Response, error) {
	if !c.rest {
		res, err := wire.ResponseInExchange(body, &c.query)
		res.Result, _ = respell(res.Result)
		return res, err
	}
	v, err := wire.Value(body, "answer")
	if err != nil {
		return jsonrpc.Response{}, err
	}
	v, _ = respell(v)
	return jsonrpc.Response{Result: v, Failure: failureIn(v)}, nil
}

// failureIn returns the error in a body without an envelope as if it had one. Its code is a status of HTTP. It is nil
// if the body is no error.
func failureIn(body gjson.Result) *jsonrpc.Failure {
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
	wire.Members(body, read)
	if inner.Exists() {
		code, message, details = gjson.Result{}, gjson.Result{}, gjson.Result{}
		wire.Members(inner, read)
		if inner.Type == gjson.String {
			message = inner
		}
	} else if code.Type != gjson.Number || message.Type != gjson.String { // some leave the member error out
		return nil
	}
	f := &jsonrpc.Failure{Message: message.Str, Data: details}
	f.Code, _ = jsonrpc.Int(code)
	return f
}

// kind is the kind of a value: one of the members of a StreamResponse.
type kind uint8

const (
	isNothing kind = iota
	isTask
	isMessage
	isStatusUpdate
	isArtifactUpdate
)

// shapeOf returns the kind of an answer, and its members. Answers to messages and events of streams wrap it; those of
// GetTask and CancelTask do not. So it is recognized by its members, whatever was asked for.
func shapeOf(result gjson.Result) (kind kind, v gjson.Result) {
	var id, status, artifact, message bool
	wire.Members(result, func(key string, m gjson.Result) {
		switch key {
		case "task":
			if m.IsObject() {
				kind, v = isTask, m
			}
		case "message":
			if m.IsObject() {
				kind, v = isMessage, m
			}
		case "statusUpdate":
			if m.IsObject() {
				kind, v = isStatusUpdate, m
			}
		case "artifactUpdate":
			if m.IsObject() {
				kind, v = isArtifactUpdate, m
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
	case kind != isNothing:
		return kind, v
	case artifact:
		return isArtifactUpdate, result
	case status && id:
		return isTask, result
	case status:
		return isStatusUpdate, result
	case message:
		return isMessage, result
	}
	return isNothing, result
}

// members are those of all four, by their common names.
type members struct {
	id, taskID, contextID, status, artifact, artifacts, append, last, messageID, parts, history gjson.Result

	rest wire.Extensions
}

func membersOf(object gjson.Result) (m members) {
	wire.Members(object, func(key string, v gjson.Result) {
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
		case "history":
			m.history = v
		case "kind", "type", "role", "final": // not used, or of other versions
		default:
			extension.AddResult(&m.rest, key, v)
		}
	})
	return m
}

// reader makes reports of the answers in one turn.
type reader struct {
	query   translate.Query // none once an answer has proven to be about its task
	session string          // as the request names it
	known   []task.Product  // when the turn began
	seen    map[string]bool // the artifacts of the turn by id; true for an artifact sent in pieces
	named   bool            // the agent's ids were reported
	task    bool            // there is a task, so a Message belongs to it
}

// report reads an answer, an event of a stream or a notification. The report is empty if it is none of these.
func (r *reader) report(result gjson.Result) (agent.Report, error) {
	var rep agent.Report
	if !result.IsObject() {
		return rep, wire.Refuse("the agent's answer is no object")
	}
	kind, v := shapeOf(result)
	m := membersOf(v)
	name := m.taskID
	if kind == isTask {
		name = m.id
	}
	if err := wire.GoesOn(&r.query, name.Str, m.contextID.Str); err != nil {
		return rep, err
	}
	if name.Str != "" { // and so all later events are about the same task
		r.query = translate.Query{}
	}
	r.task = r.task || kind != isMessage && kind != isNothing
	switch kind {
	case isTask:
		if !m.status.Exists() {
			return rep, wire.Refuse("the agent's answer is a Task that has no status")
		}
		if err := r.whole(&rep, m.artifacts); err != nil {
			return agent.Report{}, err
		}
		if err := statusForm.Read(&rep, m.status); err != nil {
			return agent.Report{}, err
		}
		if reply.Recallable(&rep) && len(r.seen) == 0 {
			rep.Items = reply.Recalled(m.history, func(m gjson.Result) ([]task.DataItem, error) {
				return readParts(jsonrpc.Member(m, "parts"), false)
			})
		}
		rep.Revision, rep.RevisionDated = status.Revision(&rep, m.status, m.artifacts)
		rep.TaskExtensions = extension.OfResult(&m.rest)
		r.name(&rep, m.id, m.contextID)
	case isMessage:
		return r.message(&m, v)
	case isStatusUpdate:
		if m.status.Exists() {
			if err := statusForm.Read(&rep, m.status); err != nil {
				return agent.Report{}, err
			}
			rep.Revision, rep.RevisionDated = status.Revision(&rep, m.status, gjson.Result{})
			rep.TaskExtensions = extension.OfResult(&m.rest)
		}
		if !r.named { // a stream is about one task, and later ids may be wrong
			r.name(&rep, m.taskID, m.contextID)
		}
	case isArtifactUpdate:
		if err := r.chunk(&rep, &m); err != nil {
			return agent.Report{}, err
		}
		if !r.named {
			r.name(&rep, m.taskID, m.contextID)
		}
	}
	return rep, nil
}

func (r *reader) name(rep *agent.Report, id, session gjson.Result) {
	if id.Str != "" {
		reply.Name(rep, id.Str, session.Str, r.session)
		r.named = true
	}
}

// message reads a Message in answer to a turn, without a task. The agent has finished, and there is no task to look up
// or cancel; but the agent may know the context again.
func (r *reader) message(m *members, v gjson.Result) (agent.Report, error) {
	items, err := readParts(m.parts, false)
	if err != nil {
		return agent.Report{}, err
	}
	id := m.messageID.Str
	if id == "" {
		id = "message"
	}
	if r.task { // so the Message goes with the agent's last word
		return agent.Report{
			State: task.AwaitingCompletion, NativeState: "message", Message: true, Items: items,
			Revision: messageRevision(v),
		}, nil
	}
	withoutTask := !r.named && m.taskID.Str == ""
	r.named = r.named || m.taskID.Str != ""
	rep := agent.Report{
		State: task.AwaitingCompletion, NativeState: "message", Message: true, WithoutTask: withoutTask,
		Full: true, Products: []task.Product{{ID: id, DataItems: items, Extensions: extension.OfArtifact(&m.rest)}},
		Revision: messageRevision(v),
	}
	reply.Name(&rep, m.taskID.Str, m.contextID.Str, r.session)
	return rep, nil
}

func messageRevision(v gjson.Result) string {
	return "message " + strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(v.Raw))), 16)
}

// statusForm is the form of 1.0. A missing state stands for an unknown one.
var statusForm = status.Form{
	Version: "1.0", State: state, Means: nameOf, AuthRequired: authRequired,
	Parts: func(list gjson.Result) ([]task.DataItem, error) { return readParts(list, false) },
}

// nameOf returns the name of a state written by an agent in another way, as before 1.0.
func nameOf(word string) string {
	return "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(status.Plain(word), "-", "_"))
}

// state returns the state of AIP for a state of A2A 1.0. The schema before 1.0 wrote CANCELLED.
func state(word string) (s task.State, ok bool) {
	switch word {
	case "", "TASK_STATE_UNSPECIFIED":
		return task.None, true
	case "TASK_STATE_SUBMITTED":
		return task.Accepted, true
	case "TASK_STATE_WORKING":
		return task.Working, true
	case "TASK_STATE_INPUT_REQUIRED", authRequired:
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
func (c client) AppendDescribe(dst []byte) []byte {
	if c.rest {
		return dst
	}
	return c.end(append(c.begin(dst, reply.CardID, extendedCard), '{', '}'))
}

// Description implements translate.Describer.
func (c client) Description(body []byte) ([]byte, error) {
	if !c.rest {
		return reply.Card(body, &c.query, func(f *jsonrpc.Failure) error { return failed(f) })
	}
	if !gjson.ValidBytes(body) {
		return nil, wire.Refuse("the agent's answer is no card")
	}
	if f := failureIn(gjson.ParseBytes(body)); f != nil {
		return nil, failed(f)
	}
	return body, nil
}
