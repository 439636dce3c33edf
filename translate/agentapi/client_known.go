// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// A content does not say the kind of its message: the answer, or the input of a tool. Some agents send contents before
// the message, so they wait for it, and are not shown if it never comes. With ExposeProduct nothing is hidden: pieces
// of a text do not wait, and other contents do until the end at most, so that the product has its name.

// maxWaiting is the most bytes of contents waiting for their messages in one answer, as many as one event may have.
const maxWaiting = 16 << 20

// know takes the type and the role of a message, and adds the contents waiting for it. A message once known as no
// answer stays so, and one that turns out to be none is not shown any further.
func (r *reader) know(rep *agent.Report, msg *agentMessage, m *members) {
	kind := typeMessage
	if k := m.kind.Str; k != "" && k != "assistant" { // from an example of the specification
		kind = wire.Clean(k, wire.MaxWord)
	}
	repeats := isAnswer(kind) && (m.role.Str == roleUser || m.role.Str == roleSystem)
	answers := isAnswer(kind) && !repeats && m.role.Str != roleTool
	msg.answers = answers
	shows := answers || r.expose == ExposeProduct && !repeats
	switch {
	case !msg.known:
		if kind != msg.kind && msg.begun { // the product gets its name
			msg.mixed, msg.grows = true, false
		}
		msg.known, msg.kind, msg.shows, msg.repeats = true, kind, shows, repeats
	case !shows:
		msg.shows, msg.grows = false, false
	}
	if msg.shows && !msg.begun {
		msg.extend(m)
	}
	r.waiting -= msg.waiting
	msg.waiting = 0
	switch {
	case !msg.shows:
		r.contents -= len(msg.contents)
		msg.contents = nil
	case !msg.begun && len(msg.contents) > 0:
		rep.Chunks = append(rep.Chunks, msg.change(task.Product{}, false)...)
	}
}

// isAnswer reports whether a message of this type is for the asking caller: a text, or the content of an interface.
func isAnswer(kind string) bool { return kind == typeMessage || kind == typeUIResponse }

// wait counts a content waiting for its message.
func (r *reader) wait(msg *agentMessage, size int) error {
	msg.waiting += size
	if r.waiting += size; r.waiting > maxWaiting {
		return wire.Refuse("the agent's answer has more than %d bytes of contents before their messages", maxWaiting)
	}
	return nil
}

// showsAny reports whether a message is shown.
func (r *reader) showsAny() bool {
	for _, msg := range r.messages {
		if msg.begun {
			return true
		}
	}
	return false
}
