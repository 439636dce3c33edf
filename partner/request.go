// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"github.com/aip-gateway/aip-gateway/dialect"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Request is a command of a Leader, and how it is to be carried out.
type Request struct {
	task.Call
	dialect.Policy

	// Accept, if it is not nil, is called when a start or a continue is accepted, while nothing else can happen to the
	// task, with the name of its log and its position before the command. After it only the store can fail. An error
	// refuses the command. undo, which may be nil, is called if the command cannot be stored. A command that changes
	// nothing, and is not refused, is accepted, too.
	Accept func(log string, at task.Position) (undo func(), err error)

	// AgentTask is the name that a task which is started has for its agent; empty for one that is made of the name of its
	// log. No two tasks may have the same.
	AgentTask string

	// Started, if it is not nil, is called when a start is stored, before anything else happens to the task. It must not
	// wait.
	Started func()

	// Operator says of a cancel that it is the operator's and not the Leader's: its DataItems begin those of the status,
	// and it does not become a message of the Leader.
	Operator bool

	// Histories makes Do answer with the histories of the task, as it answers a get, whatever the command.
	Histories bool

	// Reserve, if it is not nil, is called before memory is held for the request: for its message, and for what is read
	// from the store. What was reserved is held until the answer is sent, unless Reserve is called with 0.
	Reserve replay.Reserve
}
