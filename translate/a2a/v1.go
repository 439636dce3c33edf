// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"net/url"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// A2A 1.0 has one set of messages and two bindings of them: JSON-RPC, and plain HTTP, which is called REST here.
// Whatever differs between the two is the envelope, and stands behind the field rest.

// The methods of A2A 1.0. A request of REST is known by the one that it stands for.
const (
	v1Send         = "SendMessage"
	v1SendStream   = "SendStreamingMessage"
	v1GetTask      = "GetTask"
	v1ListTasks    = "ListTasks"
	v1CancelTask   = "CancelTask"
	v1Subscribe    = "SubscribeToTask"
	v1CreateConfig = "CreateTaskPushNotificationConfig"
	v1GetConfig    = "GetTaskPushNotificationConfig"
	v1ListConfigs  = "ListTaskPushNotificationConfigs"
	v1DeleteConfig = "DeleteTaskPushNotificationConfig"
	v1ExtendedCard = "GetExtendedAgentCard"
)

// V1 returns the client side of A2A 1.0 over JSON-RPC.
func V1() translate.Client { return v1Client{} }

// V1REST returns the client side of A2A 1.0 over plain HTTP. It is a translate.Binder.
func V1REST() translate.Client { return v1RESTClient{v1Client{rest: true}} }

type v1Client struct{ rest bool }

func (c v1Client) Name() string {
	if c.rest {
		return name10REST
	}
	return name10
}

// v1Header tells the version with every request: agents take one without for 0.3.
var v1Header = []translate.Field{{Name: "A2A-Version", Value: "1.0"}}

func (v1Client) Header() []translate.Field { return v1Header }

// NamesTasks says that agents name their tasks themselves.
func (v1Client) NamesTasks() {}

// AppendTurn appends a message. That of a start names neither task nor context, since an agent gives its own
// names. A task that has ended cannot be gone on with: what follows is another one, in the same context.
func (c v1Client) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	method := v1Send
	if stream {
		method = v1SendStream
	}
	id := v1MessageID(t)
	dst = c.begin(dst, id, method)
	dst = append(dst, `{"message":{"messageId":`...)
	dst = task.AppendString(dst, id)
	dst = append(dst, `,"role":"ROLE_USER","parts":`...)
	dst = v1AppendParts(dst, t.Message.DataItems)
	taskID, refers := "", ""
	switch t.From {
	case task.None:
	case task.AwaitingCompletion:
		dst = legacyOptional(dst, `,"contextId":`, t.Ref.Session)
		refers = t.Ref.Task // none where the agent answered with a mere message
	default:
		taskID = t.Ref.Task
		dst = legacyOptional(dst, `,"taskId":`, taskID)
		dst = legacyOptional(dst, `,"contextId":`, t.Ref.Session)
	}
	dst = appendTurnRest(dst, t.Message.Extensions, refers)
	dst = append(dst, `},"configuration":{"historyLength":0`...) // the gateway keeps its own
	if t.Webhook != nil {
		w := *t.Webhook
		w.TaskID = taskID
		dst = append(dst, `,"taskPushNotificationConfig":`...)
		dst = v1AppendConfig(dst, &w)
	}
	dst = append(family.Append(dst, kept(t.Message.Extensions, "configuration"), nil, controlWords), '}')
	return c.end(append(appendParamsRest(dst, t.Message.Extensions), '}'))
}

func (c v1Client) AppendGet(dst []byte, ref agent.Ref) []byte {
	if c.rest {
		return dst
	}
	dst = c.beginTask(dst, v1GetTask, ref)
	return c.end(append(dst, `,"historyLength":0}`...))
}

func (c v1Client) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return c.appendBare(dst, v1CancelTask, ref)
}

func (c v1Client) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return c.appendBare(dst, v1Subscribe, ref)
}

// appendBare appends a request that says no more than which task it is about.
func (c v1Client) appendBare(dst []byte, method string, ref agent.Ref) []byte {
	if c.rest { // the path says which
		return append(dst, '{', '}')
	}
	return c.end(append(c.beginTask(dst, method, ref), '}'))
}

func (c v1Client) beginTask(dst []byte, method string, ref agent.Ref) []byte {
	dst = c.begin(dst, ref.Task, method)
	dst = append(dst, `{"id":`...)
	return task.AppendString(dst, ref.Task)
}

// begin appends a request up to its params. The request's own id is that of what it is about, which makes a
// capture of the wire readable.
func (c v1Client) begin(dst []byte, about, method string) []byte {
	if c.rest {
		return dst
	}
	var room [96]byte
	return jsonrpc.BeginRequest(dst, task.AppendString(room[:0], about), method)
}

func (c v1Client) end(dst []byte) []byte {
	if c.rest {
		return dst
	}
	return jsonrpc.End(dst)
}

type v1RESTClient struct{ v1Client }

// Bind implements translate.Binder. Subscribing is a POST: that is what the text of A2A says, where its schema
// says GET, and agents take it.
func (v1RESTClient) Bind(e translate.Operation, ref agent.Ref) (method, path string) {
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
