// SPDX-License-Identifier: Apache-2.0

// Package v03 is A2A 0.2 and 0.3, with the same messages: over JSON-RPC, and, towards callers, over HTTP+JSON. 1.0 grew
// out of the objects of the latter, so its server is the one of package v1 with another schema.
package v03

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
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/reply"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Client returns the side of A2A 0.2 and 0.3 towards agents, over JSON-RPC.
func Client() translate.Client { return client{} }

type client struct{ query translate.Query }

// The methods of 0.2 and 0.3, not in v0.1.
const (
	send         = "message/send"
	sendStream   = "message/stream"
	pushSet      = "tasks/pushNotificationConfig/set"
	pushGet      = "tasks/pushNotificationConfig/get"
	pushList     = "tasks/pushNotificationConfig/list"
	pushDelete   = "tasks/pushNotificationConfig/delete"
	extendedCard = "agent/getAuthenticatedExtendedCard"
)

// maxID is the largest length of an agent's ids in bytes.
const maxID = 256

func (client) Name() string { return version.Name03 }

// For implements translate.Client.
func (client) For(q translate.Query) translate.Client { return client{q} }

var header = []translate.Field{{Name: "A2A-Version", Value: "0.3"}}

// Header implements translate.Client. Agents of later versions answer in this one if a request names it.
func (client) Header() []translate.Field { return header }

// NamesTasks implements translate.Namer: agents name their tasks themselves.
func (client) NamesTasks() {}

// Activate implements translate.Activator.
func (client) Activate(t *agent.Turn) []translate.Field { return message.Activating(t) }

// NamesSessions implements translate.SessionNamer.
func (client) NamesSessions() {}

// AppendTurn implements translate.Client. The agent names tasks, so a start has the id of the context alone. An ended
// task cannot be continued: its continue starts another one in the same context.
func (c client) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	extensions := wire.WithPassed(t.Message.Extensions, t.Message.Params)
	method := send
	if stream {
		method = sendStream
	}
	id := message.ID(t)
	dst = wire.BeginRequest(dst, &c.query, id, method)
	dst = append(dst, `{"message":{"kind":"message","messageId":`...)
	dst = task.AppendString(dst, id)
	dst = append(dst, `,"role":"user","parts":`...)
	dst = part.Append(dst, "kind", wire.Items(&t.Message))
	refers := ""
	switch {
	case t.From == task.None:
	case t.From == task.AwaitingCompletion:
		if !strings.HasPrefix(t.Revision, messageRevision) {
			refers = t.Ref.Task
		}
	default:
		dst = wire.AppendOptional(dst, `,"taskId":`, t.Ref.Task)
	}
	dst = wire.AppendOptional(dst, `,"contextId":`, t.Ref.Session)
	dst = append(extension.AppendTurn(dst, extensions, refers, t.References), '}')
	if config := extension.Configuration(extensions); !stream || t.Webhook != nil || len(config) > 0 {
		// Until 0.2.5 the modes were required. No agent refuses an empty list, and some refuse all unknown lists.
		dst = append(dst, `,"configuration":{"acceptedOutputModes":`...)
		if modes := extension.OutputModes(extensions); len(modes) > 0 {
			dst = append(dst, modes...) // the caller's choice
		} else {
			dst = append(dst, '[', ']')
		}
		if !stream {
			dst = append(dst, `,"blocking":true`...) // agents differ in their default
		}
		if t.Webhook != nil {
			dst = webhook.Append(append(dst, `,"pushNotificationConfig":`...), t.Webhook)
		}
		dst = append(extension.AppendConfiguration(dst, extensions, false), '}')
	}
	return append(extension.AppendParams(dst, extensions), '}', '}')
}

// AppendGet implements translate.Getter. It asks for no history, since the gateway keeps its own.
func (c client) AppendGet(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, &c.query, rpc.Get, ref.Task), `,"historyLength":0}}`...)
}

func (c client) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, &c.query, rpc.Cancel, ref.Task), '}', '}')
}

func (c client) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, &c.query, rpc.Resubscribe, ref.Task), '}', '}')
}

// Reply reads a Task or a Message. It copies body once; the report's texts are views of that copy.
func (c client) Reply(body []byte, known []task.Product) (agent.Report, error) {
	res, err := wire.ResponseInExchange(body, &c.query)
	if err != nil {
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, wire.Failed(reply.FailuresV03, res.Failure)
	}
	m := membersOf(res.Result)
	if err := wire.GoesOn(&c.query, m.about(), m.contextID.Str); err != nil {
		return agent.Report{}, err
	}
	if !m.status.Exists() && !m.isMessage() {
		return agent.Report{}, wire.Refuse(
			"the agent's answer has neither a status nor a messageId, so it is no Task and no Message")
	}
	return m.report(&artifacts{known: known}, c.query.Session)
}

