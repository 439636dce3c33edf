// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// GroupKind is the kind of a message of a group.
type GroupKind uint8

// The kinds of messages.
const (
	// OtherMessage asks a member for nothing: it is a Task or the status of another member, or a message without a
	// command.
	OtherMessage  GroupKind = iota
	TaskCommand             // a command for a task; see GroupMessage.Command
	MemberCommand           // a command for members; see GroupMessage.Management
)

// GroupMessage is a message of a group's exchange (§7.3), read as far as every member needs it to decide whether the
// message is for it. It refers to the body it was read from.
type GroupMessage struct {
	Kind    GroupKind
	Dialect string // the name of the message's dialect

	// Empty if a message does not have them. A TaskCommand and a MemberCommand have a SenderID.
	ID, SenderID, GroupID string
	Mentions              []string // of a command

	message gjson.Result
	version *version
}

// The types of messages about members, in v01.00 and v02.
const (
	typeManagement   = "group-mgmt-message"
	typeManagementV2 = "group-mgmt-command"
	typeMemberStatus = "group-mgmt-result"
)

// ReadGroupMessage reads a message of a group in the form of any version. An error is for a message of no version.
func ReadGroupMessage(body []byte, limits jsonrpc.Limits) (m GroupMessage, err error) {
	message, bad := jsonrpc.ParseValue(body, limits)
	if bad != nil {
		return m, task.Errorf(task.ParseError, "%s", bad.Detail).WithField(bad.Field)
	}
	r := reader{version: &v1}
	m.read(&r, message)
	if r.Err != nil {
		return GroupMessage{}, r.Err
	}
	return m, nil
}

func (m *GroupMessage) read(r *reader, message gjson.Result) {
	if !message.IsObject() {
		r.Fail("type", "a message must be an object with the member type")
		return
	}
	var kind, id, role, sender, group, mentions, command, management gjson.Result
	jsonrpc.ForEach(message, func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			kind = v
		case "id":
			id = v
		case "senderRole":
			role = v
		case "senderId":
			sender = v
		case "groupId":
			group = v
		case "mentions":
			mentions = v
		case "command":
			command = v
		case "groupMgmtCommand":
			management = v
		}
		return true
	})
	m.message, m.version = message, &v1
	switch kind.Str {
	case v1.command:
		if !wire.Absent(command) {
			m.Kind = TaskCommand
		}
	case v2.command:
		m.Kind, m.version = TaskCommand, &v2
	case typeManagement:
		if !wire.Absent(management) {
			m.Kind = MemberCommand
		}
	case typeManagementV2:
		m.Kind, m.version = MemberCommand, &v2
	case "task", typeResult, typeMemberStatus, "status-update", typeStatus, typeChunk:
	default:
		r.Fail("type", "no version of AIP has a group message of this type")
		return
	}
	if role.Str == string(task.Partner) {
		m.Kind = OtherMessage // only a Leader gives commands
	}
	m.Dialect = m.version.name
	if m.Kind == OtherMessage { // the business of its receiver
		m.SenderID, m.GroupID = strings.Clone(sender.Str), strings.Clone(group.Str)
		return
	}
	m.ID = wire.Owned(id, r.ID(id, "id"))
	m.SenderID = r.ownedID(sender, "senderId")
	m.GroupID = wire.Owned(group, r.ID(group, "groupId"))
	m.Mentions = r.mentions(mentions)
}

// For reports whether a command is for a member: one for a task also if it mentions none at all, as §7.3 shows it, one
// for members only if it mentions the member or all, since it may make them leave.
func (m *GroupMessage) For(aic string) bool {
	switch m.Kind {
	case TaskCommand:
		return len(m.Mentions) == 0 || task.Mentioned(m.Mentions, aic)
	case MemberCommand:
		return task.Mentioned(m.Mentions, aic)
	}
	return false
}

// Command reads a TaskCommand. The Call holds copies; a message without the name of a group is one of the given group.
// A start leaves room for the agent to reject it.
func (m *GroupMessage) Command(group string) (translate.Call, error) {
	r := reader{version: m.version}
	call, _ := r.message(m.message, false)
	if r.Err != nil {
		return translate.Call{}, r.Err
	}
	if call.Message.GroupID == "" {
		call.Message.GroupID = group
	}
	call.Tentative = call.Message.Command == task.Start
	call.Followed = true
	return call, nil
}

// Management reads a MemberCommand.
func (m *GroupMessage) Management() (task.Management, error) {
	r := reader{version: m.version}
	field := "groupMgmtCommand"
	if m.version == &v2 {
		field = "command"
		r.RequiredID(jsonrpc.Member(m.message, "groupId"), "groupId")
	}
	session := jsonrpc.Member(m.message, "sessionId")
	out := task.Management{
		ID: m.ID, SenderID: m.SenderID, Mentions: m.Mentions, GroupID: m.GroupID,
		SentAt:    r.time(jsonrpc.Member(m.message, "sentAt"), "sentAt"),
		SessionID: wire.Owned(session, r.ID(session, "sessionId")),
	}
	command := r.Text(jsonrpc.Member(m.message, field), field)
	for _, known := range task.GroupCommands() {
		if command == string(known) {
			out.Command = known
		}
	}
	if out.Command == "" {
		r.Fail(field, "%s must be one of %v", field, task.GroupCommands())
	}
	if r.Err != nil {
		return task.Management{}, r.Err
	}
	return out, nil
}
