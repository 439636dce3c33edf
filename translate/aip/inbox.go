// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// This file is the invitation to a group by the inbox of an agent at a message broker, and its refusal (v02.02 §7.1,
// §7.3).

// maxInvitationToken is the longest token of an invitation, in bytes.
const maxInvitationToken = 512

// The types of messages in an inbox.
const (
	typeInvitation      = "group-invitation"
	typeInvitationError = "group-invitation-error"
)

// InboxInvitation is an invitation from the inbox of an agent. It holds copies.
type InboxInvitation struct {
	Token     string // a secret of the Leader and the agent, for the Leader to know the invitation again
	LeaderAIC string
	GroupID   string
	ExpiresAt time.Time // without the allowed skew of clocks
	V0201     bool      // it has the form of v02.01, without its sender
	// Call is the call with the invitation. It names no broker: the broker is the one of the inbox.
	Call translate.Call
}

// ReadInboxInvitation reads a message of an inbox. It reports false for any other message. With an error, the Token,
// LeaderAIC and GroupID are there as far as the message has them; errors quote none of them.
func ReadInboxInvitation(body []byte, limits jsonrpc.Limits) (in InboxInvitation, is bool, err error) {
	message, bad := jsonrpc.ParseValue(body, limits)
	if bad != nil {
		return in, true, task.Errorf(task.ParseError, "%s", bad.Detail).WithField(bad.Field)
	}
	if !message.IsObject() {
		return in, true, task.Errorf(task.InvalidParams, "a message must be an object")
	}
	if jsonrpc.Member(message, "type").Str != typeInvitation {
		return in, false, nil
	}
	r := reader{version: &v2}
	token := jsonrpc.Member(message, "invitationToken")
	in.Token = wire.Owned(token, r.Required(token, "invitationToken", maxInvitationToken))
	if r.Err != nil {
		in.Token = ""
	}
	invited := &task.Invitation{Dialect: nameV2}
	r.inside(message, "group", func(group gjson.Result) { r.group(group, &invited.Group) })
	if r.Err == nil {
		in.LeaderAIC, in.GroupID = invited.Group.Leader.AIC, invited.Group.ID
	}
	in.V0201 = wire.Absent(jsonrpc.Member(message, "senderId"))
	r.sender(message, &invited.Group)
	at := jsonrpc.Member(message, "expiresAt")
	if in.ExpiresAt = r.time(at, "expiresAt"); in.ExpiresAt.IsZero() {
		r.Fail("expiresAt", "expiresAt is missing")
	}
	r.protocol(message, invited)
	r.inside(message, "amqp", func(amqp gjson.Result) { r.exchange(amqp, &invited.Exchange) })
	if r.Err != nil {
		return in, true, r.Err
	}
	in.Call = joins(invited)
	return in, true, nil
}

// sender checks the second naming of the sender and the group of an invitation. In v02.01 they are named once.
func (r *reader) sender(message gjson.Result, g *task.Group) {
	if role := jsonrpc.Member(message, "senderRole"); !wire.Absent(role) {
		r.Word(role, "senderRole", string(task.Leader))
	}
	sender := jsonrpc.Member(message, "senderId")
	if !wire.Absent(sender) && !strings.EqualFold(sender.Str, g.Leader.AIC) {
		r.Fail("senderId", "senderId must be group.leader.aic")
	}
	if group := jsonrpc.Member(message, "groupId"); !wire.Absent(group) && group.Str != g.ID {
		r.Fail("groupId", "groupId must be group.groupId")
	}
}

// AppendInboxRefusal appends the message with an invitation's refusal by an agent with an AIC, in the inbox of its
// Leader. id and at are those of the message. In v02.01, partnerAic is the refusing agent.
func AppendInboxRefusal(dst []byte, id string, at time.Time, aic string, in *InboxInvitation, err error) []byte {
	e := wire.ErrorOf(err)
	w := errorV2(e.Kind).typed(e.Kind)
	dst = task.AppendString(append(dst, `{"type":"`+typeInvitationError+`","id":`...), id)
	dst = task.AppendTime(append(dst, `,"sentAt":`...), inBeijing(at))
	dst = task.AppendString(append(dst, `,"senderRole":"partner","senderId":`...), aic)
	if in.V0201 {
		dst = task.AppendString(append(dst, `,"partnerAic":`...), aic)
	}
	dst = task.AppendString(append(dst, `,"groupId":`...), in.GroupID)
	dst = task.AppendString(append(dst, `,"invitationToken":`...), in.Token)
	dst = strconv.AppendInt(append(dst, `,"error":{"code":`...), int64(w.code), 10)
	dst = task.AppendString(append(dst, `,"message":`...), w.message)
	dst = task.AppendString(append(dst, `,"data":{"errorType":`...), w.errorType)
	if e.Detail != "" {
		dst = task.AppendString(append(dst, `,"details":`...), e.Detail)
	}
	return append(dst, `}}}`...)
}
