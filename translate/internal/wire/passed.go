// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"

	"github.com/aip-gateway/aip-gateway/task"
)

// Passed returns the parameters of a caller's command for the agent: all but those handled by the gateway itself. The
// gateway answers in time, ends a task after too long a wait or with too large products, and notifies the caller's
// webhooks. An agent doing so as well would do it at another moment, and the two would not agree. It returns nil if no
// parameter is left.
func Passed(params json.RawMessage) json.RawMessage {
	if !isObject(params) {
		return nil
	}
	out, empty := appendMembers([]byte{'{'}, true, params, func(name string) bool {
		switch name {
		case "responseTimeout", "awaitingInputTimeout", "awaitingCompletionTimeout", "timeout", "maxProductsBytes",
			"notificationConfigId", "notifyOnStates":
			return false
		}
		return true
	})
	if empty {
		return nil
	}
	return append(out, '}')
}

// commandFamily is the family of dialects with parameters of commands.
const commandFamily Family = "aip"

// WithPassed returns the extensions of a message with the parameters of its command for an agent of another protocol:
// the member commandParams of AIP's. There they take the place of nothing from the gateway in the metadata, or from the
// agent's own protocol.
func WithPassed(extensions, params json.RawMessage) json.RawMessage {
	passed := Passed(params)
	if passed == nil {
		return extensions
	}
	dst := append([]byte(`{"`+commandFamily+`":{"commandParams":`), passed...)
	if own := commandFamily.Of(extensions); isObject(own) {
		dst, _ = appendMembers(append(dst, ','), true, own, func(string) bool { return true })
		if dst[len(dst)-1] == ',' {
			dst = dst[:len(dst)-1]
		}
	}
	dst = append(dst, '}')
	dst, _ = appendMembers(dst, false, extensions, func(name string) bool { return name != string(commandFamily) })
	return append(dst, '}')
}

// Items returns the data items of a message as an agent of another protocol gets them. A command with nothing but
// parameters becomes an empty text, since no other protocol has a message without content.
func Items(m *task.Message) []task.DataItem {
	if len(m.DataItems) == 0 && Passed(m.Params) != nil {
		return []task.DataItem{task.Text("")}
	}
	return m.DataItems
}
