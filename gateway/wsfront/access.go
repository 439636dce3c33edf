// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"slices"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/policy"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Whatever names a task is decided about by the gateway of an agent, also where the front answers it itself: for who
// calls, under the method that the client has called, and counted in its quotas.

// lookUps are the methods that name a task, with what they are to a policy. Those of an assignee only look the task up
// for a client that does not work on it.
var lookUps = map[string]task.Command{
	codec.Get: task.Get, codec.SendInput: task.Continue, codec.Cancel: task.Cancel, codec.Subscribe: task.ReStream,
	codec.Children: task.Get, codec.Delegate: task.Start,
	codec.Accept: task.Get, codec.Reject: task.Get, codec.Complete: task.Get, codec.Fail: task.Get,
}

// decider returns the agent whose gateway decides about a call that names a task which no agent is known to have, and
// counts it: the first one that admits the client, and whose rules allow the call. It is nil for other methods, and for
// an assignee, which is told of its own tasks. denied says that no agent allows the call. Then the task need not be
// looked up, so that the caller is not told which tasks there are: the gateway of the first agent refuses the call.
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

// unknown returns a task which no agent is known to have as one of an agent, whose gateway does not find it.
func (s *Session) unknown(id string, a *Agent) call {
	e := &entry{Log: a.Gateway.LogOf(s.Peer.Leader(), id)}
	return call{id: id, entry: e, agent: a, role: owner, peer: s.Peer, unknown: true}
}

// isDenied reports whether the policy of an agent denies a call. Its message decides nothing: in AUN it names no skill.
func (s *Session) isDenied(a *Agent, method string, command task.Command) bool {
	return a.Gateway.Denies(&policy.Call{Peer: &s.Peer, Leader: s.Peer.Leader(), Dialect: codec.Name,
		Command: string(command), Method: method, Stream: command == task.ReStream}) != nil
}

// describe says in a request who calls. Of all but the owner's, the agent's gateway is called as the owner.
func (s *Session) describe(q *gateway.Request, c *call) {
	q.Host, q.TLS, q.Address, q.Transport = s.host, s.tls, s.address, "AUN"
	q.Reader = s.Peer.Leader()
	if c.role != owner {
		q.Caller, q.OfAgent = &s.Peer, c.role == assignee
	}
}

// admit has the gateway of a task's agent decide about a call that is answered here, and count it. A task that no agent
// is known to have is gone after that, and not before: the answer is the same for a client that may not call.
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
