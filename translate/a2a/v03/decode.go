// SPDX-License-Identifier: Apache-2.0

package v03

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// decoder reads the requests of callers of 0.2 and 0.3.
type decoder struct {
	wire.Reader
	req *translate.Request
}

// Decode implements translate.Server.
func (s server) Decode(req *translate.Request) (translate.Call, error) {
	r := decoder{wire.Reader{Prefix: "params."}, req}
	var call translate.Call
	call.Message.SenderRole = task.Leader
	call.Blocking = req.Method == send
	if req.Method == extendedCard { // the only one without params
		call.Method, call.Op, call.Message.Command = extendedCard, translate.ExtendedCard, task.Get
		return call, nil
	}
	if !r.Object(req.Params, "") {
		return translate.Call{}, r.Err
	}
	switch req.Method {
	case send:
		call.Method = send
		r.send(req.Params, &call)
	case sendStream:
		call.Method, call.Stream = sendStream, true
		r.send(req.Params, &call)
		call.Snapshot = call.Message.Command == task.Continue // a start streams every event
	case rpc.Get:
		call.Method, call.History = rpc.Get, -1
		rpc.ReadTask(&r.Reader, req.Params, task.Get, &call)
	case rpc.Cancel:
		call.Method = rpc.Cancel
		rpc.ReadTask(&r.Reader, req.Params, task.Cancel, &call)
	case rpc.Resubscribe:
		call.Method = rpc.Resubscribe
		rpc.ReadTask(&r.Reader, req.Params, task.ReStream, &call)
	case pushSet:
		call.Method, call.Op = pushSet, translate.SetWebhook
		call.Webhook = webhook.ReadParams(&r.Reader, req.Params, "taskId", version.Name03)
	case pushGet:
		call.Method, call.Op = pushGet, translate.GetWebhooks
		call.Webhook = r.webhookID(req.Params)
	case pushList:
		call.Method, call.Op = pushList, translate.GetWebhooks
		call.Webhook = r.webhookID(req.Params)
		call.Webhook.ID = ""
	case pushDelete:
		call.Method, call.Op = pushDelete, translate.DeleteWebhooks
		call.Webhook = r.webhookID(req.Params)
		r.RequiredID(jsonrpc.Member(req.Params, "pushNotificationConfigId"), "pushNotificationConfigId")
	default:
		r.Err = task.Errorf(task.MethodNotFound, "the methods of A2A 0.3 are message/send and stream, "+
			"tasks/get, cancel and resubscribe, and tasks/pushNotificationConfig/set, get, list and delete")
	}
	if r.Err != nil {
		return translate.Call{}, r.Err
	}
	if call.Op != translate.Command {
		call.TaskExists = true
		call.Message.Command = task.Get
		call.Message.TaskID = call.Webhook.TaskID
	}
	if call.Message.Command == task.Start {
		call.AutoComplete, call.Refusable, call.Begun = !s.confirm, true, true
	}
	return call, nil
}

// webhookID reads the params with the name of a webhook: {id, pushNotificationConfigId}. The first is the task's.
func (r *decoder) webhookID(params gjson.Result) *task.Webhook {
	w := &task.Webhook{Dialect: version.Name03}
	w.TaskID = r.RequiredID(jsonrpc.Member(params, "id"), "id")
	w.ID = r.ID(jsonrpc.Member(params, "pushNotificationConfigId"), "pushNotificationConfigId")
	wire.Own(&w.TaskID, &w.ID)
	return w
}

// send reads MessageSendParams. A message naming a task continues it; any other starts one, and the gateway makes its
// id.
func (r *decoder) send(params gjson.Result, call *translate.Call) {
	var message, configuration gjson.Result
	var rest extension.Request
	wire.Members(params, func(key string, v gjson.Result) {
		switch key {
		case "message":
			message = v
		case "configuration":
			configuration = v
		case "tenant":
		default:
			rest.Params.Add(key, v)
		}
	})
	if !r.Object(message, "message") {
		return
	}
	var id, taskID, contextID, references, role, parts gjson.Result
	wire.Members(message, func(key string, v gjson.Result) {
		switch key {
		case "kind":
			r.Word(v, "message.kind", "message")
		case "role":
			role = v
		case "messageId":
			id = v
		case "taskId":
			taskID = v
		case "contextId":
			contextID = v
		case "referenceTaskIds":
			references = v
		case "parts":
			parts = v
		case "type":
		default:
			rest.Message.Add(key, v)
		}
	})
	m := &call.Message
	m.ID = r.PresentID(id, "message.messageId")
	m.TaskID = r.ID(taskID, "message.taskId")
	m.SessionID = r.ID(contextID, "message.contextId")
	wire.Own(&m.ID, &m.TaskID, &m.SessionID)
	r.Word(role, "message.role", "user")
	m.DataItems = rpc.ReadParts(&r.Reader, parts, "message.parts")
	m.References = extension.References(&r.Reader, references)
	if m.Command = task.Start; m.TaskID != "" {
		m.Command, call.Strict, call.SameSession = task.Continue, true, true
	}
	if !wire.Absent(configuration) && r.Object(configuration, "configuration") {
		r.configuration(configuration, call, &rest.Configuration)
	}
	if len(m.DataItems) == 0 {
		r.Fail("message.parts", "parts must have at least one entry")
	}
	rest.Activate(r.req.Activated)
	m.Extensions = rest.Extensions()
}

// configuration reads a MessageSendConfiguration. The media types accepted by the caller are for the agent, so they go
// to others.
func (r *decoder) configuration(configuration gjson.Result, call *translate.Call, others *wire.Extensions) {
	const at = "configuration."
	wire.Members(configuration, func(key string, v gjson.Result) {
		switch key {
		case "blocking":
			if !r.Flag(v, at+"blocking") {
				call.Terms.Response, call.Blocking = task.NoWait, false
			}
		case "historyLength":
			call.History = rpc.ReadHistory(&r.Reader, v, at+"historyLength")
		case "pushNotificationConfig":
			w := &task.Webhook{TaskID: call.Message.TaskID, Dialect: version.Name03}
			webhook.Read(&r.Reader, v, at+"pushNotificationConfig", w)
			call.Webhook = w
		case "returnImmediately", "taskPushNotificationConfig": // of other versions
		default:
			if key != "acceptedOutputModes" || v.Get("0").Exists() { // until 0.2.5 an empty list was required
				others.Add(key, v)
			}
		}
	})
}
