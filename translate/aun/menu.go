// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Applications of AUN ask an agent for a menu of commands by a payload, and wait for the answer. AUN does not define
// these: their first ones read items, and later ones data or an error.

// AppendMenu appends the answer to a payload asking an agent for its menu, or for a change by it: the agent has none.
// ok is false for every other payload.
func AppendMenu(dst []byte, payload gjson.Result) (_ []byte, ok bool) {
	changes := false
	switch jsonrpc.Member(payload, "type").Str {
	case "menu.list", "menu.query", "menu.options":
	case "menu.update", "menu.action":
		changes = true
	default:
		return dst, false
	}
	dst = append(dst, `{"type":"menu.response"`...)
	for _, name := range []string{"id", "name", "cmd", "thread_id", "chat_id"} {
		v := jsonrpc.Member(payload, name)
		if (v.Type == gjson.String || v.Type == gjson.Number) && len(v.Raw) <= wire.MaxID {
			dst = append(append(task.AppendString(append(dst, ','), name), ':'), v.Raw...)
		}
	}
	if changes {
		return append(dst, `,"error":{"code":"NOT_FOUND","message":"the agent has no menu"}}`...), true
	}
	return append(dst, `,"items":[],"data":[]}`...), true
}
