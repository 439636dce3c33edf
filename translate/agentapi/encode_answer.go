// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// The Agent API does not say which message is the answer. Callers take the last one of the output, or the last text of
// the stream that is complete. Some interfaces stop where all messages that they have seen are complete. So what the
// agent says beside a product comes before it, and one message is in progress until the end: a message that is over is
// completed when another one has begun, and a product, which may be the answer, when another product has.

// ends says that a message is over.
func (e *encoder) ends(m *message) {
	if !slices.Contains(e.ending, m) {
		e.ending = append(e.ending, m)
	}
}

// follow completes the messages that are over, where the message that has just begun comes behind them.
func (e *encoder) follow(begun *message) {
	e.ending = slices.DeleteFunc(e.ending, func(m *message) bool {
		if m.product != nil && begun.product == nil {
			return false
		}
		e.complete(m)
		return true
	})
}

// completeEnding completes the messages that are over.
func (e *encoder) completeEnding() {
	for _, m := range e.ending {
		e.complete(m)
	}
	e.ending = nil
}

// answered reports whether a product has a text, so that it is the answer, and what the agent says in the end is not.
func (e *encoder) answered() bool {
	return slices.ContainsFunc(e.messages, func(m *message) bool {
		return m.product != nil && m.kind == typeMessage && m.says
	})
}

// finish adds what the agent says at the end of its turn, and completes all messages, the answer last.
func (e *encoder) finish(st *task.Status) {
	beside := len(st.DataItems) == 0 || st.State != task.AwaitingInput && e.answered()
	e.say(typeMessage, st.DataItems, !beside)
	if beside {
		e.putProductLast()
	}
	for _, m := range e.messages {
		e.complete(m)
	}
}

// putProductLast moves the last product behind what the agent has said since.
func (e *encoder) putProductLast() {
	for i := len(e.messages) - 1; i >= 0; i-- {
		if m := e.messages[i]; m.product != nil {
			e.messages = append(slices.Delete(e.messages, i, i+1), m)
			return
		}
	}
}
