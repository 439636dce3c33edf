// SPDX-License-Identifier: Apache-2.0

// Package a2a is the Agent2Agent protocol, one dialect a version. Legacy is v0.1, the methods tasks/send and
// tasks/sendSubscribe of April 2025, which 0.2 replaced.
package a2a

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Legacy returns the client side of A2A v0.1.
func Legacy() translate.Client { return legacy{} }

type legacy struct{}

// The methods of v0.1 that no later version has.
const (
	legacySend          = "tasks/send"
	legacySendSubscribe = "tasks/sendSubscribe"
	legacyPushSet       = "tasks/pushNotification/set"
	legacyPushGet       = "tasks/pushNotification/get"
)

func (legacy) Name() string { return nameLegacy }

// Header implements translate.Client: v0.1 has no field for its version.
func (legacy) Header() []translate.Field { return nil }

func (legacy) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	method := legacySend
	if stream {
		method = legacySendSubscribe
	}
	dst = rpcBegin(dst, method, t.Ref.Task)
	if t.Ref.Session != "" {
		dst = append(dst, `,"sessionId":`...)
		dst = task.AppendString(dst, t.Ref.Session)
	}
	dst = append(dst, `,"message":{"role":"user","parts":`...)
	dst = appendLegacyParts(dst, t.Message.DataItems)
	dst = append(appendMessageRest(dst, t.Message.Extensions), '}')
	if modes := wire.MemberOf(kept(t.Message.Extensions, "configuration"), "acceptedOutputModes"); len(modes) > 0 {
		dst = append(append(dst, `,"acceptedOutputModes":`...), modes...)
	}
	if t.Webhook != nil { // agents that do not know it here ignore it, and are followed all the same
		dst = append(dst, `,"pushNotification":`...)
		dst = appendLegacyConfig(dst, &task.Webhook{URL: t.Webhook.URL, Token: t.Webhook.Token})
	}
	return append(appendParamsRest(dst, t.Message.Extensions), '}', '}')
}

// AppendGet implements translate.Client. No history is asked for: the gateway keeps its own.
func (legacy) AppendGet(dst []byte, ref agent.Ref) []byte {
	return append(rpcBegin(dst, rpcGet, ref.Task), '}', '}')
}

func (legacy) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return append(rpcBegin(dst, rpcCancel, ref.Task), '}', '}')
}

func (legacy) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return append(rpcBegin(dst, rpcResubscribe, ref.Task), '}', '}')
}

// Reply reads a Task. It copies body once; the report's texts are views of that copy. What is known already does
// not matter, because a Task holds all its artifacts.
func (legacy) Reply(body []byte, _ []task.Product) (agent.Report, error) {
	res, err := response(append([]byte(nil), body...))
	if err != nil {
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, failed(legacyFailures, res.Failure)
	}
	m := legacyMembers(res.Result)
	if !m.status.Exists() {
		return agent.Report{}, refuse("the agent's answer has no status, so it is no Task")
	}
	return m.report(new(artifacts))
}

// Push implements translate.Client. v0.1 leaves open what a webhook is told: a Task, one event as a JSON-RPC
// notification, or an event with the Task's members.
func (legacy) Push(body []byte, known []task.Product) (agent.Report, error) {
	v, err := pushed(body)
	if err != nil {
		return agent.Report{}, err
	}
	return legacyMembers(v).report(&artifacts{known: known})
}

func (legacy) NewStream(known []task.Product) translate.Stream {
	return &legacyStream{artifacts{known: known}}
}

// legacyStream reads TaskStatusUpdateEvents and TaskArtifactUpdateEvents, and Tasks, which some agents send
// in their place. They are told apart by what they have in them: names of SSE events differ, and so may
// ids, which some agents get wrong. It is not the event's "final" that ends a turn but its state, since some
// agents set it on an artifact that comes before the last status, and some never do.
type legacyStream struct{ artifacts artifacts }

func (s *legacyStream) Event(event string, data []byte) (agent.Report, error) {
	if event == "close" || len(data) == 0 { // "close" repeats the end of the task in a form of its own
		return agent.Report{}, nil
	}
	res, err := response(append([]byte(nil), data...))
	if err != nil {
		if !legacyEvent(event) { // a ping, or whatever else the agent's server sends for itself
			err = nil
		}
		return agent.Report{}, err
	}
	if res.Failure != nil {
		return agent.Report{}, failed(legacyFailures, res.Failure)
	}
	return legacyMembers(res.Result).report(&s.artifacts)
}

// legacyEvent reports whether events of a name are those of v0.1: "message" is the name where none is given.
func legacyEvent(name string) bool {
	switch name {
	case "", "message", "task_status_update", "task_artifact_update", "error":
		return true
	}
	return false
}

var legacyStatusForm = statusForm{version: "v0.1", state: legacyState, parts: legacyParts, authRequired: authRequired}

// legacyResult holds the members of a Task, a TaskStatusUpdateEvent or a TaskArtifactUpdateEvent. Those that
// are null count as missing: agents of April 2025 write so what they have not.
type legacyResult struct {
	status, artifact, artifacts gjson.Result
	event                       bool // it has what only events have, so that no artifacts do not mean none
	raw                         gjson.Result
	rest                        wire.Extensions
}

func legacyMembers(result gjson.Result) legacyResult {
	m := legacyResult{raw: result}
	members(result, func(key string, v gjson.Result) {
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
			addResult(&m.rest, key, v)
		}
	})
	return m
}

// report reads what is there: a status, artifacts, or neither, which means nothing.
func (m legacyResult) report(a *artifacts) (agent.Report, error) {
	var rep agent.Report
	if !m.raw.IsObject() {
		return rep, refuse("the agent's answer has a result that is no object")
	}
	if m.artifact.Exists() {
		if err := a.chunks(&rep, m.artifact); err != nil {
			return rep, err
		}
		rep.Chunks[len(rep.Chunks)-1].Extensions = m.rest.JSON(family, resultWords)
	}
	if !m.status.Exists() {
		return rep, nil
	}
	if err := legacyStatusForm.read(&rep, m.status); err != nil {
		return rep, err
	}
	if !m.artifact.Exists() && (m.artifacts.Exists() || !m.event) {
		rep.Full = true
		if err := a.whole(&rep, m.artifacts); err != nil {
			return rep, err
		}
	}
	rep.Revision, rep.RevisionDated = legacyStamp(&rep, m.status, m.artifacts)
	rep.TaskExtensions = m.rest.JSON(family, resultWords)
	return rep, nil
}
