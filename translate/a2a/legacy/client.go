// SPDX-License-Identifier: Apache-2.0

// Package legacy is A2A v0.1: the methods tasks/send and tasks/sendSubscribe of April 2025, which 0.2 replaced.
package legacy

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
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

type client struct{}

// The methods of v0.1 that no later version has.
const (
	send          = "tasks/send"
	sendSubscribe = "tasks/sendSubscribe"
	pushSet       = "tasks/pushNotification/set"
	pushGet       = "tasks/pushNotification/get"
)

func (client) Name() string { return version.NameLegacy }

// Header implements translate.Client: v0.1 has no field for its version.
func (client) Header() []translate.Field { return nil }

func (client) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	method := send
	if stream {
		method = sendSubscribe
	}
	dst = rpc.Begin(dst, method, t.Ref.Task)
	if t.Ref.Session != "" {
		dst = append(dst, `,"sessionId":`...)
		dst = task.AppendString(dst, t.Ref.Session)
	}
	dst = append(dst, `,"message":{"role":"user","parts":`...)
	dst = appendParts(dst, t.Message.DataItems)
	dst = append(extension.AppendMessage(dst, t.Message.Extensions), '}')
	if modes := extension.OutputModes(t.Message.Extensions); len(modes) > 0 {
		dst = append(append(dst, `,"acceptedOutputModes":`...), modes...)
	}
	if t.Webhook != nil { // agents that do not know it here ignore it, and are followed all the same
		dst = append(dst, `,"pushNotification":`...)
		dst = webhook.Append(dst, &task.Webhook{URL: t.Webhook.URL, Token: t.Webhook.Token})
	}
	return append(extension.AppendParams(dst, t.Message.Extensions), '}', '}')
}

// AppendGet implements translate.Client. No history is asked for: the gateway keeps its own.
func (client) AppendGet(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, rpc.Get, ref.Task), '}', '}')
}

func (client) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, rpc.Cancel, ref.Task), '}', '}')
}

func (client) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return append(rpc.Begin(dst, rpc.Resubscribe, ref.Task), '}', '}')
}

// Reply reads a Task. It copies body once; the report's texts are views of that copy. What is known already does
// not matter, because a Task holds all its artifacts.
func (client) Reply(body []byte, _ []task.Product) (agent.Report, error) {
	res, err := wire.Response(body)
	if err != nil {
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, wire.Failed(reply.Failures, res.Failure.Code, res.Failure.Message)
	}
	m := membersOf(res.Result)
	if !m.status.Exists() {
		return agent.Report{}, wire.Refuse("the agent's answer has no status, so it is no Task")
	}
	return m.report(new(artifacts))
}

// Push implements translate.Client. v0.1 leaves open what a webhook is told: a Task, one event as a JSON-RPC
// notification, or an event with the Task's members.
func (client) Push(body []byte, known []task.Product) (agent.Report, error) {
	v, err := reply.Pushed(body)
	if err != nil {
		return agent.Report{}, err
	}
	return membersOf(v).report(&artifacts{known: known})
}

func (client) NewStream(known []task.Product) translate.Stream {
	return &stream{artifacts{known: known}}
}

// stream reads TaskStatusUpdateEvents and TaskArtifactUpdateEvents, and Tasks, which some agents send
// in their place. They are told apart by what they have in them: names of SSE events differ, and so may
// ids, which some agents get wrong. It is not the event's "final" that ends a turn but its state, since some
// agents set it on an artifact that comes before the last status, and some never do.
type stream struct{ artifacts artifacts }

func (s *stream) Event(event string, data []byte) (agent.Report, error) {
	if event == "close" || len(data) == 0 { // "close" repeats the end of the task in a form of its own
		return agent.Report{}, nil
	}
	res, err := wire.Response(data)
	if err != nil {
		if !isEvent(event) { // a ping, or whatever else the agent's server sends for itself
			err = nil
		}
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, wire.Failed(reply.Failures, res.Failure.Code, res.Failure.Message)
	}
	return membersOf(res.Result).report(&s.artifacts)
}

// isEvent reports whether events of a name are those of v0.1: "message" is the name where none is given.
func isEvent(name string) bool {
	switch name {
	case "", "message", "task_status_update", "task_artifact_update", "error":
		return true
	}
	return false
}

var statusForm = status.Form{Version: "v0.1", State: status.State, Parts: part.Read, AuthRequired: status.AuthRequired}

// result holds the members of a Task, a TaskStatusUpdateEvent or a TaskArtifactUpdateEvent. Those that
// are null count as missing: agents of April 2025 write so what they have not.
type result struct {
	status, artifact, artifacts gjson.Result
	event                       bool // it has what only events have, so that no artifacts do not mean none
	raw                         gjson.Result
	rest                        wire.Extensions
}

func membersOf(v gjson.Result) result {
	m := result{raw: v}
	wire.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "status":
			m.status = v
		case "artifact":
			m.artifact = v
		case "artifacts":
			m.artifacts = v
		case "final", "eventType":
			m.event = true
		case "id", "sessionId", "history", "kind", "type", "contextId", "taskId", "append", "lastChunk": // of no use here
		default:
			extension.AddResult(&m.rest, key, v)
		}
	})
	return m
}

// report reads what is there: a status, artifacts, or neither, which means nothing.
func (m result) report(a *artifacts) (agent.Report, error) {
	var rep agent.Report
	if !m.raw.IsObject() {
		return rep, wire.Refuse("the agent's answer has a result that is no object")
	}
	if m.artifact.Exists() {
		if err := a.chunks(&rep, m.artifact); err != nil {
			return rep, err
		}
		rep.Chunks[len(rep.Chunks)-1].Extensions = extension.OfResult(&m.rest)
	}
	if !m.status.Exists() {
		return rep, nil
	}
	if err := statusForm.Read(&rep, m.status); err != nil {
		return rep, err
	}
	if !m.artifact.Exists() && (m.artifacts.Exists() || !m.event) {
		rep.Full = true
		if err := a.whole(&rep, m.artifacts); err != nil {
			return rep, err
		}
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
