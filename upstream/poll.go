// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// The pauses between polls of a task: short after a change, then ever longer.
const (
	pollFirst = 100 * time.Millisecond
	pollMost  = 2 * time.Second
)

// polling is the state of the polling of a task.
type polling struct {
	revision     string        // of the last report
	pushed       <-chan []byte // the agent's unasked messages; nil for none
	watch        *watch        // a new stream of the task, a sign of when to ask sooner; nil for none
	atOnce       bool          // ask before the first pause
	acknowledged bool          // the agent has answered the message before it acted on it
	doubted      bool          // it is not known whether the agent has received the message
	asked        bool          // in doubt: the agent has been asked for the messages for the last time

	life     signs         // the agent's life, by its answers
	wait     time.Duration // before the next question
	least    time.Duration // before it, in any case: at the agent's request
	refused  int           // the number of questions not taken by the agent since its last answer
	begun    time.Time
	answered time.Time // when the agent has answered last
	changed  time.Time // when it has reported a change last
}

// follow reports the first answer to a message, and polls the task if the answer does not end the turn. pushed is the
// agent's unasked messages meanwhile, or nil.
func (r *run) follow(rep agent.Report, pushed <-chan []byte) error {
	p := polling{revision: rep.Revision, pushed: pushed}
	if err := r.ignored(&rep); err != nil {
		return err
	}
	if r.endsWith(&rep) {
		r.report(rep)
		return nil
	}
	first := rep
	if p.acknowledged = early(r.turn, &rep); p.acknowledged {
		first = agent.Report{Delivery: agent.DeliveryAcknowledged, Verbatim: rep.Verbatim}
	}
	r.acted = r.acted || !p.acknowledged
	if !r.report(first) {
		return nil
	}
	r.turn = named(r.turn, &rep)
	return r.poll(p)
}

// endsWith reports whether the turn ends with the first answer to its message.
func (r *run) endsWith(rep *agent.Report) bool {
	return rep.EndsTurn() && !early(r.turn, rep) && r.ignored(rep) == nil
}

// poll asks for the task's state and reports each change until the turn ends. A silent agent may be restarting, so the
// turn fails only after IdleTimeout.
func (r *run) poll(p polling) error {
	if r.facets.Getter == nil && p.pushed == nil {
		return task.Errorf(task.InvalidAgentResponse,
			"the agent answered before the turn ended, and %s cannot ask how a task stands", r.codec.Name())
	}
	p.begun = time.Now()
	p.wait, p.answered, p.changed = pollFirst, p.begun, p.begun
	for first := true; ; first = false {
		var body []byte
		if !first || !p.atOnce {
			var ok bool
			if body, ok = p.pause(r.ctx, r.jitter(p.wait)); !ok {
				return Ended(r.ctx)
			}
		}
		p.wait, p.least = min(2*p.wait, pollMost), 0
		rep, err := r.news(body, p.revision)
		var over bool
		if err == nil {
			over, err = r.polled(&p, rep, time.Now())
		} else {
			over, err = r.unanswered(&p, err, time.Now())
		}
		if over {
			return err
		}
	}
}

// polled reports the changes. It returns whether polling is over, and the error of its end.
func (r *run) polled(p *polling, rep agent.Report, now time.Time) (over bool, _ error) {
	if err := r.ignored(&rep); err != nil {
		return true, err
	}
	p.answered, p.refused, r.ended = now, 0, nil
	if p.life.answers(now) {
		p.watch.renew()
	}
	if untouched(r.turn, &rep) {
		return r.unchanged(p, rep, now.Sub(p.begun))
	}
	if !rep.EndsTurn() {
		p.watch.begin()
	}
	if rep.Revision != p.revision || rep.EndsTurn() {
		p.revision, p.changed, p.wait, r.acted = rep.Revision, now, pollFirst, true
		p.life.changes()
		return !r.report(rep) || rep.EndsTurn(), nil
	}
	switch {
	case rep.SelfResuming:
	case p.life.restarted(now, r.config.StallTimeout) && !p.watch.isOpen():
		return true, task.Errorf(task.AgentTimeout, "the agent has lost the task: its answers stopped and came back, and "+
			"since then it reports that it works, but changes nothing for %v", r.config.StallTimeout)
	case now.Sub(p.changed) >= r.config.IdleTimeout:
		return true, task.Errorf(task.AgentTimeout, "the agent has changed nothing for %v", r.config.IdleTimeout)
	}
	return false, nil
}

// unanswered handles a question not answered by the agent with the state of the task. It returns whether polling is
// over, and the error of its end.
func (r *run) unanswered(p *polling, err error, now time.Time) (over bool, _ error) {
	p.life.fails(err)
	if r.isMadeUp() && isAnswer(err) || p.life.unknown(err, now, r.config.StallTimeout) && !p.watch.isOpen() {
		err = unknownTask(err)
	}
	switch kind := task.KindOf(err); {
	case r.ctx.Err() != nil:
		return true, Ended(r.ctx)
	case kind == task.TaskNotFound && p.doubted && r.starts():
		p.answered = now
		return r.notBegun(now.Sub(p.begun), err)
	case r.tellsNothing(err, now.Sub(p.begun)):
		r.conclude(err)
		return true, nil
	case kind == task.MethodNotFound && (r.heard || r.ended != nil): // so it speaks the dialect
		return true, Failed(task.InvalidAgentResponse, NoReason, err,
			"the agent has answered and not ended the turn, and it has no method to ask how the task stands")
	case kind == task.TaskNotFound || kind == task.MethodNotFound:
		return true, r.unknownMethod(err)
	case !transient(err) && (!mayPass(err) || now.Sub(p.answered) >= r.config.StallTimeout):
		return true, err
	case now.Sub(p.answered) >= r.config.IdleTimeout:
		return true, r.timedOut(err)
	}
	if busy, ok := errors.AsType[*Error](err); ok && busy.Reason == Overloaded {
		p.least = min(busy.RetryAfter, r.config.IdleTimeout/2)
		p.wait = max(p.least, min(busyFirst<<min(p.refused, 8), busyMost))
		p.refused++
	}
	return false, nil
}

