// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// Call is the gateway's knowledge of a call before it is carried out. A Policy keeps no reference to it.
type Call struct {
	Peer    *identity.Peer // the caller, and its proof
	Leader  string         // as the guard has it; empty if the call names a task alone, and callers are not identified
	Mount   string         // the path of the Partner's mount, without a slash at its end
	Dialect string         // the name of the caller's dialect
	Command string         // a command of AIP, or the name of another operation, whatever it is called in the dialect
	Method  string         // the dialect's own name of it; empty if it has none, as in a group
	Task    string         // the id of the task of the call, or of its possible task; empty for none, and for a new one
	Message *task.Message  // nil if there is none
	Skills  []string       // of an invitation to a group: the Partner's skills in it
	Stream  bool           // the answer is a stream
	Webhook bool           // the call sets a webhook beside its Command

	skill skill
}

// setWebhook is the Command of a call to set a webhook.
const setWebhook = "set-webhook"

// besides returns a second action of a call, beside its command, as a call for that alone; nil for none.
func (c *Call) besides() *Call {
	if !c.Webhook {
		return nil
	}
	also := *c
	also.Webhook, also.Command, also.Stream = false, setWebhook, false
	return &also
}

// isOperator reports whether the call is the operator's own, with power over the policy.
func (c *Call) isOperator() bool { return c.Peer.Kind == identity.OperatorKind }

// Refusal is the cause of the error of a refused call. It is for the log, and not for the caller.
type Refusal struct {
	// Rule is the name of the deciding rule; NoRule if none had the call.
	Rule string
	// Skill is the reason why no single skill was judged; nil if there was one, or none was looked for.
	Skill error
}

// NoRule is the name for a decision without a rule for the call.
const NoRule = "(no rule)"

// Error implements error.
func (r *Refusal) Error() string {
	s := "the rule " + r.Rule + " of the policy has decided"
	if r.Skill != nil {
		s += ": " + r.Skill.Error()
	}
	return s
}

// Denied returns the error of a call denied by a policy, or by a decision point. It says nothing of the policy.
func Denied(cause error) error {
	return task.Errorf(task.AuthorizationFailed, "You are not allowed to make this call.").WithCause(cause)
}
