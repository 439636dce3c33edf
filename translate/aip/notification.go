// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// This file is AIP's notification style (§6.3). A NotificationConfig of AIP is the canon's Webhook.

// tokenHeader carries a webhook's token (§6.3.5). Later versions write it X-ACPs-AIP-Notification-Token. It is the
// same field.
const tokenHeader = "X-ACPS-AIP-Notification-Token"

// notificationSet reads a NotificationConfig (§6.3.1).
func (r *reader) notificationSet(params gjson.Result) translate.Call {
	w := &task.Webhook{Dialect: r.version.name}
	call := translate.Call{Op: translate.SetWebhook, Webhook: w}
	call.Strict = true // only the Partner makes ids
	if !params.IsObject() {
		r.Fail("", "params must be an object with the members url, token and taskId")
		return call
	}
	w.ID = r.ID(jsonrpc.Member(params, "id"), "id")
	w.TaskID = r.RequiredID(jsonrpc.Member(params, "taskId"), "taskId")
	w.URL = r.Required(jsonrpc.Member(params, "url"), "url", wire.MaxURL)
	w.Token = r.Required(jsonrpc.Member(params, "token"), "token", wire.MaxSecret)
	wire.Own(&w.ID, &w.TaskID, &w.URL, &w.Token)
	call.Message.TaskID = w.TaskID
	return call
}

// notificationID reads the params of notification/get and delete (§6.3.2, §6.3.3).
func (r *reader) notificationID(params gjson.Result, op translate.Op) translate.Call {
	w := new(task.Webhook)
	call := translate.Call{Op: op, Webhook: w}
	if !params.IsObject() {
		r.Fail("", "params must be an object with the member taskId")
		return call
	}
	w.TaskID = r.RequiredID(jsonrpc.Member(params, "taskId"), "taskId")
	w.ID = r.ID(jsonrpc.Member(params, "notificationConfigId"), "notificationConfigId")
	wire.Own(&w.ID, &w.TaskID)
	call.Message.TaskID = w.TaskID
	return call
}

// notificationStart reads a start with the name of a webhook in its parameters (§6.3.4). They may hold those of any
// start, too. One without data items starts nothing: the reference's Leaders subscribe by it, and start the task by
// rpc.
func (r *reader) notificationStart(params gjson.Result) translate.Call {
	call, commandParams := r.call(params, false)
	if r.Err != nil {
		return call
	}
	if call.Message.Command != task.Start {
		r.Fail("command", "command must be start; give others by the method %s", methodRPC)
		return call
	}
	if !commandParams.IsObject() {
		r.Fail("commandParams", "commandParams must be an object with the member notificationConfigId")
		return call
	}
	r.Prefix += "commandParams."
	w := &task.Webhook{TaskID: call.Message.TaskID, Dialect: r.version.name}
	w.ID = r.RequiredID(jsonrpc.Member(commandParams, "notificationConfigId"), "notificationConfigId")
	wire.Own(&w.ID)
	w.States = r.states(jsonrpc.Member(commandParams, "notifyOnStates"), "notifyOnStates")
	if m := call.Message; len(m.DataItems) == 0 {
		call = translate.Call{Op: translate.SetWebhook, Subscribe: true}
		call.Message = task.Message{TaskID: m.TaskID, SenderID: m.SenderID}
	}
	call.Webhook = w
	return call
}

// states reads a list of states. A missing, null or empty one means all of them.
func (r *reader) states(v gjson.Result, field string) (states []task.State) {
	if wire.Absent(v) {
		return nil
	}
	r.Each(v, field, wire.MaxItems, func(one gjson.Result) {
		s := task.State(r.Text(one, ""))
		for _, known := range task.States() {
			if s == known {
				states = append(states, known)
				return
			}
		}
		r.Fail("", "a state must be one of %v", task.States())
	})
	return states
}

// AppendWebhooks implements translate.Server (§6.3.1 to §6.3.3).
func (server) AppendWebhooks(dst []byte, id jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	switch {
	case c.Op == translate.DeleteWebhooks:
		dst = append(dst, `{"success":true}`...)
	case c.Subscribe:
		dst = append(dst, "true"...)
	case c.Op == translate.SetWebhook:
		dst = appendConfig(dst, &hooks[0])
	default:
		dst = append(dst, '[')
		for i := range hooks {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendConfig(dst, &hooks[i])
		}
		dst = append(dst, ']')
	}
	return jsonrpc.End(dst)
}

// appendConfig appends a NotificationConfig.
func appendConfig(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"id":`...)
	dst = task.AppendString(dst, w.ID)
	dst = append(dst, `,"url":`...)
	dst = task.AppendString(dst, w.URL)
	dst = append(dst, `,"token":`...)
	dst = task.AppendString(dst, w.Token)
	dst = append(dst, `,"taskId":`...)
	dst = task.AppendString(dst, w.TaskID)
	return append(dst, '}')
}

// AppendNotification implements translate.Server: the Task (§6.3.5).
func (server) AppendNotification(dst []byte, t *task.Task) []byte { return form.AppendTask(dst, t) }

// NotificationHeader implements translate.Server (§6.3.5).
func (server) NotificationHeader(w *task.Webhook) []translate.Field {
	return []translate.Field{{Name: "Content-Type", Value: "application/json"}, {Name: tokenHeader, Value: w.Token}}
}