// notBegun handles a task still unknown to the agent after a time, when the agent may not have received the start. It
// returns whether polling is over, and the error of its end.
func (r *run) notBegun(after time.Duration, err error) (over bool, _ error) {
	if !r.canLocate() && !r.unnamed(r.turn) && after < r.config.ResendAfter {
		return false, nil
	}
	if unknown := r.mayResend(err); unknown != nil && !r.canLocate() {
		return true, unknown
	}
	if r.turn.Unreported && !r.canLocate() && !r.unnamed(r.turn) {
		return true, notReceived()
	}
	return true, err
}

// unchanged handles a task still settled, after a time, just as it was before the turn. It returns whether polling is
// over, and the error of its end.
//
// After acknowledging the message, an agent may be about to act. If it does not within IdleTimeout, its report ends the
// turn, with a remark. Otherwise the agent has not received the message, unless it may act late (translate.LateActor):
// for such an agent only its messages are a proof, and without this proof the turn fails.
func (r *run) unchanged(p *polling, rep agent.Report, after time.Duration) (over bool, _ error) {
	asked := !p.doubted || after >= r.config.ResendAfter
	switch {
	case r.turn.Answered && !r.heard:
		return true, notReceived()
	case p.acknowledged && after < r.config.IdleTimeout:
		return false, nil
	case p.acknowledged:
		r.logger().LogAttrs(r.ctx, slog.LevelWarn, "the agent has not acted on a message",
			slog.Duration("for", r.config.IdleTimeout))
		rep.Items = append(slices.Clone(rep.Items), task.Text(fmt.Sprintf(
			"the agent has received the message and has not acted on it for %v", r.config.IdleTimeout)))
		r.report(rep)
		return true, nil
	case r.facets.LateActor == nil && asked && r.canLocate() && !r.heard: // it may have begun another task
		return true, notReceived()
	case r.facets.LateActor == nil && asked:
		return true, cmp.Or[error](r.mayResend(nil), notReceived())
	case r.facets.LateActor == nil:
		return false, nil
	}
	if !p.asked {
		got, err := r.receiptByMessages()
		switch p.asked = asked && !transient(err); {
		case got == delivered:
			p.acknowledged = true
			return !r.report(agent.Report{Delivery: agent.DeliveryAcknowledged, Verbatim: rep.Verbatim}), nil
		case got == missing && asked:
			return true, cmp.Or[error](r.mayResend(nil), notReceived())
		}
	}
	if after < r.config.IdleTimeout {
		return false, nil
	}
	return true, task.Errorf(task.AgentTimeout, "the connection to the agent broke, and it is unknown whether the agent "+
		"has received the message: the agent does not say, and has not acted on it for %v", r.config.IdleTimeout)
}

// errNoNews is the error of an agent that cannot be asked and has sent nothing new.
var errNoNews = errors.New("it sends nothing")

// news returns the task's present state: from the agent's unasked message, if it holds the state, or by asking. A
// silent agent must not keep the slot from others.
func (r *run) news(pushed []byte, revision string) (agent.Report, error) {
	if rep, ok := r.readPush(pushed, revision); ok {
		return rep, nil
	}
	if r.facets.Getter == nil {
		return agent.Report{}, errNoNews
	}
	return r.getWithin(pollTimeout)
}

// timedOut is the error of a task without a report of the agent for too long. It has no reason: the message may have
// been received.
func (r *run) timedOut(err error) error {
	detail := "it does not answer"
	if e, ok := errors.AsType[*task.Error](err); ok {
		detail = e.Detail
	}
	return Failed(task.AgentTimeout, NoReason, err, "the agent has not reported on the task for %v: %s",
		r.config.IdleTimeout, detail)
}

// pause waits for a time, or for news, but at least for pollFirst and p.least, so as not to flood an agent with
// requests. A pushed message ends the pause at once, and is returned. ok is false when ctx is done.
func (p *polling) pause(ctx context.Context, wait time.Duration) (pushed []byte, ok bool) {
	wait = max(wait, p.least)
	quiet := max(min(wait, pollFirst), p.least)
	least := time.NewTimer(quiet)
	defer least.Stop()
	select {
	case <-least.C:
	case pushed = <-p.pushed:
		return pushed, true
	case <-ctx.Done():
		return nil, false
	}
	if wait <= quiet {
		return nil, true
	}
	rest := time.NewTimer(wait - quiet)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-p.watch.events():
	case pushed = <-p.pushed:
	case <-ctx.Done():
		return nil, false
	}
	return pushed, true
}
