// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/value"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// legacyDecoder reads what callers of v0.1 send.
type decoder struct{ rpc.Reader }

// Decode implements translate.Server.
func (s server) Decode(req *translate.Request) (translate.Call, error) {
	var r decoder
	var call translate.Call
	call.Message.SenderRole = task.Leader
	if !r.Object(req.Params, "params") {
		return translate.Call{}, r.Err
	}
	switch req.Method {
	case send:
		call.Method, call.Blocking = send, true
		r.send(req.Params, &call)
	case sendSubscribe:
		call.Method = sendSubscribe
		r.send(req.Params, &call)
		call.Stream, call.Snapshot = true, true // of a task that exists, since what came before has been told
	case rpc.Get:
		call.Method = rpc.Get
		r.About(req.Params, task.Get, &call)
	case rpc.Cancel:
		call.Method = rpc.Cancel
		r.About(req.Params, task.Cancel, &call)
		call.Finished = !s.confirm
	case rpc.Resubscribe:
		call.Method = rpc.Resubscribe
		r.About(req.Params, task.ReStream, &call)
	case pushSet:
		call.Method, call.Op = pushSet, translate.SetWebhook
		call.Webhook = webhook.ReadParams(&r.Reader, req.Params, "id", version.NameLegacy)
		call.Webhook.ID = webhookID
		call.Message.Command, call.Message.TaskID = task.Get, call.Webhook.TaskID
	case pushGet:
		call.Method, call.Op = pushGet, translate.GetWebhooks
		r.About(req.Params, task.Get, &call)
		call.Webhook = &task.Webhook{TaskID: call.Message.TaskID, ID: webhookID, Dialect: version.NameLegacy}
	default:
		r.Err = task.Errorf(task.MethodNotFound, "the methods of A2A v0.1 are tasks/send, sendSubscribe, get, cancel, resubscribe and pushNotification/set and get")
	}
	if r.Err != nil {
		return translate.Call{}, r.Err
	}
	return call, nil
}

// legacyWebhookID is the id of every webhook that is set in v0.1, where a task has only one, without a name. So the
// next one replaces it.
const webhookID = "default"

// send reads TaskSendParams. The caller has named the task, so the same id again goes on with it.
func (r *decoder) send(params gjson.Result, call *translate.Call) {
	m := &call.Message
	m.Command, call.StartOrContinue = task.Start, true
	var message, config gjson.Result
	var rest extension.Request
	value.Members(params, func(key string, v gjson.Result) {
		switch key {
		case "id":
			m.TaskID = r.ID(v, "params.id")
		case "sessionId":
			m.SessionID = r.ID(v, "params.sessionId")
		case "message":
			message = v
		case "historyLength":
			call.History = r.Count(v, "params.historyLength")
		case "pushNotification":
			config = v
		case "acceptedOutputModes": // which has moved in later versions
			rest.Configuration.Add(key, v)
		case "configuration", "tenant":
		default:
			rest.Params.Add(key, v)
		}
	})
	r.Required(m.TaskID, "params.id")
	if config.Exists() {
		w := &task.Webhook{TaskID: m.TaskID, Dialect: version.NameLegacy}
		webhook.Read(&r.Reader, config, "params.pushNotification", w)
		w.ID = webhookID
		call.Webhook = w
	}
	if !r.Object(message, "params.message") {
		return
	}
	var parts gjson.Result
	value.Members(message, func(key string, v gjson.Result) {
		switch key {
		case "role":
			r.Word(v, "params.message.role", "user")
		case "parts":
			parts = v
		case "kind", "type": // of other versions
		default:
			rest.Message.Add(key, v)
		}
	})
	m.DataItems = r.Items(parts, "params.message.parts")
	m.Extensions = rest.Extensions()
}