// Push reads a Task, sent to webhooks by 0.3, or any event of a stream.
func (c client) Push(body []byte, known []task.Product) (agent.Report, error) {
	v, err := reply.Pushed(body)
	if err != nil {
		return agent.Report{}, err
	}
	m := membersOf(v)
	if err := wire.About(&c.query, m.about()); err != nil {
		return agent.Report{}, err
	}
	return m.report(&artifacts{known: known}, c.query.Session)
}

func (c client) NewStream(known []task.Product) translate.Stream {
	return &stream{query: c.query, session: c.query.Session, artifacts: artifacts{known: known}}
}

// stream reads Tasks, Messages, TaskStatusUpdateEvents and TaskArtifactUpdateEvents. They are distinguished by their
// members, since "kind" may be missing. Once one has proven to belong to the stream, all others do, with any id: some
// agents report a failure under another one. A turn ends by its state; a question that is not "final" is a state on the
// way.
type stream struct {
	query     translate.Query // of the stream; none once an event has proven to belong to it
	session   string          // as the request names it
	artifacts artifacts
	answers   message.Answers
	last      wire.LastPiece
	named     bool // the agent's ids were reported
	task      bool // there is a task, so a Message belongs to it
}

func (s *stream) Event(event string, data []byte) (agent.Report, error) {
	if len(data) == 0 {
		return agent.Report{}, nil
	}
	if reply.IsDone(data) {
		return agent.Report{Last: true}, nil
	}
	res, err := wire.ResponseInExchange(data, &s.query)
	if err != nil {
		if event != "" && event != "message" && event != "error" { // such as a ping of the agent's server
			return agent.Report{}, nil
		}
		return agent.Report{}, wire.Informal(event, data, err)
	}
	if res.Failure != nil {
		return agent.Report{}, wire.Failed(reply.FailuresV03, res.Failure)
	}
	m := membersOf(res.Result)
	if s.task && m.isMessage() {
		return m.news()
	}
	rep, err := m.report(&s.artifacts, s.session)
	if err == nil && rep.State != task.Failed {
		err = wire.GoesOn(&s.query, m.about(), m.contextID.Str)
	}
	if err != nil {
		return agent.Report{}, err
	}
	s.query = translate.Query{}
	rep.Follows = m.follows(&rep)
	s.answers.Add(&rep)
	s.task = s.task || m.status.Exists() || m.artifact.Exists()
	if s.named {
		rep.Ref, rep.OwnSession = nil, false
	}
	s.named = s.named || rep.Ref != nil
	return rep, nil
}

// follows returns what may follow a report in its stream. The SDKs for Python and Java ask without "final", unless the
// agent says otherwise.
func (m *result) follows(rep *agent.Report) agent.Following {
	switch {
	case !rep.EndsTurn():
		return agent.FollowsNothing
	case m.open && rep.State == task.AwaitingInput:
		return agent.FollowsWork
	case m.open || rep.Message: // Lenient: several Messages, or a Message before a Task
		return agent.FollowsMore
	}
	return agent.FollowsStragglers // Lenient: an artifact or a Message behind the end of a turn
}

var statusForm = status.Form{
	Version: "0.3", State: status.State, Means: status.Plain, Parts: part.Read, AuthRequired: status.AuthRequired,
}

// result holds the members of a Task, a Message or an event. A null member counts as missing.
type result struct {
	id, taskID, contextID       gjson.Result
	messageID, role, parts      gjson.Result
	status, artifact, artifacts gjson.Result
	history                     gjson.Result // if no status and no artifact says more
	append, last                bool
	open                        bool // "final" is false
	update                      bool // it has a member of updates only; without artifacts it says nothing of them
	raw                         gjson.Result
	rest                        wire.Extensions
}

func membersOf(v gjson.Result) result {
	m := result{raw: v}
	wire.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "kind":
			m.update = m.update || strings.HasSuffix(v.Str, "-update")
		case "id":
			m.id = v
		case "taskId":
			m.taskID, m.update = v, true
		case "contextId":
			m.contextID = v
		case "messageId":
			m.messageID = v
		case "role":
			m.role = v
		case "parts":
			m.parts = v
		case "status":
			m.status = v
		case "artifact":
			m.artifact = v
		case "artifacts":
			m.artifacts = v
		case "append":
			m.append = v.Bool()
		case "lastChunk":
			m.last = v.Bool()
		case "final":
			m.update, m.open = true, v.Type == gjson.False
		case "history":
			m.history = v
		case "type":
		default:
			extension.AddResult(&m.rest, key, v)
		}
	})
	return m
}

