// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"encoding/json"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// legacyRole returns the role of a message's sender.
func legacyRole(m *task.Message) string {
	if m.SenderRole == task.Partner {
		return "agent"
	}
	return "user"
}

// v1MessageID returns the id of a turn's message. It is the same whenever the turn is carried out again, so that
// agents that look at it take it for the same message.
func v1MessageID(t *agent.Turn) string {
	switch {
	case t.Message.ID != "":
		return t.Message.ID
	case t.From == task.None:
		return t.Ref.Task
	}
	return t.Ref.Task + "-" + strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(t.Revision))), 16)
}

// inHistory returns a message as a history shows it. What a caller has sent is shown without the members that no
// version of A2A has: those are for the agent, and readers that hold a Task to its schema refuse it with them.
func inHistory(m *task.Message) task.Message {
	shown := *m
	if m.SenderRole == task.Partner {
		return shown
	}
	if own := kept(m.Extensions, "message"); len(own) > 0 {
		shown.Extensions = with(m.Extensions, pick(own, "metadata", "extensions", "referenceTaskIds"))
	}
	for i := range m.DataItems {
		metadata := m.DataItems[i].Metadata
		if len(family.Of(metadata)) == 0 {
			continue
		}
		if &shown.DataItems[0] == &m.DataItems[0] {
			shown.DataItems = slices.Clone(m.DataItems)
		}
		own := pick(family.Of(metadata), "metadata")
		rest := family.Append([]byte{'{'}, own, metadata, "")
		if len(rest) > 1 {
			rest = append(rest[:1], rest[2:]...) // the comma
		}
		shown.DataItems[i].Metadata = wire.MemberOf(append(rest, '}'), "metadata")
	}
	return shown
}

// pick returns an object with only the named members of another one.
func pick(object json.RawMessage, names ...string) []byte {
	dst := []byte{'{'}
	for _, name := range names {
		if v := wire.MemberOf(object, name); v != nil {
			if len(dst) > 1 {
				dst = append(dst, ',')
			}
			dst = append(append(task.AppendString(dst, name), ':'), v...)
		}
	}
	return append(dst, '}')
}

// with returns an Extra that has message in the place of all that the family has in it.
func with(extra json.RawMessage, message []byte) json.RawMessage {
	dst := append(append([]byte(`{"`+family+`":{"message":`), message...), '}')
	gjson.ParseBytes(extra).ForEach(func(key, v gjson.Result) bool {
		if key.Str != string(family) {
			dst = append(append(append(append(dst, ','), key.Raw...), ':'), v.Raw...)
		}
		return true
	})
	return append(dst, '}')
}

// v1History returns the messages from the one on with which n of them say something. A2A has no commands, so those
// that say nothing are not shown.
func v1History(all []task.Message, n int) []task.Message {
	first := len(all)
	for i := len(all) - 1; i >= 0 && n != 0; i-- {
		if len(all[i].DataItems) > 0 {
			first = i
			n--
		}
	}
	return all[first:]
}
