// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"iter"
	"time"

	"github.com/aip-gateway/aip-gateway/task/agent"
)

// Agent carries out the turns of a Partner's tasks. Its methods may be called by any number of goroutines at once.
// Every error it returns or yields is a *task.Error with a Detail that a Leader may read.
type Agent interface {
	// Run carries a turn out and yields the agent's reports. The sequence ends when the turn has settled (see
	// task.State.Settled), when ctx is done, or with an error. With stream, the agent is asked to report while it works;
	// an agent unable to do so reports the result only.
	//
	// An error is of kind AgentUnavailable if it proves that nothing of the turn has reached the agent, and of kind
	// AgentTimeout if it proves that the agent has given up the turn. After any other error the agent may still be
	// working: see Resume.
	Run(ctx context.Context, t *agent.Turn, stream bool) iter.Seq2[agent.Report, error]

	// Resume continues a turn after its connection was lost, by any means of the agent, until the turn has settled. It
	// yields AgentTimeout when the agent no longer works on the turn, TaskNotFound when it does not know the task, and
	// AgentUnavailable when it has not received the turn: the task is settled, and its revision is still Turn.Revision; or
	// the agent names its tasks, and neither has named this one nor lists it.
	Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error]

	// Cancel asks the agent to stop, and returns the state of the task after that. If the agent refuses, the error is of
	// kind TaskNotCancelable.
	Cancel(ctx context.Context, t *agent.Turn) (agent.Report, error)

	// Complete informs the agent that the Leader has completed the task. It does nothing if the agent's protocol has no
	// message for it.
	Complete(ctx context.Context, t *agent.Turn) error
}

// An Admitter is an Agent with a bound on the turns waiting for it.
type Admitter interface {
	// Admit returns an error of kind LimitExceeded if another turn of a Leader, as in agent.Turn, may not wait, and nil
	// otherwise.
	Admit(leader string) error
}

// A Resumer is an Agent that says whether it can resume a turn after its connection was lost. Others can.
type Resumer interface {
	// CanResume reports whether it can. It does not wait.
	CanResume() bool
}

// A Keeper is an Agent that says whether its agent keeps tasks while it works on them, as far as was seen. Its word at
// the beginning of a turn is stored, for the process resuming the turn.
type Keeper interface {
	// KeepsTasks reports whether the agent does. It does not wait.
	KeepsTasks() bool
}

// An InlineAgent is an Agent able to carry out the beginning of a turn in the goroutine waiting for its result. So a
// turn of one request with a prompt answer costs no other goroutine.
type InlineAgent interface {
	// Inline prepares a turn. The reports of the InlineTurn are those of Run without stream.
	Inline(t *agent.Turn) InlineTurn
}

// An InlineTurn is a turn begun by the goroutine waiting for its result. Wait is called at most once, and Rest once
// after it if the turn has not ended.
type InlineTurn interface {
	// Wait carries the turn out while it is one request and its answer. It returns early at the time until, or when
	// Interrupt is called. If ended is true, the report is the only one of the turn, and the turn has ended. Otherwise
	// there is no report yet, and Rest must be called. ctx is the context of the whole turn. When it is canceled,
	// Interrupt must be called afterwards.
	Wait(ctx context.Context, until time.Time) (rep agent.Report, ended bool)

	// Interrupt ends Wait. It may be called by any goroutine, at any time, and more than once.
	Interrupt()

	// Rest carries out the rest of the turn, with the context of Wait. It yields as Agent.Run does.
	Rest() iter.Seq2[agent.Report, error]
}
