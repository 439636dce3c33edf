// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// run is one turn while it is carried out, or another request about its task. It is used by one goroutine.
type run struct {
	*Agent
	*Endpoint // of the turn; nil until it is found
	ctx       context.Context
	turn      *agent.Turn // with the agent's names for the task
	yield     func(agent.Report, error) bool

	trial     *Trial     // notes the answers of an agent on trial; nil in a turn of a caller
	interrupt *Interrupt // ends the inline part of a turn; nil in the rest of it, and for a turn without one
	begun     *begun     // the first exchange of the turn, if it was begun inline and is to be continued
	inbox     *Inbox     // if it was opened inline, and nothing was sent

	naming    *naming // nil if the agent is known not to name the task
	noStreams bool    // in this turn, the agent has turned out to have no streams
	others    int     // the number of answers of the agent to another request
	heard     bool    // in this attempt, the agent has reported something, or has acknowledged the message
	acted     bool    // the agent has reported something of the turn before its end
	doubted   bool    // the agent may have received the message before
	repeated  bool    // the message was sent again because the agent denied having it
	stopped   bool    // the caller takes no more reports

	// The content of a stream ended by the agent of a Forgetter, until the agent reports the state of the task; nil for
	// no such end.
	ended *brought
}

// logger returns the log with the names of the turn's task: the Leader's, and the agent's.
func (r *run) logger() *slog.Logger {
	return r.log.With("task", r.turn.Message.TaskID, "agent_task", r.turn.Ref.Task)
}

// carryOut sends the turn's message, again if the agent has not received it, and reports the agent's answer until the
// turn ends. Once the agent has reported something, the message is not sent again.
func (r *run) carryOut(stream bool) error {
	retry, dropped := r.newRetry(), false
	for {
		r.heard = false
		err := r.attempt(stream)
		if dropped && ReasonOf(err) == Refused { // the message was refused, and not the session
			r.sessionless.Store(false)
		}
		if isHeldBack(err) && !r.doubted {
			r.report(agent.Report{Delivery: agent.DeliveryQueued}) // so the next process need not ask the agent for it
			return err
		}
		if err == nil || r.heard || r.stopped || r.ctx.Err() != nil {
			return err
		}
		var again bool
		switch reason := ReasonOf(err); {
		case r.refusesSession(err):
			r.dropSession(err)
			again, dropped = true, true
		case reason == WrongDialect:
			again = r.config.Resolver.Fallback(r.Endpoint) != nil
		case errors.Is(err, translate.ErrBusy):
			again, err = retry.busySession(err)
		case reason == Overloaded && !r.unknowable():
			again, err = retry.busy(err)
		case reason.unsent() || reason.transient():
			r.doubted = r.doubted || reason.transient()
			again, err = retry.undelivered(err)
		}
		if !again {
			return err
		}
		r.config.Traffic.retries.Add(1)
	}
}

// unknowable reports whether it cannot be known if a turn has begun. Then even a turn refused by a server as overloaded
// is not sent again: a proxy may have refused it for an agent going down in the middle.
func (r *run) unknowable() bool {
	return r.facets.Getter == nil
}

// attempt sends the turn's message once, and reports the agent's answer until the turn ends. If the agent turns out to
// have no streams, the message is sent again without asking for one.
func (r *run) attempt(stream bool) error {
	if r.begun != nil {
		return r.sendAlone()
	}
	inbox := r.inbox
	if r.inbox = nil; inbox == nil {
		if err := r.resolve(); err != nil {
			return err
		}
		inbox = r.listen()
	}
	if inbox != nil {
		defer inbox.Close()
		return r.sendAndListen(inbox)
	}
	if !r.asksForStream(stream) {
		return r.sendAlone()
	}
	refused := r.send(translate.SendStream)
	if !errors.Is(refused, errNoStreams) {
		r.noteStream(refused)
		return refused
	}
	r.noStreams = true
	concluded := false
	if r.unnamed(r.turn) { // so the unsupported thing is streams, and nothing about the task
		concluded = !r.streamless.Swap(true)
	}
	err := r.send(translate.Send)
	if concluded && ReasonOf(err) == Refused { // the message was refused, and not the stream
		r.streamless.Store(false)
	}
	switch said, ok := errors.AsType[*task.Error](refused); {
	case r.heard && r.facets.Unstreamer != nil:
		r.noteNoStreams()
	case ok && said.Kind != task.MethodNotFound && ReasonOf(err) == WrongDialect:
		return r.failed(said, task.State.Terminal) // the agent has nothing but streams, and has refused the message
	}
	mounted := r.facets.Mounted != nil
	if r.heard && mounted && len(r.transport.Routes(translate.SendStream)) > 1 && !r.streamless.Swap(true) {
		r.log.LogAttrs(r.ctx, slog.LevelInfo, "the agent has no streams; its tasks are polled")
	}
	return err
}

