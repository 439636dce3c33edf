// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/dialect"
)

// Op is the operation of a Call.
type Op uint8

// The operations. All but Command are about the gateway's own data, and never reach an agent.
const (
	Command        Op = iota // the one of Call.Message.Command
	SetWebhook               // create or replace Call.Webhook
	GetWebhooks              // the webhook Call.Webhook.ID of the task, or all of them if that is empty
	DeleteWebhooks           // likewise
	ListTasks                // Call.List
	ExtendedCard             // the card that only callers may see
	JoinGroup                // Call.Invitation
)

// Call is a decoded request: the question, and the wanted form of its answer. The gateway makes a Message.TaskID that
// is empty in a start. SenderID is empty in dialects without a sender.
type Call struct {
	task.Call
	dialect.Policy
	Op     Op
	Method string // the dialect's own name of it, if several have the same Op; a constant, no view

	// AnswerID is the id that the caller wants for its answer, in a dialect with ids of answers; empty for none.
	AnswerID string
	// SessionOf is the id of a task. The message is sent in its session. Message.SessionID, if it is not empty, must be
	// that session, or a part of it: see Sessions. Empty for none.
	SessionOf string

	Stream bool // the answer is a stream of events
	// Reply is set if a stream of an existing task is answered as well: by AppendTask, with the task as it is before the
	// first event of the stream.
	Reply bool
	// Blocking is set if a start or continue is answered when the agent finishes or needs input. Terms.Response is not a
	// limit for this: in the dialect, callers wait for as long as the gateway allows.
	Blocking bool
	// History is the number of last messages in the answer; negative means all of them.
	History int

	// Webhook is the webhook of SetWebhook, GetWebhooks and DeleteWebhooks; only TaskID and ID count for the last two. Of
	// a Command it is the webhook to use: with a URL it is set first, with an ID alone it must exist, and States narrow it
	// either way.
	Webhook *task.Webhook
	// Subscribe is set for a SetWebhook if the webhook must exist, and is narrowed to its States. The answer is the task,
	// or says that there is none yet.
	Subscribe bool
	// TaskExists is set if SetWebhook, GetWebhooks and DeleteWebhooks are for existing tasks; otherwise a webhook may be
	// there before its task. To delete a missing one is no error then.
	TaskExists bool
	List       *task.List

	// Invitation is the invitation of JoinGroup. Its Leader is Message.SenderID, its group Message.GroupID.
	Invitation *task.Invitation
}
