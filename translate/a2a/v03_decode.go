// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// atOnce is a timeout for the answer to callers that do not wait for their task to get anywhere.
const atOnce = time.Nanosecond

// v03Decoder reads what callers of 0.2 and 0.3 send.
type v03Decoder struct{ legacyReader }

// Decode implements translate.Server.
func (s v03Server) Decode(req *translate.Request) (translate.Call, error) {
	var r v03Decoder
	var call translate.Call
	call.Message.SenderRole = task.Leader
	call.Blocking = req.Method == v03Send
	if req.Method == v03ExtendedCard { // the only one without params
		call.Method, call.Op, call.Message.Command = v03ExtendedCard, translate.ExtendedCard, task.Get
		return call, nil
	}
	if !r.object(req.Params, "params") {
		return translate.Call{}, r.err
	}
	switch req.Method {
	case v03Send:
		call.Method = v03Send
		r.send(req.Params, &call)
	case v03Stream:
		call.Method, call.Stream = v03Stream, true
		r.send(req.Params, &call)
		call.Snapshot = call.Message.Command == task.Continue // a start tells all that happens
	case rpcGet:
		call.Method, call.History = rpcGet, -1
		r.about(req.Params, task.Get, &call)
	case rpcCancel:
		call.Method = rpcCancel
		r.about(req.Params, task.Cancel, &call)
	case rpcResubscribe:
		call.Method = rpcResubscribe
		r.about(req.Params, task.ReStream, &call)
	case v03PushSet:
		call.Method, call.Op = v03PushSet, translate.SetWebhook
		call.Webhook = legacyReadWebhook(&r.legacyReader, req.Params, "taskId", name03)
	case v03PushGet:
		call.Method, call.Op = v03PushGet, translate.GetWebhooks
		call.Webhook = r.webhookID(req.Params)
	case v03PushList:
		call.Method, call.Op = v03PushList, translate.GetWebhooks
		call.Webhook = r.webhookID(req.Params)
		call.Webhook.ID = ""
	case v03PushDelete:
		call.Method, call.Op = v03PushDelete, translate.DeleteWebhooks
		call.Webhook = r.webhookID(req.Params)
		r.required(call.Webhook.ID, "params.pushNotificationConfigId")
	default:
		r.err = task.Errorf(task.MethodNotFound, "the methods of A2A 0.3 are message/send and stream, tasks/get, cancel and resubscribe, and tasks/pushNotificationConfig/set, get, list and delete")
	}
	if r.err != nil {
		return translate.Call{}, r.err
	}
	if call.Op != translate.Command {
		call.TaskExists = true
		call.Message.Command = task.Get
		call.Message.TaskID = call.Webhook.TaskID
	}
	if call.Message.Command == task.Start {
		call.AutoComplete = !s.confirm
	}
	return call, nil
}

// webhookID reads the params that name a webhook: {id, pushNotificationConfigId}, the first of which is the task's.
func (r *v03Decoder) webhookID(params gjson.Result) *task.Webhook {
	w := &task.Webhook{Dialect: name03}
	members(params, func(key string, v gjson.Result) {
		switch key {
		case "id":
			w.TaskID = r.id(v, "params.id")
		case "pushNotificationConfigId":
			w.ID = r.id(v, "params.pushNotificationConfigId")
		}
	})
	r.required(w.TaskID, "params.id")
	return w
}

// send reads MessageSendParams. A message that names a task goes on with it; any other starts one, which the gateway
// gives a name.
func (r *v03Decoder) send(params gjson.Result, call *translate.Call) {
	var message, configuration gjson.Result
	var rest callRest
	members(params, func(key string, v gjson.Result) {
		switch key {
		case "message":
			message = v
		case "configuration":
			configuration = v
		case "tenant":
		default:
			rest.params.Add(key, v)
		}
	})
	if !r.object(message, "params.message") {
		return
	}
	const at = "params.message."
	m := &call.Message
	var parts gjson.Result
	role := false
	members(message, func(key string, v gjson.Result) {
		switch key {
		case "kind":
			r.word(v, at+"kind", "message")
		case "role":
			role = true
			r.word(v, at+"role", "user")
		case "messageId":
			m.ID = r.id(v, at+"messageId")
		case "taskId":
			m.TaskID = r.id(v, at+"taskId")
		case "contextId":
			m.SessionID = r.id(v, at+"contextId")
		case "parts":
			parts = v
		case "type":
		default:
			rest.message.Add(key, v)
		}
	})
	r.required(m.ID, at+"messageId")
	if !role {
		r.fail(at+"role", `role is missing; it must be "user"`)
	}
	m.DataItems = r.items(parts, at+"parts")
	if m.Command = task.Start; m.TaskID != "" {
		m.Command, call.Strict = task.Continue, true
	}
	if configuration.Exists() && r.object(configuration, "params.configuration") {
		r.configuration(configuration, call, &rest.configuration)
	}
	if len(m.DataItems) == 0 {
		r.fail(at+"parts", "parts must have at least one entry")
	}
	m.Extensions = rest.extra()
}

// configuration reads a MessageSendConfiguration. Which content its caller takes is between it and the agent, so that
// goes to others.
func (r *v03Decoder) configuration(configuration gjson.Result, call *translate.Call, others *wire.Extensions) {
	const at = "params.configuration."
	members(configuration, func(key string, v gjson.Result) {
		switch key {
		case "blocking":
			if !r.flag(v, at+"blocking") {
				call.Terms.Response, call.Blocking = atOnce, false
			}
		case "historyLength":
			call.History = r.count(v, at+"historyLength")
		case "pushNotificationConfig":
			w := &task.Webhook{TaskID: call.Message.TaskID, Dialect: name03}
			legacyReadConfig(&r.legacyReader, v, at+"pushNotificationConfig", w)
			call.Webhook = w
		case "returnImmediately", "taskPushNotificationConfig": // of other versions
		default:
			if key != "acceptedOutputModes" || v.Get("0").Exists() { // it may have to be there without saying anything
				others.Add(key, v)
			}
		}
	})
}
