// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"github.com/aip-gateway/aip-gateway/dialect"
	"github.com/aip-gateway/aip-gateway/task"
)

// Op says what a Call asks for.
type Op uint8

// The operations. All but Command are about what the gateway keeps, and never reach an agent.
const (
	Command        Op = iota // what Call.Message.Command says
	SetWebhook               // create or replace Call.Webhook
	GetWebhooks              // the webhook Call.Webhook.ID of the task, or all of them where that is empty
	DeleteWebhooks           // likewise
	ListTasks                // Call.List
	ExtendedCard             // the card that only callers may see
	JoinGroup                // Call.Invitation
)

// Call is a decoded request: what is asked for, and how its answer is wanted. A Message.TaskID that is empty
// in a start is made by the gateway. SenderID is empty in dialects that name no sender.
type Call struct {
	task.Call
	dialect.Policy
	Op     Op
	Method string // the dialect's own name of it, where several have the same Op; a constant, no view

	// AnswerID is the id that the caller wants its answer to have, in a dialect whose answers have ids of their own; empty
	// for none.
	AnswerID string
	// SessionOf is the id of a task in whose session the message is sent. Message.SessionID, if it is not empty, must be
	// that session, or a part of it: see Sessions. Empty for none.
	SessionOf string

	Stream bool // the answer is a stream of events
	// Reply says that a stream of a task that exists is answered as well: by AppendTask, with the task as it is before the
	// first event of the stream.
	Reply bool
	// Blocking says that a start or continue is answered when the agent finishes or needs input. Terms.Response does not
	// say how long that may take: in the dialect, callers wait for as long as the gateway allows.
	Blocking bool
	// History is how many of the last messages the answer shows; negative means all of them.
	History int

	// Webhook is what SetWebhook, GetWebhooks and DeleteWebhooks are about; only TaskID and ID count for the last
	// two. Of a Command it is the webhook to use: with a URL it is set first, with an ID alone it must exist,
	// and States narrow it either way.
	Webhook *task.Webhook
	// Subscribe says of SetWebhook that the webhook must exist, and is narrowed to its States. The answer is the task, or
	// that there is none yet.
	Subscribe bool
	// TaskExists says that SetWebhook, GetWebhooks and DeleteWebhooks are for tasks that exist; otherwise a webhook may
	// be there before its task. To delete one that is not there is no error then.
	TaskExists bool
	List       *task.List

	// Invitation is what JoinGroup is about. Its Leader is Message.SenderID, its group Message.GroupID.
	Invitation *task.Invitation
}
