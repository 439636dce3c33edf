// SPDX-License-Identifier: Apache-2.0

// Package legacy is A2A v0.1: the methods tasks/send and tasks/sendSubscribe of April 2025, replaced in 0.2.
package legacy

import (
	"cmp"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/reply"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Client returns the side of A2A v0.1 towards agents.
func Client() translate.Client { return client{} }

type client struct{ query translate.Query }

// The methods of v0.1 only.
const (
	send          = "tasks/send"
	sendSubscribe = "tasks/sendSubscribe"
	pushSet       = "tasks/pushNotification/set"
	pushGet       = "tasks/pushNotification/get"
)

// RefusesStreams implements translate.Unstreamer.
func (client) RefusesStreams() {}

// ForgetsTasks implements translate.Forgetter.
func (client) ForgetsTasks() {}

// RenamesTasks implements translate.Renamer.
func (client) RenamesTasks() {}

// NamesSessions implements translate.SessionNamer.
func (client) NamesSessions() {}

func (client) Name() string { return version.NameLegacy }

// For implements translate.Client.
func (client) For(q translate.Query) translate.Client { return client{q} }

// Header implements translate.Client: v0.1 has no field for its version.
func (client) Header() []translate.Field { return nil }

func (c client) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	extensions := wire.WithPassed(t.Message.Extensions, t.Message.Params)
	method := send
	if stream {
		method = sendSubscribe
	}
	dst = rpc.Begin(dst, &c.query, method, t.Ref.Task)
	if t.Ref.Session != "" {
		dst = append(dst, `,"sessionId":`...)
		dst = task.AppendString(dst, t.Ref.Session)
	}
	dst = append(dst, `,"message":{"role":"user","parts":`...)
	dst = appendParts(dst, wire.Items(&t.Message))
	dst = append(extension.AppendTurn(dst, extensions, "", nil), '}')
	if modes := extension.OutputModes(extensions); len(modes) > 0 {
		dst = append(append(dst, `,"acceptedOutputModes":`...), modes...)
	}
	if t.Webhook != nil { // an agent ignoring it is followed by other means
		dst = append(dst, `,"pushNotification":`...)
		dst = webhook.Append(dst, &task.Webhook{URL: t.Webhook.URL, Token: t.Webhook.Token})
	}
	return append(extension.AppendParams(dst, extensions), '}', '}')
}

// AppendGet implements translate.Getter. It asks for no history, since the gateway keeps its own.
func (c client) AppendGet(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, &c.query, rpc.Get, ref.Task), '}', '}')
}

func (c client) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, &c.query, rpc.Cancel, ref.Task), '}', '}')
}

func (c client) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, &c.query, rpc.Resubscribe, ref.Task), '}', '}')
}

// Reply reads a Task, or less: a Message, or the name of a task. It copies body once: the report's texts are views of
// the copy.
func (c client) Reply(body []byte, known []task.Product) (rep agent.Report, err error) {
	v, err := answer(body, &c.query)
	if err != nil {
		return rep, err
	}
	m := resultOf(v)
	n := naming{query: c.query}
	ref, _, err := n.read(m.id)
	if err != nil {
		return rep, err
	}
	switch said := m.said(); {
	case m.status.Exists():
		rep, err = m.report(c.artifacts(known))
	case !saysNothing(m.failure):
		err = failed(m.failure)
	case c.query.Cancel:
		err = acknowledged(v)
	case said.IsArray() || said.Exists() && c.query.Turn:
		rep, err = m.finished(said)
	case c.query.Turn && m.id.Str != "": // the gateway asks for it from now on
		rep.State, rep.NativeState = task.Accepted, "submitted"
	default:
		err = wire.Refuse("the agent's answer has no status, so it is no Task")
	}
	n.report(&rep, ref, m.session)
	return rep, err
}

// Push implements translate.Client. v0.1 does not specify the body for a webhook: agents send a Task, an event as a
// JSON-RPC notification, or an event with the members of a Task.
func (c client) Push(body []byte, known []task.Product) (agent.Report, error) {
	v, err := reply.Pushed(body)
	if err != nil {
		return agent.Report{}, err
	}
	m := resultOf(v)
	if err := wire.About(&c.query, cmp.Or(m.id.Str, m.taskID.Str)); err != nil {
		return agent.Report{}, err
	}
	return m.report(c.artifacts(known))
}

func (c client) NewStream(known []task.Product) translate.Stream {
	return &stream{query: c.query, naming: naming{query: c.query}, artifacts: *c.artifacts(known)}
}

func (c client) artifacts(known []task.Product) *artifacts {
	return &artifacts{withdrawn: c.query.Withdrawn, known: known}
}

// stream reads TaskStatusUpdateEvents and TaskArtifactUpdateEvents, and Tasks, sent by some agents instead. They are
// distinguished by their members, since the names of SSE events differ and some agents send wrong ids. A turn ends by
// its state, at once if that is "final". Some agents set it on an artifact before the last status, and some never do;
// others send an artifact, or another state, after a state that is not final.
type stream struct {
	query     translate.Query // of the stream; none once an event has proven to belong to it, and with it all others
	naming    naming
	artifacts artifacts
	last      wire.LastPiece
}

