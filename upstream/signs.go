// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// signs are what the answers of an agent that is polled say of it, apart from how the task stands.
type signs struct {
	gone   bool      // it cannot be reached
	back   time.Time // when it could be again, if the task is as before since; zero for not gone
	denied time.Time // since when it answers that there is no such task, by an error that may mean another thing
}

// answers notes that the agent has said how the task stands. It returns true if the agent is back.
func (s *signs) answers(now time.Time) (back bool) {
	s.denied = time.Time{}
	if back = s.gone; back {
		s.gone, s.back = false, now
	}
	return back
}

// changes notes that the agent works on the task.
func (s *signs) changes() { s.back = time.Time{} }

// fails notes that the agent has not said how the task stands.
func (s *signs) fails(err error) {
	switch ReasonOf(err) {
	case Unreachable, ProxyFailed:
		s.gone = true
	}
}

// restarted reports whether the agent has changed nothing for a time since its answers stopped and came back: so it was
// started again, and does not work on the task.
func (s *signs) restarted(now time.Time, most time.Duration) bool {
	return !s.back.IsZero() && now.Sub(s.back) >= most
}

// unknown reports whether the agent has answered for a time that it does not know the task, by an error that says so in
// words. Some agents store a task at the end of a turn, so it may know the task later.
//
// Lenient: an error to a question about a task that says "not found" in words
func (s *signs) unknown(err error, now time.Time, most time.Duration) bool {
	e, is := err.(*task.Error)
	if !is || !isAnswer(err) || !strings.Contains(strings.ToLower(e.Detail), "not found") {
		return false
	}
	if s.denied.IsZero() {
		s.denied = now
	}
	return now.Sub(s.denied) >= most
}

// isAnswer reports whether an error is what the agent has answered in its dialect, and has no other kind.
func isAnswer(err error) bool {
	switch task.KindOf(err) {
	case task.Internal, task.InvalidParams, task.UnsupportedOperation:
		return ReasonOf(err) == NoReason
	}
	return false
}

// unknownTask returns an answer of the agent (isAnswer) as what it means: that it does not know the task.
func unknownTask(err error) error {
	detail := ""
	if e, is := err.(*task.Error); is {
		detail = ": " + e.Detail
	}
	return task.Errorf(task.TaskNotFound, "the agent does not know this task%s", detail).WithCause(err)
}

// isMadeUp reports whether the name of the task is the gateway's, and it is for the agent to give it one: no agent
// knows it by that.
func (r *run) isMadeUp() bool {
	return r.unnamed(r.turn) && r.starts() && !r.turn.Named && !r.heard
}
