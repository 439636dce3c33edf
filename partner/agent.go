// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"iter"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
)

// Agent carries out the turns of a Partner's tasks. Its methods may be called by any number of goroutines at once.
// Every error that it returns or yields is a *task.Error with a Detail that a Leader may read.
type Agent interface {
	// Run carries a turn out and yields the agent's reports. The sequence ends when the turn has settled (see
	// task.State.Settled), when ctx is done, or with an error. With stream, the agent is asked to report while it
	// works; an agent that cannot do that reports the result only.
	//
	// An error that proves that nothing of the turn has reached the agent is of kind AgentUnavailable; one that proves
	// that the agent has given up the turn, AgentTimeout. After any other error the agent may still be working: see
	// Resume.
	Run(ctx context.Context, t *agent.Turn, stream bool) iter.Seq2[agent.Report, error]

	// Resume continues a turn whose connection was lost, by any means that the agent has, until the turn has settled.
	// It yields AgentTimeout when the agent no longer works on the turn, TaskNotFound when it does not know the task,
	// and AgentUnavailable when it has not received the turn: the task is settled, and its revision is still
	// Turn.Revision; or the agent names its tasks, and neither has named this one nor lists it.
	Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error]

	// Cancel asks the agent to stop, and returns the state of the task after that. The error of an agent that refuses
	// is of kind TaskNotCancelable.
	Cancel(ctx context.Context, t *agent.Turn) (agent.Report, error)

	// Complete informs the agent that the Leader has completed the task. It does nothing for an agent whose protocol
	// has no message for that.
	Complete(ctx context.Context, t *agent.Turn) error
}

// An Admitter is an Agent that bounds the turns that wait for it.
type Admitter interface {
	// Admit returns an error of kind LimitExceeded if another turn of a Leader, as in agent.Turn, may not wait, and nil
	// otherwise.
	Admit(leader string) error
}

// A Resumer is an Agent that says whether it can resume a turn whose connection was lost. Others can.
type Resumer interface {
	// CanResume reports that. It does not wait.
	CanResume() bool
}

// A Keeper is an Agent that says whether its agent keeps tasks while it works on them, as far as was seen. What it says
// when a turn begins is stored, for the process that resumes the turn.
type Keeper interface {
	// KeepsTasks reports that. It does not wait.
	KeepsTasks() bool
}

// An InlineAgent is an Agent that can carry out the beginning of a turn in the goroutine that waits for its result. So
// a turn that is one request with a prompt answer costs no other goroutine.
type InlineAgent interface {
	// Inline prepares a turn. The reports of the InlineTurn are those of Run without stream.
	Inline(t *agent.Turn) InlineTurn
}

// An InlineTurn is a turn whose beginning is carried out by the goroutine that waits for its result. Wait is called
// at most once, and Rest once after it if the turn has not ended.
type InlineTurn interface {
	// Wait carries the turn out while that is one request and its answer. It returns early at the time until, or when
	// Interrupt is called. If ended is true, the report is the only one of the turn, and the turn has ended. Otherwise
	// there is no report yet, and Rest must be called. ctx is the context of the whole turn. When it is canceled,
	// Interrupt must be called after that.
	Wait(ctx context.Context, until time.Time) (rep agent.Report, ended bool)

	// Interrupt ends Wait. It may be called by any goroutine, at any time, and more than once.
	Interrupt()

	// Rest carries out the rest of the turn, with the context of Wait. It yields as Agent.Run does.
	Rest() iter.Seq2[agent.Report, error]
}
