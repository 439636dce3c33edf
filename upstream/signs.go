// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// signs are the signs of life of a polled agent in its answers, apart from the state of the task.
type signs struct {
	gone   bool      // it cannot be reached
	back   time.Time // the time of its return, if the task has not changed since; zero if it was not gone
	denied time.Time // the time of its first denial of the task, by an ambiguous error
}

// answers notes an answer of the agent with the state of the task. It returns true if the agent is back.
func (s *signs) answers(now time.Time) (back bool) {
	s.denied = time.Time{}
	if back = s.gone; back {
		s.gone, s.back = false, now
	}
	return back
}

// changes notes the agent's work on the task.
func (s *signs) changes() { s.back = time.Time{} }

// fails notes a question without an answer on the state of the task.
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

// unknown reports whether the agent has denied knowing the task for a time, by an error that says so in words. Some
// agents store a task at the end of a turn, so it may know the task later.
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

// isAnswer reports whether an error is the agent's answer in its dialect, without a kind of its own.
func isAnswer(err error) bool {
	switch task.KindOf(err) {
	case task.Internal, task.InvalidParams, task.UnsupportedOperation:
		return ReasonOf(err) == NoReason
	}
	return false
}

// unknownTask returns an answer of the agent (isAnswer) in its real meaning: the task is not known.
func unknownTask(err error) error {
	detail := ""
	if e, is := err.(*task.Error); is {
		detail = ": " + e.Detail
	}
	return task.Errorf(task.TaskNotFound, "the agent does not know this task%s", detail).WithCause(err)
}

// isMadeUp reports whether the name of the task is the gateway's, and it is for the agent to give it one: no agent
// knows it by this name.
func (r *run) isMadeUp() bool {
	return r.unnamed(r.turn) && r.starts() && !r.turn.Named && !r.heard
}
