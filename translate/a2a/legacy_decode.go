// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Decode implements translate.Server.
func (s legacyServer) Decode(req *translate.Request) (translate.Call, error) {
	var r legacyReader
	var call translate.Call
	call.Message.SenderRole = task.Leader
	if !r.object(req.Params, "params") {
		return translate.Call{}, r.err
	}
	switch req.Method {
	case legacySend:
		call.Method, call.Blocking = legacySend, true
		r.legacySend(req.Params, &call)
	case legacySendSubscribe:
		call.Method = legacySendSubscribe
		r.legacySend(req.Params, &call)
		call.Stream, call.Snapshot = true, true // of a task that exists, since what came before has been told
	case legacyGet:
		call.Method = legacyGet
		r.about(req.Params, task.Get, &call)
	case legacyCancel:
		call.Method = legacyCancel
		r.about(req.Params, task.Cancel, &call)
		call.Finished = !s.confirm
	case legacyResubscribe:
		call.Method = legacyResubscribe
		r.about(req.Params, task.ReStream, &call)
	case legacyPushSet:
		call.Method, call.Op = legacyPushSet, translate.SetWebhook
		call.Webhook = r.webhook(req.Params, "id", nameLegacy)
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

// about reads the params of methods that are about one task that exists: {id, historyLength}.
func (r *legacyReader) about(params gjson.Result, command task.Command, call *translate.Call) {
	m := &call.Message
	m.Command = command
	members(params, func(key string, v gjson.Result) {
		switch key {
		case "id":
			m.TaskID = r.id(v, "params.id")
		case "historyLength":
			call.History = r.count(v, "params.historyLength")
		}
	})
	r.required(m.TaskID, "params.id")
	switch command {
	case task.Cancel:
		call.Strict = true
	case task.ReStream:
		call.Stream, call.Snapshot = true, true
	}
}

// webhook reads the params that set one: {id, pushNotificationConfig}, where taskID is the name of the first.
func (r *legacyReader) webhook(params gjson.Result, taskID, dialect string) *task.Webhook {
	w := &task.Webhook{Dialect: dialect}
	var config gjson.Result
	members(params, func(key string, v gjson.Result) {
		switch key {
		case taskID:
			w.TaskID = r.id(v, "params."+taskID)
		case "pushNotificationConfig":
			config = v
		}
	})
	r.required(w.TaskID, "params."+taskID)
	r.config(config, "params.pushNotificationConfig", w)
	return w
}

// legacySend reads TaskSendParams. The caller has named the task, so the same id again goes on with it.
func (r *legacyReader) legacySend(params gjson.Result, call *translate.Call) {
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
			rest.configuration.Add(key, v.Raw)
		case "configuration", "tenant":
		default:
			rest.params.Add(key, v.Raw)
		}
	})
	r.required(m.TaskID, "params.id")
	if config.Exists() {
		w := &task.Webhook{TaskID: m.TaskID, Dialect: nameLegacy}
		r.config(config, "params.pushNotification", w)
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
			rest.message.Add(key, v.Raw)
		}
	})
	m.DataItems = r.items(parts, "params.message.parts")
	m.Extensions = rest.extra()
}
