// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/value"

	"github.com/aip-gateway/aip-gateway/task"
)

// legacyReadWebhook reads the params that set one: {id, pushNotificationConfig}, where taskID is the name of the first.
func ReadParams(r *rpc.Reader, params gjson.Result, taskID, dialect string) *task.Webhook {
	w := &task.Webhook{Dialect: dialect}
	var config gjson.Result
	value.Members(params, func(key string, v gjson.Result) {
		switch key {
		case taskID:
			w.TaskID = r.ID(v, "params."+taskID)
		case "pushNotificationConfig":
			config = v
		}
	})
	r.Required(w.TaskID, "params."+taskID)
	Read(r, config, "params.pushNotificationConfig", w)
	return w
}
