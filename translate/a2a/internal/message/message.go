// SPDX-License-Identifier: Apache-2.0

// Package message has the common parts of the messages of all versions.
package message

import (
	"hash/crc32"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
)

// Role returns the role of a message's sender.
func Role(m *task.Message) string {
	if m.SenderRole == task.Partner {
		return "agent"
	}
	return "user"
}

// ID returns the id of a turn's message. It is the same for every sending of the turn, so that an agent comparing ids
// takes it for the same message.
func ID(t *agent.Turn) string {
	switch {
	case t.Message.ID != "":
		return t.Message.ID
	case t.From == task.None:
		return t.Ref.Task
	}
	return t.Ref.Task + "-" + strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(t.Revision))), 16)
}

// Made returns an id for a message without one: the message of an agent with its state, or one of a dialect without ids
// of messages. It is always the same, and unique: it is made of the task's id, the time and the content.
func Made(taskID string, at time.Time, content []byte) string {
	id := taskID + "-" + strconv.FormatUint(uint64(crc32.ChecksumIEEE(content)), 36)
	if !at.IsZero() {
		id += "-" + strconv.FormatInt(at.UnixMilli(), 36)
	}
	return id
}

// Last returns the end of a history, from the n-th last message with content. A2A has no commands, so callers skip
// messages without content.
func Last(all []task.Message, n int) []task.Message {
	first := len(all)
	for i := len(all) - 1; i >= 0 && n != 0; i-- {
		if len(all[i].DataItems) > 0 {
			first = i
			n--
		}
	}
	return all[first:]
}

// Activating returns the header fields to activate the extensions activated by the caller. The field had another name
// before 1.0, and agents of either version read either.
func Activating(t *agent.Turn) []translate.Field {
	uris := extension.Activated(t.Message.Extensions)
	if uris == "" {
		return nil
	}
	return []translate.Field{{Name: "A2A-Extensions", Value: uris}, {Name: "X-A2A-Extensions", Value: uris}}
}
