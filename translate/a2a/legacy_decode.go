// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// legacyDecoder reads what callers of v0.1 send.
type legacyDecoder struct{ legacyReader }

// Decode implements translate.Server.
func (s legacyServer) Decode(req *translate.Request) (translate.Call, error) {
	var r legacyDecoder
	var call translate.Call
	call.Message.SenderRole = task.Leader
	if !r.object(req.Params, "params") {
		return translate.Call{}, r.err
	}
	switch req.Method {
	case legacySend:
		call.Method, call.Blocking = legacySend, true
		r.send(req.Params, &call)
	case legacySendSubscribe:
		call.Method = legacySendSubscribe
		r.send(req.Params, &call)
		call.Stream, call.Snapshot = true, true // of a task that exists, since what came before has been told
	case rpcGet:
		call.Method = rpcGet
		r.about(req.Params, task.Get, &call)
	case rpcCancel:
		call.Method = rpcCancel
		r.about(req.Params, task.Cancel, &call)
		call.Finished = !s.confirm
	case rpcResubscribe:
		call.Method = rpcResubscribe
		r.about(req.Params, task.ReStream, &call)
	case legacyPushSet:
		call.Method, call.Op = legacyPushSet, translate.SetWebhook
		call.Webhook = legacyReadWebhook(&r.legacyReader, req.Params, "id", nameLegacy)
		call.Webhook.ID = legacyWebhookID
		call.Message.Command, call.Message.TaskID = task.Get, call.Webhook.TaskID
	case legacyPushGet:
		call.Method, call.Op = legacyPushGet, translate.GetWebhooks
		r.about(req.Params, task.Get, &call)
		call.Webhook = &task.Webhook{TaskID: call.Message.TaskID, ID: legacyWebhookID, Dialect: nameLegacy}
	default:
		r.err = task.Errorf(task.MethodNotFound, "the methods of A2A v0.1 are tasks/send, sendSubscribe, get, cancel, resubscribe and pushNotification/set and get")
	}
	if r.err != nil {
		return translate.Call{}, r.err
	}
	return call, nil
}

// legacyWebhookID is the id of every webhook that is set in v0.1, where a task has only one, without a name. So the
// next one replaces it.
const legacyWebhookID = "default"

// send reads TaskSendParams. The caller has named the task, so the same id again goes on with it.
func (r *legacyDecoder) send(params gjson.Result, call *translate.Call) {
	m := &call.Message
	m.Command, call.StartOrContinue = task.Start, true
	var message, config gjson.Result
	var rest callRest
	members(params, func(key string, v gjson.Result) {
		switch key {
		case "id":
			m.TaskID = r.id(v, "params.id")
		case "sessionId":
			m.SessionID = r.id(v, "params.sessionId")
		case "message":
			message = v
		case "historyLength":
			call.History = r.count(v, "params.historyLength")
		case "pushNotification":
			config = v
		case "acceptedOutputModes": // which has moved in later versions
			rest.configuration.Add(key, v)
		case "configuration", "tenant":
		default:
			rest.params.Add(key, v)
		}
	})
	r.required(m.TaskID, "params.id")
	if config.Exists() {
		w := &task.Webhook{TaskID: m.TaskID, Dialect: nameLegacy}
		legacyReadConfig(&r.legacyReader, config, "params.pushNotification", w)
		w.ID = legacyWebhookID
		call.Webhook = w
	}
	if !r.object(message, "params.message") {
		return
	}
	var parts gjson.Result
	members(message, func(key string, v gjson.Result) {
		switch key {
		case "role":
			r.word(v, "params.message.role", "user")
		case "parts":
			parts = v
		case "kind", "type": // of other versions
		default:
			rest.message.Add(key, v)
		}
	})
	m.DataItems = r.items(parts, "params.message.parts")
	m.Extensions = rest.extra()
}
