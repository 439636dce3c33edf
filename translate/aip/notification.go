// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// This file is AIP's notification style (§6.3). What AIP calls a NotificationConfig is the canon's Webhook.

// Limits of what a NotificationConfig may hold, in bytes. What else its URL must be is not the dialect's business.
const (
	maxURL   = 2048
	maxToken = 4096
)

// tokenHeader carries a webhook's token (§6.3.5). Later versions write it X-ACPs-AIP-Notification-Token, which is
// the same field.
const tokenHeader = "X-ACPS-AIP-Notification-Token"

// notificationSet reads a NotificationConfig (§6.3.1).
func (r *reader) notificationSet(params gjson.Result) translate.Call {
	w := new(task.Webhook)
	call := translate.Call{Op: translate.SetWebhook, Webhook: w}
	call.Strict = true // only the Partner makes ids
	if !params.IsObject() {
		r.fail("params", "params must be an object with the members url, token and taskId")
		return call
	}
	w.Dialect = name
	w.ID = r.id(member(params, "id"), "params.id")
	w.TaskID = r.requiredID(member(params, "taskId"), "params.taskId")
	w.URL = r.bounded(member(params, "url"), "params.url", maxURL)
	w.Token = r.bounded(member(params, "token"), "params.token", maxToken)
	own(&w.ID, &w.TaskID, &w.URL, &w.Token)
	call.Message.TaskID = w.TaskID
	return call
}

// bounded reads a string that must be there.
func (r *reader) bounded(v gjson.Result, field string, most int) string {
	if absent(v) {
		r.fail(field, "%s is missing; it must be a string of 1 to %d bytes", last(field), most)
	}
	s := r.text(v, field)
	if s == "" || len(s) > most {
		r.fail(field, "%s must be a string of 1 to %d bytes", last(field), most)
	}
	return s
}

// notificationID reads the params of notification/get and delete (§6.3.2, §6.3.3).
func (r *reader) notificationID(params gjson.Result, op translate.Op) translate.Call {
	w := new(task.Webhook)
	call := translate.Call{Op: op, Webhook: w}
	if !params.IsObject() {
		r.fail("params", "params must be an object with the member taskId")
		return call
	}
	w.TaskID = r.requiredID(member(params, "taskId"), "params.taskId")
	w.ID = r.id(member(params, "notificationConfigId"), "params.notificationConfigId")
	own(&w.ID, &w.TaskID)
	call.Message.TaskID = w.TaskID
	return call
}

// notificationStart reads a start whose parameters name a webhook (§6.3.4). They may hold those of any start, too.
func (r *reader) notificationStart(params gjson.Result) translate.Call {
	call := r.call(params, false)
	if r.err != nil {
		return call
	}
	if call.Message.Command != task.Start {
		r.fail("params.message.command", "command must be start; give others by the method %s", methodRPC)
		return call
	}
	const at = "params.message.commandParams"
	terms := member(member(params, "message"), "commandParams")
	if !terms.IsObject() {
		r.fail(at, "commandParams must be an object with the member notificationConfigId")
		return call
	}
	w := &task.Webhook{TaskID: call.Message.TaskID, Dialect: name}
	w.ID = r.requiredID(member(terms, "notificationConfigId"), at+".notificationConfigId")
	own(&w.ID)
	w.States = r.states(member(terms, "notifyOnStates"), at+".notifyOnStates")
	call.Webhook = w
	return call
}

// states reads a list of states. One that is missing, null or empty means all of them.
func (r *reader) states(v gjson.Result, field string) []task.State {
	if absent(v) {
		return nil
	}
	if !v.IsArray() {
		r.fail(field, "%s must be an array of states", last(field))
		return nil
	}
	var out []task.State
	v.ForEach(func(_, one gjson.Result) bool {
		at := fmt.Sprintf("%s[%d]", field, len(out))
		s := task.State(r.text(one, at))
		if r.err != nil {
			return false
		}
		for _, known := range task.States() {
			if s == known {
				if out = append(out, known); len(out) > maxItems {
					r.tooMany(field, maxItems)
				}
				return r.err == nil
			}
		}
		r.fail(at, "a state must be one of %v", task.States())
		return false
	})
	return out
}

// AppendWebhooks implements translate.Server (§6.3.1 to §6.3.3).
func (server) AppendWebhooks(dst []byte, id jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	switch c.Op {
	case translate.DeleteWebhooks:
		dst = append(dst, `{"success":true}`...)
	case translate.SetWebhook:
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
