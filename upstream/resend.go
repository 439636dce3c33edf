// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// Resend is the condition for sending a message again if the agent may have received it, but denies having it.
type Resend uint8

const (
	// ResendProven is for a message that the agent provably does not have. The word of an agent of a Forgetter proves it
	// only if the agent has been seen to know a task while it works on it, and counts once for each message: others may
	// store a task at its end, or never.
	ResendProven Resend = iota
	ResendAlways        // regardless of the agent's known tasks
	ResendNever
)

var _ partner.Keeper = (*Agent)(nil)

// KeepsTasks implements partner.Keeper.
func (a *Agent) KeepsTasks() bool { return a.config.Traffic.keeps.Load() }

// noteKept notes an agent's knowledge of a task when it is asked for it.
func (r *run) noteKept(rep *agent.Report) {
	if r.facets.Forgetter != nil && rep.State != task.None && !rep.State.Settled() && !r.KeepsTasks() {
		r.config.Traffic.keeps.Store(true)
	}
}

// mayResend returns an error if a message that the agent may have received must not be sent again, although the agent
// denies having it. Without one, the message is to be sent again. cause is the reason the agent was asked, or nil.
func (r *run) mayResend(cause error) error {
	switch {
	case ReasonOf(cause) == OtherAnswer: // the agent has taken the message, and answered it wrongly
		return cause
	case r.config.Resend == ResendNever:
		return task.Errorf(task.AgentTimeout, "the connection to the agent broke, and the agent does not have the message; "+
			"it is unknown whether the agent will act on it, so it is not sent again")
	case r.config.Resend == ResendAlways || r.facets.Forgetter == nil:
		return nil
	case (r.turn.Kept || r.KeepsTasks()) && !r.repeated && !r.turn.Repeated:
		r.repeated = true
		return nil
	}
	return Failed(task.AgentTimeout, NoReason, cause, "the connection to the agent broke, and the agent says that it "+
		"does not have the message; it may have done the work all the same, so the message is not sent again; a new "+
		"start does the work again")
}
