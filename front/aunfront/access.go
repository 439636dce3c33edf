// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"slices"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// The gateway of an agent decides about every call naming a task, also if the front answers the call itself: for the
// actual caller, under its own method, and counted in its quotas.

// lookUps are the methods naming a task, with their commands for a policy. Those of an assignee only look the task up
// for a client not working on it.
var lookUps = map[string]task.Command{
	codec.Get: task.Get, codec.SendInput: task.Continue, codec.Cancel: task.Cancel, codec.Subscribe: task.ReStream,
	codec.Children: task.Get, codec.Delegate: task.Start,
	codec.Accept: task.Get, codec.Reject: task.Get, codec.Complete: task.Get, codec.Fail: task.Get,
}

// decider returns the agent whose gateway decides about a call naming a task of no known agent, and counts it: the
// first one that admits the client, with rules allowing the call. It is nil for other methods, and for an assignee's
// own tasks. denied is true if no agent allows the call. Then the task need not be looked up, and the caller does not
// learn of existing tasks: the gateway of the first agent refuses the call.
func (s *Session) decider(method, id string) (a *Agent, denied bool) {
	f, command := s.serving(), lookUps[method]
	if command == "" || len(f.aids) == 0 || s.worksOn(id) {
		return nil, false
	}
	i := slices.IndexFunc(f.aids, func(aid string) bool {
		a := f.agents[aid]
		return a.Gateway.Admits(codec.Name, s.Peer) && !s.isDenied(a, method, command)
	})
	return f.agents[f.aids[max(i, 0)]], i < 0
}

// unknown returns a task of no known agent as one of an agent whose gateway does not find it.
func (s *Session) unknown(id string, a *Agent) call {
	e := &entry{Log: a.Gateway.LogOf(s.Peer.Leader(), id)}
	return call{id: id, entry: e, agent: a, role: owner, peer: s.Peer, unknown: true}
}

// isDenied reports whether the policy of an agent denies a call. Its message decides nothing: in AUN it names no skill.
func (s *Session) isDenied(a *Agent, method string, command task.Command) bool {
	return a.Gateway.Denies(&policy.Call{Peer: &s.Peer, Leader: s.Peer.Leader(), Dialect: codec.Name,
		Command: string(command), Method: method, Stream: command == task.ReStream}) != nil
}

// describe adds the caller to a request. Of all but the owner's, the agent's gateway is called as the owner.
func (s *Session) describe(q *gateway.Request, c *call) {
	q.Host, q.TLS, q.Address, q.Transport = s.host, s.tls, s.address, "AUN"
	q.Reader = s.Peer.Leader()
	if c.role != owner {
		q.Caller, q.OfAgent = &s.Peer, c.role == assignee
	}
}

// admit has the gateway of a task's agent decide about a call answered here, and count it. A task of no known agent is
// gone after the decision, and not before: the answer is the same for a client without the right to call.
func (s *Session) admit(ctx context.Context, r *request, c *call) error {
	if c.agent == nil { // the client works on the task
		return nil
	}
	var q gateway.Request
	defer q.Release()
	s.describe(&q, c)
	made := gateway.Call{Dialect: codec.Name}
	made.Method, made.Message.Command, made.Message.TaskID = r.Method, lookUps[r.Method], c.id
	if err := c.agent.Gateway.Admit(ctx, c.peer, &q, &made); err != nil {
		return err
	}
	r.summary.Command, r.summary.Task = string(made.Message.Command), c.id
	if c.unknown {
		return errGone(c.id)
	}
	return nil
}