// sendAlone is send without a stream.
func (r *run) sendAlone() error {
	err := r.send(translate.Send)
	r.noteSend(err)
	return err
}

// carryOn resumes a turn begun by another run.
func (r *run) carryOn() error {
	for {
		if err := r.resolvePatiently(); err != nil {
			return err
		}
		r.hold()
		if r.facets.Resender != nil {
			r.doubted = true
			return r.carryOut(true)
		}
		if r.turn.Answered && !r.turn.Named && r.unnamed(r.turn) && !r.canLocate() {
			return task.Errorf(task.TaskNotFound, "the agent has answered by an error, and has not named a task")
		}
		err := r.resume(r.turn.Acknowledged)
		if k := task.KindOf(err); (k == task.TaskNotFound || k == task.AgentUnavailable) && !r.heard && r.canLocate() {
			err = r.resumeLocated(err)
		}
		if ReasonOf(err) != WrongDialect || r.stopped || r.config.Resolver.Fallback(r.Endpoint) == nil {
			return err
		}
	}
}

// resolve sets the endpoint.
func (r *run) resolve() error {
	e, err := r.config.Resolver.Endpoint(r.ctx)
	if err != nil {
		r.config.Traffic.note(r.ctx, err)
		return err
	}
	if e == r.Endpoint {
		return nil
	}
	r.use(e)
	return nil
}

// use sets the endpoint, and with it the party naming the task of a turn, and the session of a start.
func (r *run) use(e *Endpoint) {
	r.Endpoint, r.noStreams = e, false
	carriesOut := r.yield != nil || r.interrupt != nil
	if carriesOut && r.starts() && !r.maySaySession() {
		r.withoutSession()
	}
	switch {
	case !e.unnamed(r.turn):
		r.unname()
	case carriesOut && r.naming == nil:
		r.naming = r.names.begin(r.turn)
	}
}

// expectName registers the turn before its agent is looked for: the agent may turn out to name the task.
func (r *run) expectName() {
	if r.naming == nil && r.config.Resolver.Known() == nil {
		r.naming = r.names.begin(r.turn)
	}
}

// resolvePatiently is resolve for a turn that the agent may be working on: it may be restarting, so it has the time of
// one IdleTimeout to come back.
func (r *run) resolvePatiently() error {
	p := newPace(r.config.IdleTimeout)
	for {
		err := r.resolve()
		switch {
		case err == nil:
			return nil
		case r.ctx.Err() != nil:
			return Ended(r.ctx)
		case p.over(err): // not AgentUnavailable: the agent may have received the turn
			return task.Errorf(task.AgentTimeout, "the agent was not found for %v", r.config.IdleTimeout).WithCause(err)
		}
		p.pause(r.ctx, r.jitter)
	}
}

// report hands a report to the caller. It returns false if the caller takes no more.
func (r *run) report(rep agent.Report) bool {
	r.heard = r.heard || rep.Delivery == agent.DeliveryUnknown || rep.Delivery == agent.DeliveryAcknowledged
	r.config.Secrets.hideInEnd(&rep)
	if !r.stopped {
		r.claimSession(&rep)
		r.stopped = !r.yield(rep, nil)
	}
	r.name(&rep)
	return !r.stopped
}

// name gives the task its name in a report.
func (r *run) name(rep *agent.Report) {
	if r.naming != nil && rep.Ref != nil {
		r.naming.set(rep.Ref)
		if r.canLocate() {
			r.taken.claim(rep.Ref.Task, holderOf(r.turn.Leader, false))
		}
	}
}

// finish hands the caller the run's error, if there is one.
func (r *run) finish(err error) {
	if err != nil && !r.stopped {
		r.yield(agent.Report{}, err)
	}
}

// unname ends the naming of the task: the run will not name it any more.
func (r *run) unname() {
	if r.naming != nil {
		r.names.end(r.naming)
		r.naming = nil
	}
}
