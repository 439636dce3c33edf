// SPDX-License-Identifier: Apache-2.0

// Package dialect is the contract between the dialect that a caller speaks and the life-cycle of tasks: what the
// life-cycle must know of the dialect to carry out a command as the caller expects it.
package dialect

// Policy says how a command is carried out where dialects differ. The zero Policy is that of AIP v01.00, which has
// AnswerIsProduct and Direct besides.
type Policy struct {
	// Strict makes a command that the state table ignores an error: UnsupportedOperation, and of a cancel
	// TaskNotCancelable. The same holds for a re-stream of a task that has ended, and for a webhook to be set under an id
	// that is not known.
	Strict bool
	// SameSession refuses a continue that names another session than that of its task. Without it, that session is
	// ignored.
	SameSession bool
	// StartOrContinue makes a start of a task that exists a continue.
	StartOrContinue bool
	// BySession makes a start the next message of its session: it continues the last task of the session, or starts
	// another one if that has ended. The message names a session and no task. While the agent works on the task, the
	// message is refused: UnsupportedOperation with the reason SessionBusy. A cancel that names a session and no task ends
	// the turn that is under way there; where there is none, it changes nothing, and its answer may show no task.
	BySession bool
	// Finished says that, for the caller, a task that awaits completion has ended: a cancel of it is refused, and with
	// Strict a re-stream, too.
	Finished bool
	// Snapshot makes a stream begin with the task as it is and continue with what comes after: the dialect has no event
	// numbers to continue from.
	Snapshot bool
	// AutoComplete completes a task that is started as soon as its agent has finished: the dialect has no complete
	// command.
	AutoComplete bool
	// AnswerIsProduct gives a task that is started a product wherever its agent finishes without one: what the agent has
	// said last. The callers of the dialect look for results there alone.
	AnswerIsProduct bool
	// Direct passes on what an agent that speaks AIP says: its first answer to a start or continue is the answer, and a
	// task that it completes is completed. Without it, a start or continue waits for the end of the turn, and the caller
	// completes the task.
	Direct bool
	// Tentative makes the answer to a start, a get and a re-stream show a task that its agent does not work on yet as one
	// without a state. So the agent may still reject it. Without it, an answer that shows the task makes it accepted.
	Tentative bool
	// Refusable answers a start that the agent refuses by the error of the agent, and leaves no task, if the agent refuses
	// it while its caller waits. Without it, or later, the task fails.
	Refusable bool
	// Begun stores that a start is accepted, and that the agent works on it, soon after the agent has not answered yet,
	// though its caller still waits, or when the caller leaves: webhooks and lists show it from then on. The agent cannot
	// reject it any more then; one that refuses it is still what its caller is answered. Without it, only an answer that
	// shows the task does so. For a start that is Followed, and not waited for, this counts where the agent
	// reports nothing before its answer.
	Begun bool
	// Followed says of a start or continue which is answered by a task that its caller follows the events of the task by
	// other means: the agent is asked to report while it works.
	Followed bool
}

// Continues reports whether a start may continue a task.
func (p *Policy) Continues() bool { return p.StartOrContinue || p.BySession }

// SessionBusy is the reason, a member of the data of an error, why a session takes no message: the agent works on one.
// The member "sessionId" is the session.
const SessionBusy = "SESSION_BUSY"
