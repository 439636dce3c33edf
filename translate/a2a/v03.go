// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// V03 returns the client side of A2A 0.2 and 0.3 over JSON-RPC, whose messages are the same.
func V03() translate.Client { return v03{} }

type v03 struct{}

// The methods of 0.2 and 0.3 that v0.1 does not have.
const (
	v03Send         = "message/send"
	v03Stream       = "message/stream"
	v03PushSet      = "tasks/pushNotificationConfig/set"
	v03PushGet      = "tasks/pushNotificationConfig/get"
	v03PushList     = "tasks/pushNotificationConfig/list"
	v03PushDelete   = "tasks/pushNotificationConfig/delete"
	v03ExtendedCard = "agent/getAuthenticatedExtendedCard"
)

// maxV03ID is how long, in bytes, the ids may be that an agent makes.
const maxV03ID = 256

func (v03) Name() string { return name03 }

var v03Header = []translate.Field{{Name: "A2A-Version", Value: "0.3"}}

// Header implements translate.Client. Agents of later versions answer in this one where they are told to.
func (v03) Header() []translate.Field { return v03Header }

// NamesTasks says that agents name their tasks themselves.
func (v03) NamesTasks() {}

// AppendTurn implements translate.Client. The agent makes the names of a task and its context, so a start has none.
// A task that has ended cannot be gone on with: that makes another one, in the same context.
func (v03) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	method := v03Send
	if stream {
		method = v03Stream
	}
	var room [96]byte
	id := task.AppendString(room[:0], v1MessageID(t))
	dst = jsonrpc.BeginRequest(dst, id, method)
	dst = append(dst, `{"message":{"kind":"message","messageId":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"role":"user","parts":`...)
	dst = appendParts(dst, "kind", t.Message.DataItems)
	refers := ""
	switch {
	case t.From == task.None:
	case t.From == task.AwaitingCompletion:
		dst = legacyOptional(dst, `,"contextId":`, t.Ref.Session)
		if t.Ref.Task != "" && !strings.HasPrefix(t.Revision, v03MessageStamp) {
			refers = t.Ref.Task
		}
	default:
		dst = legacyOptional(dst, `,"taskId":`, t.Ref.Task)
		dst = legacyOptional(dst, `,"contextId":`, t.Ref.Session)
	}
	dst = append(appendTurnRest(dst, t.Message.Extensions, refers), '}')
	if config := kept(t.Message.Extensions, "configuration"); !stream || t.Webhook != nil || len(config) > 0 {
		// Until 0.2.5 the modes had to be there. No agent refuses none, and some refuse all that they do not know.
		dst = append(dst, `,"configuration":{"acceptedOutputModes":`...)
		if modes := wire.MemberOf(config, "acceptedOutputModes"); len(modes) > 0 {
			dst = append(dst, modes...) // but what the caller wants is for the caller to say
		} else {
			dst = append(dst, '[', ']')
		}
		if !stream {
			dst = append(dst, `,"blocking":true`...) // what is left out means different things to agents
		}
		if t.Webhook != nil {
			dst = appendLegacyConfig(append(dst, `,"pushNotificationConfig":`...), t.Webhook)
		}
		dst = append(family.Append(dst, config, nil, configWords), '}')
	}
	return append(appendParamsRest(dst, t.Message.Extensions), '}', '}')
}

// AppendGet implements translate.Getter. No history is asked for: the gateway keeps its own.
func (v03) AppendGet(dst []byte, ref agent.Ref) []byte {
	return append(rpcBegin(dst, rpcGet, ref.Task), `,"historyLength":0}}`...)
}

func (v03) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return append(rpcBegin(dst, rpcCancel, ref.Task), '}', '}')
}

func (v03) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return append(rpcBegin(dst, rpcResubscribe, ref.Task), '}', '}')
}

// Reply reads a Task or a Message. It copies body once; the report's texts are views of that copy.
func (v03) Reply(body []byte, known []task.Product) (agent.Report, error) {
	res, err := response(append([]byte(nil), body...))
	if err != nil {
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, failed(v03Failures, res.Failure)
	}
	m := v03Members(res.Result)
	if !m.status.Exists() && !m.isMessage() {
		return agent.Report{}, refuse("the agent's answer has neither a status nor a messageId, so it is no Task and no Message")
	}
	return m.report(&v03Artifacts{known: known})
}

// Push reads a Task, which is what 0.3 tells webhooks, or any event of a stream.
func (v03) Push(body []byte, known []task.Product) (agent.Report, error) {
	v, err := pushed(body)
	if err != nil {
		return agent.Report{}, err
	}
	m := v03Members(v)
	return m.report(&v03Artifacts{known: known})
}

func (v03) NewStream(known []task.Product) translate.Stream {
	return &v03Events{artifacts: v03Artifacts{known: known}}
}

// v03Events reads Tasks, Messages, TaskStatusUpdateEvents and TaskArtifactUpdateEvents. They are told apart by what
// they have in them, since "kind" may be missing. Events belong to the stream's task whatever id they have: some
// agents report a failure under another. It is not the event's "final" that ends a turn but its state.
type v03Events struct {
	artifacts v03Artifacts
	named     bool // the agent's names have been told
	task      bool // there is a task, so that a Message is news of it
}

