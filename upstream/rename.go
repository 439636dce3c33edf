// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"log/slog"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// hold notes the holders of the agent's names from earlier turns, before it may read a message: of the session's name,
// and of the task's if the agent may make one in place of the gateway's (translate.Renamer). In a start, the latter is
// the gateway's. In any other turn it may be the agent's, from a turn of an earlier process.
func (r *run) hold() {
	if r.turn.OwnSession {
		r.takesSession(r.turn.Ref.Session)
	}
	if r.gave != nil {
		r.given.take(r.turn.Ref.Session, holder{})
	}
	if r.facets.Renamer != nil {
		r.taken.take(r.turn.Ref.Task, holderOf(r.turn.Leader, r.starts() && !r.turn.Named))
	}
}

// renamed decides whether a name of the agent in place of the gateway's counts. With a name given by the gateway to
// another task, the agent answers for the other one. This is an error. By the name of another Leader's task, the agent
// would be asked about the other task: so the name does not count, but the answer does.
func (r *run) renamed(rep *agent.Report) error {
	if rep.Ref == nil || r.facets.Renamer == nil || rep.Ref.Task == r.turn.Ref.Task {
		return nil
	}
	by := holderOf(r.turn.Leader, false)
	switch of, had := r.taken.take(rep.Ref.Task, by); {
	case had && of.given:
		return r.paired(task.Errorf(task.InvalidAgentResponse,
			"the agent's answer has the name of another task").WithCause(translate.ErrOtherAnswer))
	case had && of.leader != by.leader:
		rep.Ref, rep.OwnSession = nil, false
		r.logger().LogAttrs(r.ctx, slog.LevelWarn, "the agent gives tasks of several Leaders the same name; only the "+
			"first is asked for by it")
	}
	return nil
}
