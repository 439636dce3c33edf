// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// answerID is the id of the product made of an answer. No other product of the task has it: if there is one, the answer
// becomes none, and a continue withdraws it.
const answerID = "answer"

// withSaid returns a report by which the turn settles. If the agent says nothing now, all its words of the turn are
// added: they are the question, or the answer if the task has no product. Any other report, and one of an agent of the
// caller's protocol, is returned as it is. tk.mu is held.
func (tk *activeTask) withSaid(rep *agent.Report) *agent.Report {
	if rep.Verbatim || rep.State == tk.fold.Status().State || !task.IsBlank(rep.Items) {
		return rep
	}
	switch rep.State {
	case task.AwaitingInput:
	case task.AwaitingCompletion, task.Completed:
		if tk.offersProducts(rep) {
			return rep
		}
	default:
		return rep
	}
	said := tk.fold.Said()
	if said == nil || tk.tooLong(said) != "" {
		return rep
	}
	with := *rep
	with.Items = said
	return &with
}

// withAnswer returns a report by which the agent finishes, with its words as a product instead, if the task has none
// and dialect.Policy.AnswerIsProduct asks for it. Any other report is returned as it is. tk.mu is held.
func (tk *activeTask) withAnswer(rep *agent.Report) *agent.Report {
	switch {
	case rep.State != task.AwaitingCompletion && rep.State != task.Completed, // as of the pieces of a stream
		!tk.meta.Terms.AnswerIsProduct, rep.Verbatim, task.IsBlank(rep.Items), tk.offersProducts(rep):
		return rep
	}
	with := *rep
	with.Items, with.Full, with.Products = nil, false, nil
	with.Chunks = []task.Chunk{{Product: task.Product{ID: answerID, DataItems: rep.Items}, Last: true}}
	return &with
}

// offersProducts reports whether the task has a product after a report. tk.mu is held.
func (tk *activeTask) offersProducts(rep *agent.Report) bool {
	return len(rep.Products)+len(rep.Chunks)+rep.Pieces.Len()+len(tk.fold.Task().Products) > 0
}