func (s *v03Events) Event(event string, data []byte) (agent.Report, error) {
	if len(data) == 0 {
		return agent.Report{}, nil
	}
	res, err := response(append([]byte(nil), data...))
	if err != nil {
		if event != "" && event != "message" && event != "error" { // whatever the agent's server sends for itself
			err = nil
		}
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, failed(v03Failures, res.Failure)
	}
	m := v03Members(res.Result)
	if s.task && m.isMessage() {
		return m.news()
	}
	rep, err := m.report(&s.artifacts)
	if err != nil {
		return rep, err
	}
	s.task = s.task || m.status.Exists() || m.artifact.Exists()
	if s.named {
		rep.Ref = nil
	}
	s.named = s.named || rep.Ref != nil
	return rep, nil
}

var v03StatusForm = statusForm{version: "0.3", state: legacyState, parts: legacyParts, authRequired: authRequired}

// v03Result holds the members of a Task, a Message or an event. Those that are null count as missing.
type v03Result struct {
	id, taskID, contextID       gjson.Result
	messageID, role, parts      gjson.Result
	status, artifact, artifacts gjson.Result
	append, last                bool
	update                      bool // it has what only updates have, so that no artifacts do not mean none
	raw                         gjson.Result
	rest                        wire.Extensions
}

func v03Members(result gjson.Result) v03Result {
	m := v03Result{raw: result}
	members(result, func(key string, v gjson.Result) {
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
			m.update = true
		case "type", "history":
		default:
			addResult(&m.rest, key, v)
		}
	})
	return m
}

// isMessage reports whether a result is a Message: nothing else has parts of its own.
func (m *v03Result) isMessage() bool {
	return !m.status.Exists() && !m.artifact.Exists() && (m.messageID.Exists() || m.parts.Exists())
}

// report reads what is there: a Message, a status, artifacts, or neither, which means nothing.
func (m *v03Result) report(a *v03Artifacts) (rep agent.Report, err error) {
	if !m.raw.IsObject() {
		return rep, refuse("the agent's answer has a result that is no object")
	}
	if m.isMessage() {
		return m.message()
	}
	if !m.status.Exists() && !m.artifact.Exists() {
		return rep, nil
	}
	if rep.Ref, err = m.ref(); err != nil {
		return rep, err
	}
	if m.artifact.Exists() {
		if err := a.chunk(&rep, m.artifact, m.append, m.last); err != nil {
			return rep, err
		}
		rep.Chunks[len(rep.Chunks)-1].Extensions = m.rest.JSON(family, resultWords)
	}
	if !m.status.Exists() {
		return rep, nil
	}
	if err := v03StatusForm.read(&rep, m.status); err != nil {
		return rep, err
	}
	if !m.artifact.Exists() && (m.artifacts.Exists() || !m.update) {
		rep.Full = true
		if err := a.whole(&rep, m.artifacts); err != nil {
			return rep, err
		}
	}
	rep.Revision, rep.RevisionDated = legacyStamp(&rep, m.status, m.artifacts)
	rep.TaskExtensions = m.rest.JSON(family, resultWords)
	return rep, nil
}

// ref returns the names that the agent gave to the task and its context; nil where it gave none.
func (m *v03Result) ref() (*agent.Ref, error) {
	id := m.id
	if m.update {
		id = m.taskID
	}
	if id.Str == "" && m.contextID.Str == "" {
		return nil, nil
	}
	if len(id.Str) > maxV03ID || len(m.contextID.Str) > maxV03ID {
		return nil, refuse("the agent's answer has an id of more than %d bytes", maxV03ID)
	}
	return &agent.Ref{Task: id.Str, Session: m.contextID.Str}, nil
}

// v03MessageStamp begins the stamp of what an agent said without making a task of it, so that the next turn does
// not refer to one.
const v03MessageStamp = "message "

// message reads a Message in place of a Task: the agent has finished, and what it says is the product. It has a name
// only where the agent says in which context it was.
func (m *v03Result) message() (rep agent.Report, err error) {
	p := task.Product{ID: v03ID(m.messageID.Str, "message", ""), Extensions: m.rest.JSON(family, artifactWords)}
	if p.DataItems, err = legacyParts(m.parts); err != nil {
		return rep, err
	}
	m.id = m.taskID
	if rep.Ref, err = m.ref(); err != nil {
		return rep, err
	}
	rep.State, rep.NativeState = task.AwaitingCompletion, "message"
	rep.Full, rep.Products = true, []task.Product{p}
	rep.Revision = v03MessageStamp + strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(m.messageID.Raw+m.parts.Raw))), 16)
	return rep, nil
}

// news reads a Message of an agent that is at work on a task. One of the gateway's own means nothing.
func (m *v03Result) news() (rep agent.Report, err error) {
	if m.role.Str == "user" {
		return rep, nil
	}
	if rep.Items, err = legacyParts(m.parts); err != nil {
		return rep, err
	}
	var others wire.Extensions
	others.AddObject("message", &m.rest, messageWords)
	rep.State, rep.NativeState, rep.Extensions = task.Working, "message", others.JSON(family, statusWords)
	return rep, nil
}

// AppendDescribe implements translate.Describer.
func (v03) AppendDescribe(dst []byte) []byte {
	// The params are an object though there are none: some agents refuse a request without.
	return append(jsonrpc.BeginRequest(dst, task.AppendString(nil, describeID), v03ExtendedCard), '{', '}', '}')
}

// Description implements translate.Describer.
func (v03) Description(body []byte) ([]byte, error) {
	return description(body, func(f *jsonrpc.Failure) error { return failed(v03Failures, f) })
}
