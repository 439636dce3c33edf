// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

// Resend says when a message is sent again that the agent may have received, and does not have, as it says.
type Resend uint8

const (
	// ResendProven is for when the agent's word proves that it does not have the message. That of an agent of a Forgetter
	// proves it only if the agent has been seen to know a task while it works on it, and counts once for each message:
	// others may store a task at its end, or never.
	ResendProven Resend = iota
	ResendAlways        // whatever the agent was seen to know
	ResendNever
)

var _ partner.Keeper = (*Agent)(nil)

// KeepsTasks implements partner.Keeper.
func (a *Agent) KeepsTasks() bool { return a.config.Traffic.keeps.Load() }

// noteKept notes what an agent knows when it is asked for a task.
func (r *run) noteKept(rep *agent.Report) {
	if r.facets.Forgetter != nil && rep.State != task.None && !rep.State.Settled() && !r.KeepsTasks() {
		r.config.Traffic.keeps.Store(true)
	}
}

// mayResend returns an error where a message that the agent may have received must not be sent again, although the
// agent says that it does not have it. Without one, the message is to be sent again. cause is why the agent was asked,
// or nil.
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
