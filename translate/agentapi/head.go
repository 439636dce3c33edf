// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// A request may bring a whole conversation: messages of several roles and types. In the canon they are the data items
// of one message, in their order. The head of a message, beside its contents, stands in the metadata of its items. So
// an agent of the Agent API gets the same messages again:
//
//	{"agentapi":{"role":"assistant","message":1}}
//
// A plain message of the user, without others, has no marks.

// head is the members of a message beside its contents.
type head struct {
	index        int // of the message, if there are several; else -1
	role, kind   string
	id, metadata json.RawMessage // as they were sent; nil for none. They are marks of the first item
}

// mark adds the head to the metadata of an item, beside the marks of readContent.
func (h *head) mark(it *task.DataItem, first bool) {
	m := make([]byte, 0, 96)
	add := func(name string) []byte {
		if len(m) > 0 {
			m = append(m, ',')
		}
		return append(task.AppendString(m, name), ':')
	}
	isMessage := h.kind == "" || h.kind == typeMessage
	if h.role != "" && (h.role != roleUser || !isMessage) {
		m = task.AppendString(add("role"), h.role)
	}
	switch {
	case isMessage:
	case typeOf(it) != "":
		m = task.AppendString(add("messageType"), h.kind)
	default:
		m = task.AppendString(add("type"), h.kind)
	}
	if h.index >= 0 {
		m = strconv.AppendInt(add("message"), int64(h.index), 10)
	}
	if first && h.id != nil {
		m = append(add("id"), h.id...)
	}
	if first && h.metadata != nil {
		m = append(add("metadata"), h.metadata...)
	}
	if len(m) > 0 {
		it.Metadata = withOwn(it.Metadata, m)
	}
}

// withOwn returns the metadata of an item with more members of the family.
func withOwn(metadata json.RawMessage, members []byte) json.RawMessage {
	own := family.Of(metadata)
	dst := append(task.AppendString([]byte{'{'}, string(family)), ':', '{')
	if len(own) > len("{}") {
		dst = append(append(dst, own[1:len(own)-1]...), ',')
	}
	dst = append(append(dst, members...), '}')
	if rest := family.Without(metadata); rest != nil {
		dst = append(append(dst, ','), rest[1:len(rest)-1]...)
	}
	return append(dst, '}')
}

// headOf reads the head of an item's message. For an item without marks it is the user's.
func headOf(it *task.DataItem) (h head) {
	if len(it.Metadata) == 0 {
		return head{index: -1, role: roleUser, kind: typeMessage}
	}
	h.index = -1
	kind := ""
	wire.Members(gjson.ParseBytes(family.Of(it.Metadata)), func(name string, v gjson.Result) {
		switch name {
		case "role":
			h.role = v.Str
		case "type":
			kind = v.Str
		case "messageType":
			h.kind = v.Str
		case "message":
			h.index = int(v.Int())
		case "id":
			h.id = json.RawMessage(v.Raw)
		case "metadata":
			h.metadata = json.RawMessage(v.Raw)
		}
	})
	if h.kind == "" && !slices.Contains(contentTypes, kind) {
		h.kind = kind
	}
	if h.kind == "" {
		h.kind = typeMessage
	}
	if !slices.Contains(roles, h.role) {
		h.role = roleOf(h.kind)
	}
	return h
}

// goesOn reports whether an item with the head next belongs to the same message as the item before it.
func (h *head) goesOn(next *head) bool {
	return h.index == next.index && h.role == next.role && h.kind == next.kind && next.id == nil && next.metadata == nil
}

// roleOf returns the role of a message of a type, for a sender that does not say it.
func roleOf(kind string) string {
	switch {
	case isOutput(kind):
		return roleTool
	case kind == typeMessage || kind == typeApprovalResponse || kind == typeUIAction:
		return roleUser
	}
	return roleAssistant
}

// isOutput reports whether a message of a type has the output of a tool or a function.
func isOutput(kind string) bool { return strings.HasSuffix(kind, "_output") }

// appendMessages appends the messages of items, with commas between them; a message without contents if there are no
// items.
func appendMessages(dst []byte, items []task.DataItem) []byte {
	if len(items) == 0 {
		return appendMessage(dst, &head{role: roleUser, kind: typeMessage}, nil)
	}
	for len(items) > 0 {
		h, n := headOf(&items[0]), 1
		for ; n < len(items); n++ {
			if next := headOf(&items[n]); !h.goesOn(&next) {
				break
			}
		}
		dst = appendMessage(dst, &h, items[:n])
		if items = items[n:]; len(items) > 0 {
			dst = append(dst, ',')
		}
	}
	return dst
}

// appendMessage appends a message.
func appendMessage(dst []byte, h *head, items []task.DataItem) []byte {
	dst = append(append(dst, `{"role":"`...), h.role...)
	dst = task.AppendString(append(dst, `","type":`...), h.kind)
	if h.id != nil {
		dst = append(append(dst, `,"id":`...), wire.OneLine(h.id)...)
	}
	dst = append(dst, `,"content":[`...)
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendContent(append(dst, '{'), &items[i]), '}')
	}
	return append(appendMetadata(append(dst, ']'), h, items), '}')
}

// appendMetadata appends the metadata of a message: its own, and those of its items, since contents have none.
func appendMetadata(dst []byte, h *head, items []task.DataItem) []byte {
	own := gjson.ParseBytes(wire.OneLine(h.metadata))
	if h.metadata != nil && !own.IsObject() { // not an object, but it stays as it was
		return append(append(dst, `,"metadata":`...), own.Raw...)
	}
	begin := len(dst)
	dst = append(dst, `,"metadata":{`...)
	empty := len(dst)
	if n := len(own.Raw); n > len("{}") {
		dst = append(dst, strings.TrimSpace(own.Raw[1:n-1])...)
	}
	if rest := restsOf(items); len(rest) > 0 && !own.Get("dataItems").Exists() {
		if len(dst) > empty {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, `"dataItems":{`...), rest...), '}')
	}
	if len(dst) == empty && h.metadata == nil {
		return dst[:begin]
	}
	return append(dst, '}')
}

// restsOf returns the metadata of items by their index, as members, without those of the message and its contents.
func restsOf(items []task.DataItem) (dst []byte) {
	for i := range items {
		rest := foreign(items[i].Metadata)
		if len(rest) == 0 {
			continue
		}
		if len(dst) > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, '"'), int64(i), 10)
		dst = append(append(dst, `":`...), rest...)
	}
	return dst
}

// foreign returns the metadata of an item without the marks of the Agent API; nil if nothing is left.
func foreign(metadata json.RawMessage) json.RawMessage {
	if len(metadata) == 0 || !gjson.ParseBytes(family.Of(metadata)).IsObject() {
		return wire.OneLine(metadata)
	}
	return family.Without(metadata)
}
