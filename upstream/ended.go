// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// errStreamEnded is the error of a stream called ended by the agent before the end of the turn, with nothing sent after
// it.
var errStreamEnded = Failed(task.InvalidAgentResponse, StreamCut, io.EOF, "the agent has ended its stream")

// note keeps the parts of a report needed if the stream ends without a settled state. An agent calling the stream ended
// all the same has the grace to go on.
func (s *reading) note(rep *agent.Report) {
	if len(rep.Chunks) > 0 || rep.Full && len(rep.Products) > 0 && !offersTheSame(s.run.turn, rep) {
		s.delivered = true
	}
	if rep.State != task.None {
		s.said = rep.Items
	}
	switch {
	case rep.Last:
		if s.closing, s.last = true, rep.Items; rep.State == task.None && !s.delivered {
			s.last = s.said
		}
		s.renew()
	case s.closing && rep.State != task.None:
		s.closing, s.last = false, nil
		s.run.endAt(s.from, time.Time{})
	case s.closing && len(rep.Chunks) > 0:
		s.renew()
	}
}

// isEnd reports whether an error is the end of a stream by its agent. A broken connection is no such end.
func isEnd(err error) bool { return ReasonOf(err) == StreamCut && errors.Is(err, io.EOF) }

// endedBy returns the content of a stream if its agent has ended it, and may know nothing of the task afterwards
// (translate.Forgetter).
func (r *run) endedBy(b brought, err error) *brought {
	if r.facets.Forgetter == nil || !isEnd(err) {
		return nil
	}
	return &b
}

// concluded returns the report for a stream ended by its agent behind an answer (translate.Concluder).
func (s *reading) concluded(err error) (agent.Report, bool) {
	c, ok := s.codec.(translate.Concluder)
	if !ok || s.run.ctx.Err() != nil || !isEnd(err) {
		return agent.Report{}, false
	}
	rep, ok := c.Conclude()
	if ok {
		s.run.logger().LogAttrs(s.run.ctx, slog.LevelWarn,
			"the agent has ended its stream without a last state; its last message is complete, and is taken for the result")
	}
	return rep, ok
}

// tellsNothing reports whether an agent, after a result in its stream, has answered questions for the task by errors
// only, for a time. A failing agent may only fail for a moment.
func (r *run) tellsNothing(err error, asked time.Duration) bool {
	if r.ended == nil || !r.ended.delivered && len(r.ended.last) == 0 {
		return false
	}
	if !mayPass(err) {
		return true
	}
	switch ReasonOf(err) {
	case NoReason, Rejected, ServerFailed, NoAgent:
		return task.KindOf(err) != task.AgentTimeout && asked >= r.config.ResendAfter
	}
	return false
}

// conclude reports the content of a stream, ended by its agent without a settled state, as the result. err is the
// agent's answer to a question for the task.
func (r *run) conclude(err error) {
	r.logger().LogAttrs(r.ctx, slog.LevelWarn, "the agent has ended its stream without a last state, and does not say "+
		"how the task stands; what it has delivered is taken for the result", slog.Any("error", err))
	r.report(agent.Report{State: task.AwaitingCompletion, Items: append(slices.Clone(r.ended.last),
		task.Text("the agent has ended its stream without saying that it is done, and does not say how the task stands"))})
}
