// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// Recallable reports whether a report of the whole task, without a word of its own and without an artifact, stands for
// the agent's earlier words: they are the question, or the answer.
func Recallable(rep *agent.Report) bool {
	return len(rep.Items) == 0 && (rep.State == task.AwaitingInput || rep.State == task.AwaitingCompletion)
}

// Recalled returns the agent's words in the present turn, from the history of its task: in its messages behind the last
// one of the caller, with adjacent plain texts joined. parts reads the content of a message.
func Recalled(history gjson.Result, parts func(m gjson.Result) ([]task.DataItem, error)) []task.DataItem {
	var whole task.Product
	var texts task.Texts
	jsonrpc.ForEach(history, func(_, m gjson.Result) bool {
		switch strings.ToLower(strings.TrimPrefix(jsonrpc.Member(m, "role").Str, "ROLE_")) {
		case "agent", "assistant":
			if items, err := parts(m); err == nil {
				texts.Add(&whole, &task.Product{DataItems: items})
			}
		default:
			whole, texts = task.Product{}, task.Texts{}
		}
		return true
	})
	return whole.DataItems
}
