// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// Call is what is known of a call before it is carried out. A Policy keeps no reference to it.
type Call struct {
	Peer    *identity.Peer // who calls, and how that was proven
	Leader  string         // as the guard has it; empty where the call names a task alone, and callers are not identified
	Mount   string         // the path that the Partner is mounted under, without a slash at its end
	Dialect string         // the name of the caller's dialect
	Command string         // a command of AIP, or the name of another operation, whatever it is called in the dialect
	Method  string         // the dialect's own name of it; empty where it has none, as in a group
	Task    string         // the id of the task that the call is about, or may be; empty for none, and for a new one
	Message *task.Message  // nil where there is none
	Skills  []string       // of an invitation to a group: those that the Partner shall have in it
	Stream  bool           // the answer is a stream
	Webhook bool           // the call sets a webhook beside what its Command says

	skill skill
}

// setWebhook is the Command of a call that sets a webhook.
const setWebhook = "set-webhook"

// besides returns what a call does beside its command, as the call that does that alone; nil for nothing.
func (c *Call) besides() *Call {
	if !c.Webhook {
		return nil
	}
	also := *c
	also.Webhook, also.Command, also.Stream = false, setWebhook, false
	return &also
}

// isOperator reports whether the call is the operator's own, who could change the policy.
func (c *Call) isOperator() bool { return c.Peer.Kind == identity.OperatorKind }

// Refusal is the cause of the error of a call that is refused. It is for the log, and not for the caller.
type Refusal struct {
	// Rule is the name of the rule that has decided; NoRule if none had the call.
	Rule string
	// Skill says why no single skill was judged; nil if there was one, or none was looked for.
	Skill error
}

// NoRule is the name of what decides if no rule has a call.
const NoRule = "(no rule)"

// Error implements error.
func (r *Refusal) Error() string {
	s := "the rule " + r.Rule + " of the policy has decided"
	if r.Skill != nil {
		s += ": " + r.Skill.Error()
	}
	return s
}

// Denied returns the error of a call that a policy, or a decision point, does not allow. It says nothing of the policy.
func Denied(cause error) error {
	return task.Errorf(task.AuthorizationFailed, "You are not allowed to make this call.").WithCause(cause)
}
