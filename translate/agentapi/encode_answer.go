// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// The Agent API does not mark the message with the answer. Callers take the last one of the output, or the last
// complete text of the stream. Some interfaces stop when all messages seen are complete. So the agent's words beside a
// product come before it, and one message is in progress until the end. A message that is over is completed when
// another one has begun. A product, perhaps the answer, is completed when another product has begun.

// ends marks a message as over.
func (e *encoder) ends(m *message) {
	if !slices.Contains(e.ending, m) {
		e.ending = append(e.ending, m)
	}
}

// follow completes the messages that are over, if the message just begun comes behind them.
func (e *encoder) follow(begun *message) {
	e.ending = slices.DeleteFunc(e.ending, func(m *message) bool {
		if m.product != nil && begun.product == nil {
			return false
		}
		e.complete(m)
		return true
	})
}

// completeEnding completes all messages in e.ending.
func (e *encoder) completeEnding() {
	for _, m := range e.ending {
		e.complete(m)
	}
	e.ending = nil
}

// answered reports whether a product has a text, so that it is the answer, and the agent's last words are not.
func (e *encoder) answered() bool {
	return slices.ContainsFunc(e.messages, func(m *message) bool {
		return m.product != nil && m.kind == typeMessage && m.says
	})
}

// finish adds the agent's words at the end of its turn, and completes all messages, the answer last.
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

// putProductLast moves the last product behind the agent's words that came since.
func (e *encoder) putProductLast() {
	for i := len(e.messages) - 1; i >= 0; i-- {
		if m := e.messages[i]; m.product != nil {
			e.messages = append(slices.Delete(e.messages, i, i+1), m)
			return
		}
	}
}
