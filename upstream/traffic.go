// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// Traffic counts the requests to an agent by their outcome, and keeps the last failure. Several Agents may share one,
// such as those of the same agent in successive configurations. The zero value is ready for use, by any number of
// goroutines at once. It must not be copied.
type Traffic struct {
	answered atomic.Int64 // when the agent last answered a request; nanoseconds of Unix time, 0 for never
	failed   atomic.Pointer[Failure]
	keeps    atomic.Bool // the agent has been seen to know a task while it works on it

	answers [2]atomic.Uint64                // answered requests: with success, and with an error of the agent
	reasons [len(reasonNames)]atomic.Uint64 // requests failed for a reason; NoReason is a timeout
	retries atomic.Uint64                   // messages sent again
}

// Outcomes of requests beside the reasons.
const (
	outcomeOK      = "ok"
	outcomeError   = "agent error"
	outcomeTimeout = "timeout"
)

// Requests yields the number of requests of each outcome: ok, agent error, timeout, or the name of a Reason.
func (t *Traffic) Requests() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		if !yield(outcomeOK, t.answers[0].Load()) || !yield(outcomeError, t.answers[1].Load()) {
			return
		}
		for i := range t.reasons {
			name := Reason(i).String()
			if Reason(i) == NoReason {
				name = outcomeTimeout
			}
			if !yield(name, t.reasons[i].Load()) {
				return
			}
		}
	}
}

// Retries returns the number of messages sent again because the agent had not received them or was busy.
func (t *Traffic) Retries() uint64 { return t.retries.Load() }

// count counts a request by its outcome.
func (t *Traffic) count(err error) {
	reason := ReasonOf(err)
	switch {
	case err == nil:
		t.answers[0].Add(1)
	case reason == NoReason && !failsAgent(err):
		t.answers[1].Add(1)
	case int(reason) < len(t.reasons):
		t.reasons[reason].Add(1)
	}
}

// Failure is a request not answered by an agent.
type Failure struct {
	At  time.Time
	Err error
}

// Answered returns when the agent last answered a request, with success or with an error; zero for never.
func (t *Traffic) Answered() time.Time {
	if at := t.answered.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Failed returns the last request not answered by the agent, or not in the manner of its dialect; nil for none.
func (t *Traffic) Failed() *Failure { return t.failed.Load() }

// note notes the outcome of a request. ctx is the request's context.
func (t *Traffic) note(ctx context.Context, err error) {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return // by the gateway
	}
	t.count(err)
	t.see(err)
}

// see notes whether the agent has answered.
func (t *Traffic) see(err error) {
	switch {
	case ReasonOf(err) == OutOfFiles: // the gateway could not ask
	case err != nil && failsAgent(err):
		t.failed.Store(&Failure{time.Now(), err})
	default:
		t.answered.Store(time.Now().UnixNano())
	}
}

// failsAgent reports whether an error is that of an agent asked in vain: no agent of the dialect has answered.
func failsAgent(err error) bool {
	switch ReasonOf(err) {
	case NoReason:
		k := task.KindOf(err)
		return k == task.AgentTimeout || k == task.AgentUnavailable
	case StreamCut, Overloaded, ServerFailed, Rejected, OutOfFiles:
		return false
	}
	return true
}

// checkTask is the task asked for by Check. No turn has this name.
const checkTask = "aip-gateway-health-check"

// Check asks the agent for a nonexistent task, changing nothing, to have Traffic show whether the agent can be reached.
// If the dialect is not known yet, it is found out. It returns an error if the agent was not reached, or if the answer,
// as far as it shows, is no answer of an agent of the dialect. If the dialect has no request for a task, the agent is
// not asked: the error is of kind UnsupportedOperation.
func (a *Agent) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r := run{Agent: a, ctx: ctx, turn: &agent.Turn{Ref: agent.Ref{Task: checkTask}}}
	if err := r.resolve(); err != nil {
		return err
	}
	_, err := r.get(ctx)
	if err == nil || failsAgent(err) {
		return err
	}
	switch task.KindOf(err) {
	case task.UnsupportedOperation, task.MethodNotFound, task.InvalidAgentResponse:
		return err
	}
	return nil
}

// Traffic returns the counts of the requests to the agent.
func (a *Agent) Traffic() *Traffic { return a.config.Traffic }

// Slots returns the slots of the agent.
func (a *Agent) Slots() *Slots { return a.config.Slots }

// Dialect returns the dialect of the agent; empty if it is not known yet.
func (a *Agent) Dialect() string {
	if e := a.config.Resolver.Known(); e != nil {
		return e.codec.Name()
	}
	return ""
}