func (s *stream) Event(event string, data []byte) (agent.Report, error) {
	if event == "close" || len(data) == 0 { // "close" repeats the end of the task in another form
		return agent.Report{}, nil
	}
	if reply.IsDone(data) {
		return agent.Report{Last: true}, nil
	}
	v, err := answer(data, &s.query)
	if err != nil {
		ours := task.KindOf(err) != task.InvalidAgentResponse && !errors.Is(err, translate.ErrInformal)
		if !ours && (!isEvent(event) || isSign(data)) { // such as a ping of the agent's server
			return agent.Report{}, nil
		}
		return agent.Report{}, wire.Informal(event, data, err)
	}
	m := resultOf(v)
	if !m.status.Exists() && !m.artifact.Exists() && !saysNothing(m.failure) {
		return agent.Report{}, failed(m.failure)
	}
	ref, ours, err := s.naming.read(m.id)
	if err != nil || !ours {
		return agent.Report{}, err
	}
	s.query = translate.Query{}
	rep, err := m.news(&s.artifacts)
	s.naming.report(&rep, ref, m.session)
	if rep.EndsTurn() && !m.final && !isQuestion(event, &rep) {
		rep.Follows = agent.FollowsMore
	}
	rep.Last = m.final && rep.State != task.None && !rep.State.Settled()
	return rep, err
}

// isQuestion reports whether an event asks for input in the form of trpc-a2a-go, with its names of events. trpc-a2a-go
// never calls a question final, sends nothing after it, and leaves its stream open.
func isQuestion(event string, rep *agent.Report) bool {
	return event == "task_status_update" && rep.State == task.AwaitingInput
}

// isEvent reports whether v0.1 has events of this name. "message" is the name if none is given.
func isEvent(name string) bool {
	switch name {
	case "", "message", "task_status_update", "task_artifact_update", "error":
		return true
	}
	return false
}

var statusForm = status.Form{
	Version: "v0.1", State: status.State, Means: meaning, Parts: part.Read, AuthRequired: status.AuthRequired,
}

// streamForm is statusForm for a stream. In a stream an unknown word is a sign of life: more may follow.
var streamForm = status.Form{
	Version: statusForm.Version, State: statusForm.State, Means: meaningOrNews, Parts: statusForm.Parts,
	AuthRequired: statusForm.AuthRequired,
}

// result holds the members of a Task, a TaskStatusUpdateEvent or a TaskArtifactUpdateEvent. A null one counts as
// missing: agents of April 2025 write null for it.
type result struct {
	id, taskID, session         gjson.Result // of the task; some events have the second
	status, artifact, artifacts gjson.Result
	inner, message, parts       gjson.Result // if it is none of them: another object around it, or a Message
	history, answer, failure    gjson.Result // if no status and no artifact says more
	metadata                    gjson.Result
	final                       bool
	event                       bool // it has a member of events only; without artifacts it is not about them
	raw                         gjson.Result
	rest                        wire.Extensions
}

func membersOf(v gjson.Result) result {
	m := result{raw: v}
	var state gjson.Result
	wire.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "id":
			m.id = v
		case "taskId":
			m.taskID = v
		case "status":
			m.status = statusOf(v)
		case "state":
			state = v
		case "artifact":
			m.artifact = v
		case "artifacts":
			m.artifacts = v
		case "final":
			m.event, m.final = true, v.Bool()
		case "eventType":
			m.event = true
		case "history":
			m.history = v
		case "metadata":
			m.metadata = v
		case "sessionId":
			m.session = v
		case "kind", "type", "contextId", "append", "lastChunk": // not used
		default:
			switch key {
			case "task", "event":
				m.inner = v
			case "message":
				m.message = v
			case "parts":
				m.parts = v
			case "messages":
				m.history = v
			case "result":
				m.answer = v
			case "error":
				m.failure = v
			}
			extension.AddResult(&m.rest, key, v)
		}
	})
	if !m.status.Exists() && state.Type == gjson.String {
		m.status = statusOf(state)
	}
	return m
}

// report reads a status, artifacts, or both. With neither, the report is empty.
func (m result) report(a *artifacts) (agent.Report, error) {
	return m.reportBy(&statusForm, a)
}

// reportBy is report with a form of the status.
func (m result) reportBy(form *status.Form, a *artifacts) (agent.Report, error) {
	var rep agent.Report
	if !m.raw.IsObject() {
		return rep, wire.Refuse("the agent's answer has a result that is no object")
	}
	m.addMetadata(form)
	if m.artifact.Exists() {
		if err := a.chunks(&rep, m.artifact); err != nil {
			return rep, err
		}
		if len(rep.Chunks) > 0 {
			rep.Chunks[0].Extensions = extension.OfResult(&m.rest)
		}
	}
	if !m.status.Exists() {
		return rep, nil
	}
	if err := form.Read(&rep, m.status); err != nil {
		return rep, err
	}
	if !m.artifact.Exists() && (m.artifacts.Exists() || !m.event) {
		rep.Full = true
		if err := a.whole(&rep, m.artifacts); err != nil {
			return rep, err
		}
	}
	if len(rep.Items) == 0 && rep.State.Settled() && !m.event && len(rep.Products) == 0 {
		m.recall(&rep)
	}
	rep.Revision, rep.RevisionDated = status.Revision(&rep, m.status, m.artifacts)
	rep.TaskExtensions = extension.OfResult(&m.rest)
	return rep, nil
}

// Interface guards.
var (
	_ translate.Client    = client{}
	_ translate.Registrar = client{}
)
