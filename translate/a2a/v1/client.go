// SPDX-License-Identifier: Apache-2.0

// Package v1 is A2A 1.0: one set of messages with three bindings. JSON-RPC, and HTTP+JSON, called REST here, differ in
// the envelope only. The field rest selects it. gRPC has the objects of REST in another encoding.
package v1

import (
	"net/url"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/message"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The methods of A2A 1.0. Every request of REST stands for one of them.
const (
	send         = "SendMessage"
	sendStream   = "SendStreamingMessage"
	getTask      = "GetTask"
	listTasks    = "ListTasks"
	cancelTask   = "CancelTask"
	subscribe    = "SubscribeToTask"
	createConfig = "CreateTaskPushNotificationConfig"
	getConfig    = "GetTaskPushNotificationConfig"
	listConfigs  = "ListTaskPushNotificationConfigs"
	deleteConfig = "DeleteTaskPushNotificationConfig"
	extendedCard = "GetExtendedAgentCard"
)

// Client returns the side of A2A 1.0 over JSON-RPC towards agents.
func Client() translate.Client { return client{} }

// RESTClient returns the side of A2A 1.0 over HTTP+JSON towards agents. It is a translate.Binder.
func RESTClient() translate.Client { return restClient{client{rest: true}} }

type client struct {
	rest  bool
	query translate.Query
}

func (c client) Name() string {
	if c.rest {
		return version.Name10REST
	}
	return version.Name10
}

// For implements translate.Client.
func (c client) For(q translate.Query) translate.Client {
	c.query = q
	return c
}

// header names the version in every request: agents take a request without one for 0.3.
var header = []translate.Field{{Name: "A2A-Version", Value: "1.0"}}

func (client) Header() []translate.Field { return header }

// NamesTasks implements translate.Namer: agents name their tasks themselves.
func (client) NamesTasks() {}

// Activate implements translate.Activator.
func (client) Activate(t *agent.Turn) []translate.Field { return message.Activating(t) }

// NamesSessions implements translate.SessionNamer.
func (client) NamesSessions() {}

// AppendTurn appends a message. A start names the context alone, since the agent names the task. An ended task cannot
// be continued: its continue starts another one in the same context.
func (c client) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	extensions := wire.WithPassed(t.Message.Extensions, t.Message.Params)
	method := send
	if stream {
		method = sendStream
	}
	id := message.ID(t)
	dst = c.begin(dst, id, method)
	dst = append(dst, `{"message":{"messageId":`...)
	dst = task.AppendString(dst, id)
	dst = append(dst, `,"role":"ROLE_USER","parts":`...)
	dst = appendParts(dst, wire.Items(&t.Message))
	taskID, refers := "", ""
	switch t.From {
	case task.None:
	case task.AwaitingCompletion:
		refers = t.Ref.Task // empty if the agent answered with a Message
	default:
		taskID = t.Ref.Task
		dst = wire.AppendOptional(dst, `,"taskId":`, taskID)
	}
	dst = wire.AppendOptional(dst, `,"contextId":`, t.Ref.Session)
	dst = extension.AppendTurn(dst, extensions, refers, t.References)
	dst = append(dst, `},"configuration":{"historyLength":0`...) // no history: the gateway keeps its own
	if t.Webhook != nil {
		w := *t.Webhook
		w.TaskID = taskID
		dst = append(dst, `,"taskPushNotificationConfig":`...)
		dst = appendConfig(dst, &w)
	}
	dst = append(extension.AppendConfiguration(dst, extensions, true), '}')
	return c.end(append(extension.AppendParams(dst, extensions), '}'))
}

func (c client) AppendGet(dst []byte, ref agent.Ref) []byte {
	if c.rest {
		return dst
	}
	dst = c.beginTask(dst, getTask, ref)
	return c.end(append(dst, `,"historyLength":0}`...))
}

func (c client) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return c.appendBare(dst, cancelTask, ref)
}

func (c client) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return c.appendBare(dst, subscribe, ref)
}

// appendBare appends a request with only the name of its task.
func (c client) appendBare(dst []byte, method string, ref agent.Ref) []byte {
	if c.rest { // the path names it
		return append(dst, '{', '}')
	}
	return c.end(append(c.beginTask(dst, method, ref), '}'))
}

func (c client) beginTask(dst []byte, method string, ref agent.Ref) []byte {
	dst = c.begin(dst, ref.Task, method)
	dst = append(dst, `{"id":`...)
	return task.AppendString(dst, ref.Task)
}

// begin appends a request up to its params. about is the id of its message or task.
func (c client) begin(dst []byte, about, method string) []byte {
	if c.rest {
		return dst
	}
	return wire.BeginRequest(dst, &c.query, about, method)
}

func (c client) end(dst []byte) []byte {
	if c.rest {
		return dst
	}
	return jsonrpc.End(dst)
}

type restClient struct{ client }

// For implements translate.Client. No answer has the id of its request, so none is known to go on by another task.
func (c restClient) For(q translate.Query) translate.Client {
	q.Turn = false
	c.query = q
	return c
}

// Bind implements translate.Binder. Subscribing is a POST in the text of A2A and a GET in its schema; agents accept
// POST.
func (restClient) Bind(e translate.Operation, ref agent.Ref) (method, path string) {
	switch e {
	case translate.Send:
		return "POST", "/message:send"
	case translate.SendStream:
		return "POST", "/message:stream"
	case translate.Describe:
		return "GET", "/extendedAgentCard"
	}
	path = "/tasks/" + url.PathEscape(ref.Task)
	switch e {
	case translate.Cancel:
		return "POST", path + ":cancel"
	case translate.Resubscribe:
		return "POST", path + ":subscribe"
	}
	return "GET", path + "?historyLength=0"
}

// Interface guards.
var (
	_ translate.Client    = client{}
	_ translate.Describer = client{}
	_ translate.Binder    = restClient{}
	_ translate.Describer = restClient{}
)
