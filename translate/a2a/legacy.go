// SPDX-License-Identifier: Apache-2.0

// Package a2a is the Agent2Agent protocol, one dialect a version. Legacy is v0.1, the methods tasks/send and
// tasks/sendSubscribe of April 2025, which 0.2 replaced.
package a2a

import (
	"encoding/json"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Legacy returns the client side of A2A v0.1.
func Legacy() translate.Client { return legacy{} }

type legacy struct{}

func (legacy) Name() string { return nameLegacy }

// Header implements translate.Client: v0.1 has no field for its version.
func (legacy) Header() []translate.Field { return nil }

func (legacy) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	method := "tasks/send"
	if stream {
		method = "tasks/sendSubscribe"
	}
	dst = beginLegacy(dst, method, t.Ref.Task)
	if t.Ref.Session != "" {
		dst = append(dst, `,"sessionId":`...)
		dst = task.AppendString(dst, t.Ref.Session)
	}
	dst = append(dst, `,"message":{"role":"user","parts":`...)
	dst = appendLegacyParts(dst, t.Message.DataItems)
	dst = append(appendMessageRest(dst, t.Message.Extensions), '}')
	if modes := task.Member(kept(t.Message.Extensions, "configuration"), "acceptedOutputModes"); len(modes) > 0 {
		dst = append(append(dst, `,"acceptedOutputModes":`...), modes...)
	}
	if t.Webhook != nil { // agents that do not know it here ignore it, and are followed all the same
		dst = append(dst, `,"pushNotification":`...)
		dst = appendLegacyConfig(dst, &task.Webhook{URL: t.Webhook.URL, Token: t.Webhook.Token})
	}
	return append(appendParamsRest(dst, t.Message.Extensions), '}', '}')
}

func (legacy) AppendGet(dst []byte, ref agent.Ref) []byte {
	return append(beginLegacy(dst, "tasks/get", ref.Task), '}', '}')
}

func (legacy) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return append(beginLegacy(dst, "tasks/cancel", ref.Task), '}', '}')
}

func (legacy) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return append(beginLegacy(dst, "tasks/resubscribe", ref.Task), '}', '}')
}

// beginLegacy appends a request up to the task's id in its params. The request's own id is the task's too,
// which makes a capture of the wire readable. No history is asked for: the gateway keeps its own.
func beginLegacy(dst []byte, method, taskID string) []byte {
	var room [96]byte
	id := task.AppendString(room[:0], taskID)
	dst = jsonrpc.BeginRequest(dst, id, method)
	dst = append(dst, `{"id":`...)
	return append(dst, id...)
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

// legacyResult holds the members of a Task, a TaskStatusUpdateEvent or a TaskArtifactUpdateEvent. Those that
// are null count as missing: agents of April 2025 write so what they have not.
type legacyResult struct {
	status, artifact, artifacts gjson.Result
	event                       bool // it has what only events have, so that no artifacts do not mean none
	raw                         gjson.Result
	rest                        task.Rest
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
		rep.Chunks[len(rep.Chunks)-1].Extensions = m.rest.Extra(family, resultWords)
	}
	if !m.status.Exists() {
		return rep, nil
	}
	if err := legacyStatus(&rep, m.status, "v0.1"); err != nil {
		return rep, err
	}
	if !m.artifact.Exists() && (m.artifacts.Exists() || !m.event) {
		rep.Full = true
		if err := a.whole(&rep, m.artifacts); err != nil {
			return rep, err
		}
	}
	rep.Revision, rep.RevisionDated = legacyStamp(&rep, m.status, m.artifacts)
	rep.TaskExtensions = m.rest.Extra(family, resultWords)
	return rep, nil
}

// legacyStamp returns the stamp of a task. One that rests is stamped by its status alone, since that is all that
// the last event of a stream tells. dated reports whether the agent says when it changed its state;
// whole seconds do not tell two turns within one second apart.
func legacyStamp(rep *agent.Report, status, artifacts gjson.Result) (stamp string, dated bool) {
	sum := crc32.ChecksumIEEE([]byte(status.Raw))
	if !rep.State.Settled() {
		sum = crc32.Update(sum, crc32.IEEETable, []byte(artifacts.Raw))
	}
	return rep.NativeState + " " + strconv.FormatUint(uint64(sum), 16), strings.Contains(status.Get("timestamp").Str, ".")
}

// legacyStatus reads a TaskStatus of a version before 1.0 into rep.
func legacyStatus(rep *agent.Report, status gjson.Result, version string) error {
	if !status.IsObject() {
		return refuse("the agent's answer has a status that is no object")
	}
	var state, message gjson.Result
	var others task.Rest
	members(status, func(key string, v gjson.Result) {
		switch key {
		case "state":
			state = v
		case "message":
			message = v
		case "timestamp":
		default:
			others.Add(key, v.Raw)
		}
	})
	if state.Type != gjson.String {
		return refuse("the agent's answer has a status without a state")
	}
	s, ok := legacyState(state.Str)
	if !ok {
		return refuse("the agent's answer has the state %q, which A2A %s does not have", clean(state.Str, maxWord), version)
	}
	rep.State, rep.NativeState = s, state.Str
	if message.Exists() {
		said := v03Members(message)
		items, err := legacyParts(said.parts)
		if err != nil {
			return err
		}
		rep.Items = items
		others.AddObject("message", &said.rest, messageWords)
	}
	rep.Extensions = others.Extra(family, statusWords)
	if state.Str == authRequired {
		rep.SelfResuming = true
		rep.Items = append(rep.Items, task.DataItem{Kind: task.DataKind, Data: json.RawMessage(`{"a2aState":"auth-required"}`)})
	}
	return nil
}

// authRequired is the state of a task that waits until somebody has shown the agent who they are, which comes to
// it by another way than A2A.
const authRequired = "auth-required"

// legacyState returns the AIP state that a state of a version before 1.0 means. v0.1 has fewer of them, but its
// agents may have grown. "unknown" means none: the agent does not say.
func legacyState(word string) (s task.State, ok bool) {
	switch word {
	case "submitted":
		return task.Accepted, true
	case "working":
		return task.Working, true
	case "input-required", authRequired:
		return task.AwaitingInput, true
	case "completed":
		return task.AwaitingCompletion, true
	case "canceled", "cancelled":
		return task.Canceled, true
	case "failed":
		return task.Failed, true
	case "rejected":
		return task.Rejected, true
	case "unknown":
		return task.None, true
	}
	return task.None, false
}

// members calls f with every member of an object that is not null.
func members(object gjson.Result, f func(key string, v gjson.Result)) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(key, v gjson.Result) bool {
		if v.Type != gjson.Null {
			f(key.Str, v)
		}
		return true
	})
}
