// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// GroupForm is the form of the messages of a group's member.
type GroupForm struct {
	Dialect string // that of a GroupMessage or of an Invitation
	AIC     string // of the member
	GroupID string
}

// AppendTask appends a Task, or the TaskResult of v02. Its id is the one of the message. Products are always there, and
// histories never: the members of the group have seen them.
func (f GroupForm) AppendTask(dst []byte, id string, t *task.Task) []byte {
	return f.appendTask(dst, id, t, nil, nil)
}

// AppendAnswer is AppendTask for the answer to a command. It shows the histories of the Task.
func (f GroupForm) AppendAnswer(dst []byte, id string, t *task.Task) []byte {
	return f.appendTask(dst, id, t, t.MessageHistory, t.StatusHistory)
}

func (f GroupForm) appendTask(dst []byte, id string, t *task.Task, messages []task.Message,
	statuses []task.Status) []byte {
	of := *t
	of.SenderID, of.GroupID, of.MessageHistory, of.StatusHistory = f.AIC, f.GroupID, messages, statuses
	if f.Dialect == nameV2 {
		s := serverV2{sender: func() string { return f.AIC }}
		return s.appendResult(dst, id, &of)
	}
	return form.AppendTask(dst, &of)
}

// inBeijing returns a time as the gateway writes its own: in the zone of AIP (§4.3), in milliseconds.
func inBeijing(at time.Time) time.Time { return at.In(beijing).Truncate(time.Millisecond) }

// AppendRejected appends the Task of a start refused by an error: the exchange has no other form for it.
func (f GroupForm) AppendRejected(dst []byte, id string, start *task.Message, at time.Time, err error) []byte {
	e := wire.ErrorOf(err)
	reason := e.Detail
	if reason == "" {
		reason = errorTable[e.Kind].message
	}
	return f.AppendTask(dst, id, &task.Task{
		ID: start.TaskID, SessionID: start.SessionID,
		Status: task.Status{
			State: task.Rejected, ChangedAt: inBeijing(at), DataItems: []task.DataItem{task.Text(reason)},
		},
	})
}

// AnnouncesMembers reports whether a member publishes its status when it has joined. It does so in v02.01 (§7.1); in
// v01.00 its Leader learns this from the answer to the invitation.
func (f GroupForm) AnnouncesMembers() bool { return f.Dialect == nameV2 }

// AppendMemberStatus appends the status of the member. id and at are those of the message, session is the one of the
// answered command; empty for none. It is a message like any other, with items and a group: the reference code cannot
// read it without.
func (f GroupForm) AppendMemberStatus(dst []byte, id string, at time.Time, session string,
	s task.MemberStatus) []byte {
	kind, status := typeManagement, "groupMemberStatus"
	if f.Dialect == nameV2 {
		kind, status = typeMemberStatus, "status"
	}
	dst = task.AppendString(append(dst, `{"type":`...), kind)
	dst = task.AppendString(append(dst, `,"id":`...), id)
	dst = task.AppendTime(append(dst, `,"sentAt":`...), inBeijing(at))
	dst = task.AppendString(append(dst, `,"senderRole":"partner","senderId":`...), f.AIC)
	dst = append(task.AppendString(append(dst, ','), status), `:{"connected":`...)
	dst = strconv.AppendBool(dst, s.Connected)
	dst = strconv.AppendBool(append(dst, `,"muted":`...), s.Muted)
	dst = task.AppendString(append(dst, `},"dataItems":[],"groupId":`...), f.GroupID)
	if f.Dialect == nameV2 {
		if session != "" {
			dst = task.AppendString(append(dst, `,"sessionId":`...), session)
		}
	}
	return append(dst, '}')
}
