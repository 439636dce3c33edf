// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The reference implementation leaves the state of a task to the application. The application may change it late. The
// implementation also executes a message with an old id again. But it adds every message to the history of its task
// when it receives it.

// AppendGetMessages implements translate.LateActor: a get for an answer with all messages (§4.3).
func (c *client) AppendGetMessages(dst []byte, ref agent.Ref) []byte {
	return c.appendGet(dst, ref, "null")
}

// Received implements translate.LateActor. A Leader may use an id more than once, so its messages are counted. A
// history without the message before is not to be trusted about this one.
func (c *client) Received(body []byte, t *agent.Turn) (received, known bool, err error) {
	result, err := answer(body, &c.query)
	if err != nil {
		return false, false, err
	}
	m := contentOf(result)
	if err := wire.About(&c.query, m.about()); err != nil {
		return false, false, err
	}
	history := jsonrpc.Member(result, "messageHistory")
	if !history.IsArray() {
		history = jsonrpc.Member(result, "commandHistory") // of v02
	}
	if !history.IsArray() {
		return false, false, nil
	}
	has := make(map[string]int)
	jsonrpc.ForEach(history, func(_, m gjson.Result) bool {
		has[jsonrpc.Member(m, "id").Str]++
		return true
	})
	id, before, sent := messageID(t), "", 1
	if n := len(t.History); n > 1 {
		for i := range t.History[:n-1] {
			if before = t.History[i].ID; before == id {
				sent++
			}
		}
	}
	known = len(has) > 0 && (before == "" || has[before] > 0)
	return has[id] >= sent, known, nil
}
