// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

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

// legacyReadWebhook reads the params that set one: {id, pushNotificationConfig}, where taskID is the name of the first.
func legacyReadWebhook(r *legacyReader, params gjson.Result, taskID, dialect string) *task.Webhook {
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
	legacyReadConfig(r, config, "params.pushNotificationConfig", w)
	return w
}
