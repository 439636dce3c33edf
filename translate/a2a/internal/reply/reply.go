// SPDX-License-Identifier: Apache-2.0

// Package reply reads the parts of answers common to several versions: errors, ids, pushed updates and cards.
package reply

import (
	"bytes"
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Failures are the errors of v0.1 by their code. An error blaming the gateway's own request is Internal, so that no
// Leader looks for a mistake in a request it did not write.
var Failures = []wire.Failure{
	{Code: -32700, Kind: task.Internal, Detail: "the agent could not read the gateway's request"},
	{Code: -32600, Kind: task.Internal, Detail: "the agent does not accept the gateway's request"},
	{Code: -32601, Kind: task.MethodNotFound, Detail: "the agent does not have this method"},
	{Code: -32602, Kind: task.InvalidParams, Detail: "the agent does not accept the parameters"},
	{Code: -32603, Kind: task.Internal, Detail: "the agent failed"},
	{Code: -32001, Kind: task.TaskNotFound, Detail: "the agent does not know this task"},
	{Code: -32002, Kind: task.TaskNotCancelable, Detail: "the agent refuses to cancel this task"},
	{Code: -32003, Kind: task.NotificationNotSupported, Detail: "the agent has no push notifications"},
	{Code: -32004, Kind: task.UnsupportedOperation, Detail: "the agent does not support this"},
	{Code: -32005, Kind: task.ContentTypeNotSupported, Detail: "the agent does not take this kind of content"},
}

// FailuresV03 are the errors of 0.2 and 0.3 by their code.
var FailuresV03 = append([]wire.Failure{
	{Code: -32006, Kind: task.InvalidAgentResponse, Detail: "the agent says that it made an invalid response"},
	{Code: -32007, Kind: task.UnsupportedOperation, Detail: "the agent has no extended card"},
	{Code: -31401, Kind: task.Internal, Detail: "the agent requires the gateway to authenticate itself"},
}, Failures...)

// Name adds the ids of a task and its session to a report. The session is the one of the request, unless the agent says
// another one.
func Name(rep *agent.Report, id, session, sent string) {
	rep.Ref = &agent.Ref{Task: id, Session: cmp.Or(session, sent)}
	rep.OwnSession = rep.Ref.Session != sent && len(session) <= wire.MaxID
}

// Pushed reads the body of an agent's unasked report of a task, and returns the task or the event in it. Agents put
// envelopes around that: a response with a result, a notification with params, and an event in those. It copies body:
// the value is a view of the copy.
func Pushed(body []byte) (gjson.Result, error) {
	v, err := wire.Value(body, "notification")
	if err != nil {
		return v, err
	}
	if !v.IsObject() {
		return v, wire.Refuse("the agent's notification is no object")
	}
	for _, envelope := range [...]string{"result", "params", "event"} {
		if inner := jsonrpc.Member(v, envelope); inner.IsObject() {
			v = inner
		}
	}
	return v, nil
}

// IsDone reports whether an event is no more than the last word of many agents' streams, taken from the streams of
// their models.
func IsDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// CardID is the id of the request for the extended card. An agent shows that card only to known callers. The gateway is
// one of them, and shows it to its own callers.
const CardID = "card"

// Card returns the card in the answer to a query. failed turns an error of the agent into one of its kind.
func Card(body []byte, q *translate.Query, failed func(*jsonrpc.Failure) error) ([]byte, error) {
	res, err := wire.ResponseInExchange(body, q)
	switch {
	case err != nil:
		return nil, err
	case res.Failure != nil:
		return nil, failed(res.Failure)
	case !res.Result.IsObject():
		return nil, wire.Refuse("the agent's answer has a result that is no card")
	}
	return []byte(res.Result.Raw), nil
}
