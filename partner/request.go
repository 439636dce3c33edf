// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"time"

	"github.com/aip-gateway/aip-gateway/dialect"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Request is a command of a Leader, and how it is to be carried out. But for Reserve it is data.
type Request struct {
	task.Call
	dialect.Policy
	Extras

	// AgentTask is the name that a task which is started has for its agent; empty for one that is made of the name of its
	// log. No two tasks may have the same.
	AgentTask string

	// Proof is how the caller has proven who it is, as identity.Proof names it; empty for not at all.
	Proof string
	// Subject is for whom the caller acts, as its access token says; empty for itself.
	Subject string

	// Bounds are what a start must keep to beside what the Partner requires.
	Bounds Bounds

	// Operator says of a cancel that it is the operator's and not the Leader's: its DataItems begin those of the status,
	// and it does not become a message of the Leader.
	Operator bool

	// Histories makes Do answer with the histories of the task, as it answers a get, whatever the command.
	Histories bool

	// Waited is for how long the caller has waited for an owner of the shard: Do waits for the agent as much shorter. It
	// waits for a turn, too, that the command has begun at an owner before.
	Waited time.Duration

	// Reserve, if it is not nil, is called before memory is held for the request: for its message, and for what is read
	// from the store. What was reserved is held until the answer is sent, unless Reserve is called with 0.
	Reserve replay.Reserve
}

// Bounds are what bounds a start for its caller. A start beyond them is refused by a BoundError.
type Bounds struct {
	NoStart    bool // the command must start no task; a repeated one, and one that continues a task, are carried out
	NoContinue bool // the command must continue no task; a repeated one, and one that starts a task, are carried out
	OfLeader   int  // how many unfinished tasks its Leader may have at the Partner; 0 for any number
	OfAll      int  // how many unfinished tasks all Leaders may have at the Partner, in this shard; 0 for any number
}

// BoundError says which of the Bounds refuses a start. The one that has set them makes an error for callers of it.
type BoundError struct{ NoStart, NoContinue, OfAll bool }

// Error implements error.
func (e *BoundError) Error() string { return "partner: the start is beyond the bounds of its caller" }

// Extras are what a command brings that is stored beside its task. The Acceptors of the engine store it when the
// command is accepted.
type Extras struct {
	// Webhook is a webhook of the task; nil for none. With a URL it is created, or replaces the one of its id. Without a
	// URL it must exist, and a start narrows it to the states that it names.
	Webhook *task.Webhook
	// Adopt gives the task the webhooks that were set for its id while its Leader was not known.
	Adopt bool

	// Group is the group in which a task that is started is published; empty for none. It is published in the form that
	// Dialect has. Commit is after how long its start is accepted; 0 for the Partner's own time.
	Group   string
	Dialect string
	Commit  time.Duration

	// Entry is what the front keeps of a task that is started, in a form of its own; nil for nothing.
	Entry []byte
}

// changesTask reports whether an Acceptor may have something to do for a task that exists.
func (x *Extras) changesTask() bool { return x.Webhook != nil || x.Adopt }

// Result is what a command has brought.
type Result struct {
	Task task.Task // that answers it
	Log  string    // the name of the log of the task
	New  bool      // the command has started the task
	// After is the number of the event after which Read continues: the last one that Task shows, or the one before the
	// first event of a stream. Last is that of the last event when the command was answered. Both are 0 where there is
	// none.
	After, Last uint64
}
