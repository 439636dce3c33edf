// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/dialect"
)

// Request is a command of a Leader, with the terms of its execution. But for Reserve it is data.
type Request struct {
	task.Call
	dialect.Policy
	Extras

	// AgentTask names a started task for its agent; empty for a name made of the name of the task's log. No two tasks may
	// have the same.
	AgentTask string

	// Proof is the caller's means to prove its identity, as identity.Proof names it; empty for no proof.
	Proof string
	// Subject is the one for whom the caller acts, as its access token says; empty if the caller acts for itself.
	Subject string

	// Bounds bound a start beside the Partner's own requirements.
	Bounds Bounds

	// Operator marks a cancel as the operator's, not the Leader's: its DataItems begin those of the status, and it does
	// not become a message of the Leader.
	Operator bool

	// Histories makes Do answer with the histories of the task, as it answers a get, whatever the command.
	Histories bool

	// Waited is the time for which the caller has waited for an owner of the shard: Do waits for the agent as much
	// shorter. It waits for a turn, too, begun by the command at an earlier owner.
	Waited time.Duration

	// Reserve, if it is not nil, is called before memory is held for the request: for its message, and for records read
	// from the store. The reserved memory is held until the answer is sent, unless Reserve is called with 0.
	Reserve replay.Reserve
}

// Bounds bound a start for its caller. A start beyond them is refused by a BoundError.
type Bounds struct {
	NoStart    bool // the command must start no task; a repeated one, and one continuing a task, are carried out
	NoContinue bool // the command must continue no task; a repeated one, and one starting a task, are carried out
	OfLeader   int  // the most unfinished tasks of its Leader at the Partner; 0 for any number
	OfAll      int  // the most unfinished tasks of all Leaders at the Partner, in this shard; 0 for any number
}

// BoundError names the one of the Bounds that refuses a start. The setter of the Bounds makes an error for callers of
// it.
type BoundError struct{ NoStart, NoContinue, OfAll bool }

// Error implements error.
func (e *BoundError) Error() string { return "partner: the start is beyond the bounds of its caller" }

// Extras are the parts of a command stored beside its task. The Acceptors of the engine store them when the command is
// accepted.
type Extras struct {
	// Webhook is a webhook of the task; nil for none. With a URL it is created, or replaces the one of its id. Without a
	// URL it must exist, and a start narrows it to its own list of states.
	Webhook *task.Webhook
	// Adopt gives the task the webhooks set for its id while its Leader was not known.
	Adopt bool

	// Group is the group in which a started task is published; empty for none. It is published in the form of Dialect.
	// Commit is the time until its start is accepted; 0 for the Partner's own time.
	Group   string
	Dialect string
	Commit  time.Duration

	// Entry is the front's own record of a started task, in a form of its own; nil for nothing.
	Entry []byte
}

// changesTask reports whether an Acceptor may have something to do for an existing task.
func (x *Extras) changesTask() bool { return x.Webhook != nil || x.Adopt }

// Result is the result of a command.
type Result struct {
	Task task.Task // the answer
	Log  string    // the name of the log of the task
	New  bool      // the command has started the task
	// After is the number of the event before the first one of Read: the last one shown by Task, or the one before the
	// first event of a stream. Last is the number of the last event at the time of the answer. Both are 0 if there is
	// none.
	After, Last uint64
}
