// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// decoder reads the requests of callers of v0.1.
type decoder struct{ wire.Reader }

// Decode implements translate.Server.
func (s server) Decode(req *translate.Request) (translate.Call, error) {
	r := decoder{wire.Reader{Prefix: "params."}}
	var call translate.Call
	call.Message.SenderRole = task.Leader
	if !r.Object(req.Params, "") {
		return translate.Call{}, r.Err
	}
	switch req.Method {
	case send:
		call.Method, call.Blocking = send, true
		r.send(req.Params, &call)
	case sendSubscribe:
		call.Method = sendSubscribe
		r.send(req.Params, &call)
		call.Stream, call.Snapshot = true, true // in an existing task, the caller has seen everything before
	case rpc.Get:
		call.Method = rpc.Get
		rpc.ReadTask(&r.Reader, req.Params, task.Get, &call)
	case rpc.Cancel:
		call.Method = rpc.Cancel
		rpc.ReadTask(&r.Reader, req.Params, task.Cancel, &call)
		call.Finished = !s.confirm
	case rpc.Resubscribe:
		call.Method = rpc.Resubscribe
		rpc.ReadTask(&r.Reader, req.Params, task.ReStream, &call)
	case pushSet:
		call.Method, call.Op = pushSet, translate.SetWebhook
		call.Webhook = webhook.ReadParams(&r.Reader, req.Params, "id", version.NameLegacy)
		call.Webhook.ID = webhookID
		call.Message.Command, call.Message.TaskID = task.Get, call.Webhook.TaskID
	case pushGet:
		call.Method, call.Op = pushGet, translate.GetWebhooks
		rpc.ReadTask(&r.Reader, req.Params, task.Get, &call)
		call.Webhook = &task.Webhook{TaskID: call.Message.TaskID, ID: webhookID, Dialect: version.NameLegacy}
	default:
		r.Err = task.Errorf(task.MethodNotFound, "the methods of A2A v0.1 are tasks/send, sendSubscribe, get, cancel, "+
			"resubscribe and pushNotification/set and get")
	}
	if r.Err != nil {
		return translate.Call{}, r.Err
	}
	return call, nil
}

// webhookID is the id of every webhook set in v0.1. There, a task has at most one, without a name. So a new one
// replaces it.
const webhookID = "default"

// send reads TaskSendParams. The caller names the task, so the same id again continues it.
func (r *decoder) send(params gjson.Result, call *translate.Call) {
	m := &call.Message
	m.Command, call.StartOrContinue, call.Begun = task.Start, true, true
	var id, session, message, config gjson.Result
	var rest extension.Request
	wire.Members(params, func(key string, v gjson.Result) {
		switch key {
		case "id":
			id = v
		case "sessionId":
			session = v
		case "message":
			message = v
		case "historyLength":
			call.History = rpc.ReadHistory(&r.Reader, v, "historyLength")
		case "pushNotification":
			config = v
		case "acceptedOutputModes": // in later versions it is in the configuration
			rest.Configuration.Add(key, v)
		case "configuration", "tenant":
		default:
			rest.Params.Add(key, v)
		}
	})
	m.TaskID = r.RequiredID(id, "id")
	m.SessionID = r.ID(session, "sessionId")
	wire.Own(&m.TaskID, &m.SessionID)
	if !wire.Absent(config) {
		w := &task.Webhook{TaskID: m.TaskID, Dialect: version.NameLegacy}
		webhook.Read(&r.Reader, config, "pushNotification", w)
		w.ID = webhookID
		call.Webhook = w
	}
	if !r.Object(message, "message") {
		return
	}
	var parts, references gjson.Result
	wire.Members(message, func(key string, v gjson.Result) {
		switch key {
		case "role":
			r.Word(v, "message.role", "user")
		case "parts":
			parts = v
		case "referenceTaskIds":
			references = v
		case "kind", "type": // of other versions
		default:
			rest.Message.Add(key, v)
		}
	})
	m.DataItems = rpc.ReadParts(&r.Reader, parts, "message.parts")
	m.References = extension.References(&r.Reader, references)
	m.Extensions = rest.Extensions()
}