// isMessage reports whether a result is a Message: nothing else has parts of its own.
func (m *result) isMessage() bool {
	return !m.status.Exists() && !m.artifact.Exists() && (m.messageID.Exists() || m.parts.Exists())
}

// report reads a Message, a status, artifacts, or several of them. With none, the report is empty. session is the
// session's name in the request.
func (m *result) report(a *artifacts, session string) (rep agent.Report, err error) {
	if !m.raw.IsObject() {
		return rep, wire.Refuse("the agent's answer has a result that is no object")
	}
	if m.isMessage() {
		return m.message(session)
	}
	if !m.status.Exists() && !m.artifact.Exists() {
		return rep, nil
	}
	if err = m.name(&rep, session); err != nil {
		return rep, err
	}
	if m.artifact.Exists() {
		if err := a.chunk(&rep, m.artifact, m.append, m.last); err != nil {
			return rep, err
		}
		if len(rep.Chunks) > 0 {
			rep.Chunks[0].Extensions = extension.OfResult(&m.rest)
		}
	}
	if !m.status.Exists() {
		return rep, nil
	}
	if err := statusForm.Read(&rep, m.status); err != nil {
		return rep, err
	}
	if !m.artifact.Exists() && (m.artifacts.Exists() || !m.update) {
		rep.Full = true
		if err := a.whole(&rep, m.artifacts); err != nil {
			return rep, err
		}
	}
	if reply.Recallable(&rep) && !m.update && len(a.seen) == 0 {
		rep.Items = reply.Recalled(m.history, func(m gjson.Result) ([]task.DataItem, error) {
			return part.Read(jsonrpc.Member(m, "parts"))
		})
	}
	rep.Revision, rep.RevisionDated = status.Revision(&rep, m.status, m.artifacts)
	rep.TaskExtensions = extension.OfResult(&m.rest)
	return rep, nil
}

// about returns the agent's id of the task; empty if it gave none.
func (m *result) about() string {
	if m.update || m.isMessage() {
		return m.taskID.Str
	}
	return m.id.Str
}

// name adds the agent's ids of the task and its context to a report. session is the context of the request.
func (m *result) name(rep *agent.Report, session string) error {
	id := m.id
	if m.update {
		id = m.taskID
	}
	if id.Str == "" && m.contextID.Str == "" {
		return nil
	}
	if len(id.Str) > maxID || len(m.contextID.Str) > maxID {
		return wire.Refuse("the agent's answer has an id of more than %d bytes", maxID)
	}
	reply.Name(rep, id.Str, m.contextID.Str, session)
	return nil
}

// messageRevision begins the revision of a Message without a task, so that the next turn refers to no task.
const messageRevision = "message "

// message reads a Message in place of a Task: the agent has finished, and the content is the product. There is a
// context only if the agent names it.
func (m *result) message(session string) (rep agent.Report, err error) {
	p := task.Product{ID: productID(m.messageID.Str, "message", ""), Extensions: extension.OfArtifact(&m.rest)}
	if p.DataItems, err = part.Read(m.parts); err != nil {
		return rep, err
	}
	m.id = m.taskID
	if err = m.name(&rep, session); err != nil {
		return rep, err
	}
	rep.State, rep.NativeState = task.AwaitingCompletion, "message"
	rep.Message, rep.WithoutTask = true, m.taskID.Str == ""
	rep.Full, rep.Products = true, []task.Product{p}
	sum := crc32.ChecksumIEEE([]byte(m.messageID.Raw + m.parts.Raw))
	rep.Revision = messageRevision + strconv.FormatUint(uint64(sum), 16)
	return rep, nil
}

// news reads a Message of an agent working on a task. It ignores the gateway's own.
func (m *result) news() (rep agent.Report, err error) {
	if role := m.role.Str; role == "user" || role == "ROLE_USER" {
		return rep, nil
	}
	if rep.Items, err = part.Read(m.parts); err != nil {
		return rep, err
	}
	var others wire.Extensions
	rep.State, rep.NativeState, rep.Extensions = task.Working, "message", extension.OfStatus(&others, &m.rest)
	return rep, nil
}

// AppendDescribe implements translate.Describer.
func (c client) AppendDescribe(dst []byte) []byte {
	// The params are an empty object: some agents refuse a request without params.
	return append(wire.BeginRequest(dst, &c.query, reply.CardID, extendedCard), '{', '}', '}')
}

// Description implements translate.Describer.
func (c client) Description(body []byte) ([]byte, error) {
	return reply.Card(body, &c.query, func(f *jsonrpc.Failure) error {
		return wire.Failed(reply.FailuresV03, f)
	})
}

// Interface guards.
var (
	_ translate.Client    = client{}
	_ translate.Describer = client{}
)
