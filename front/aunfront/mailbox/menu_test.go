// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestMenu: a client asking an agent for its menu is answered by a message, once, and the agent has no task.
func TestMenu(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 2 {
			check(t, "the result", gjson.Get(w.call(alice, "message.send",
				`{"to":"agent.aid.pub","message_id":"m1","payload":{"type":"menu.query","id":"q1"}}`), "status").Str, "sent")
		}
		w.call(alice, "message.send", `{"to":"agent.aid.pub","payload":{"type":"menu.list","id":"q2"}}`)
		w.call(alice, "message.send", `{"to":"agent.aid.pub","payload":{"type":"menu.response","id":"q3"}}`)
		check(t, "the events", w.got(alice), []string{"1 agent.aid.pub menu.response: ", "2 agent.aid.pub menu.response: "})
		check(t, "the answers", gjson.Get(w.call(alice, "message.pull", `{}`), "messages.#.payload").Raw,
			`[{"type":"menu.response","id":"q1","items":[],"data":[]},`+
				`{"type":"menu.response","id":"q2","items":[],"data":[]}]`)
		check(t, "tasks", len(w.said), 0)
	})
}
