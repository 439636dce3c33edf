// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// answerID is the id of the product that an answer becomes. No other product of the task has it: where there is one,
// the answer becomes none, and a continue withdraws it.
const answerID = "answer"

// withAnswer returns a report by which the agent finishes, with what the agent has said last as a product instead, if
// the task has none and dialect.Policy.AnswerIsProduct asks for it. Any other report is returned as it is. tk.mu is
// held.
func (tk *activeTask) withAnswer(rep *agent.Report) *agent.Report {
	if !tk.meta.Terms.AnswerIsProduct || rep.Verbatim || tk.offersProducts(rep) {
		return rep
	}
	switch rep.State {
	case task.AwaitingCompletion, task.Completed:
	default:
		return rep
	}
	said := rep.Items
	if now := tk.fold.Status(); isEmpty(said) && now.State == task.Working {
		said = now.DataItems
	}
	if isEmpty(said) {
		return rep
	}
	with := *rep
	with.Items, with.Full, with.Products = nil, false, nil
	with.Chunks = []task.Chunk{{Product: task.Product{ID: answerID, DataItems: said}, Last: true}}
	return &with
}

// offersProducts reports whether the task has a product after a report. tk.mu is held.
func (tk *activeTask) offersProducts(rep *agent.Report) bool {
	return len(tk.fold.Task().Products)+len(rep.Products)+len(rep.Chunks)+rep.Pieces.Len() > 0
}

// isEmpty reports whether items say nothing.
func isEmpty(items []task.DataItem) bool {
	return !slices.ContainsFunc(items, func(it task.DataItem) bool {
		return it.Kind != task.TextItem || strings.TrimSpace(it.Text) != ""
	})
}
