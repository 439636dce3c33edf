// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"iter"

	"github.com/aip-gateway/aip-gateway/agent"
)

// An Admitter is an Agent that bounds the turns that wait for it.
type Admitter interface {
	// Admit returns an error of kind LimitExceeded where another turn may not wait, and nil otherwise.
	Admit() error
}

// Agent is what stands behind a Partner. Its methods may be called by any number of goroutines at once. Every
// error that it returns or yields is a *task.Error with a Detail that a Leader may read.
type Agent interface {
	// Run carries a turn out and yields what the agent says until the turn rests (task.State.Rests), ctx is
	// done, or it fails, which ends the sequence. stream asks for news while the agent works; an agent that
	// has none gives only the result.
	//
	// An error that proves that nothing of the turn reached the agent is of kind AgentUnavailable; one that
	// proves that the agent has given the turn up, AgentTimeout. After any other the turn may be running:
	// Resume tells.
	Run(ctx context.Context, t *agent.Turn, stream bool) iter.Seq2[agent.Report, error]

	// Resume goes on with a turn whose connection was lost, by any means that the agent has, until it rests.
	// It yields AgentTimeout when the agent no longer works on it, TaskNotFound when it does not know the task,
	// and AgentUnavailable when it has not taken the turn: it rests as Turn.Stamp says that it did before.
	Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error]

	// Cancel asks the agent to stop, and tells the state that the task then has. An agent that refuses is
	// TaskNotCancelable.
	Cancel(ctx context.Context, t *agent.Turn) (agent.Report, error)

	// Complete tells an agent that awaits it that the Leader has completed the task. The others do nothing.
	Complete(ctx context.Context, t *agent.Turn) error
}
