// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// run is a turn that an agent carries out now: in a goroutine of the engine, or first in the goroutine waiting for its
// result (see inline.go). The fields from answered on are guarded by the mutex of the task.
type run struct {
	partner *Partner
	tk      *activeTask
	turn    agent.Turn
	ctx     context.Context // ends with the run
	cancel  context.CancelFunc
	span    trace.Span
	inline  InlineTurn // nil if the engine carries out all of it

	answered signal // the agent has answered the message, if only by taking or refusing it, or it waits to be sent
	reported signal // the agent has reported something
	verbatim signal // it has reported something in AIP (agent.Report.Verbatim), now shown
	settled  signal // the turn has settled or is given up; the agent may still resume by itself
	done     signal // the run has ended

	began       time.Time     // when the run began
	heard       bool          // the agent has reported something, whether it is shown or not
	awaited     bool          // a caller waits for the start; if the agent refuses it, it is taken back
	shown       bool          // its beginning was stored while its caller waits
	accepted    acceptance    // undone then
	refusal     error         // of the agent; the start was taken back
	queuedSince time.Time     // when the message began to wait to be sent; zero while it does not wait
	queuedFor   time.Duration // the time it waited before that
	err         error         // the reason of a result not stored
}

// beginTurn has the agent carry out a turn. caller is the span of the call causing it: the turn outlives the call, so
// nothing else of its context counts. Without stream, the caller must call awaitAnswer or handOver: they carry the turn
// out. With both stream and shows, the beginning of a start is shown, though the agent reports nothing before its
// answer. tk.mu is held, and tk must be in use by the caller.
func (p *Partner) beginTurn(
	caller trace.Span, tk *activeTask, m task.Message, from task.State, stream, shows bool,
) *run {
	if tk.run != nil {
		tk.run.stop() // the turn before has settled; its run waits for an agent that may resume by itself
	}
	r := p.newRun(caller, nil, tk, &agent.Turn{
		Leader: tk.leader(), Caller: tk.caller(nil), Ref: tk.meta.Ref, Message: m, From: from, Revision: tk.meta.Revision,
		Known: tk.fold.Task().Products, Withdrawn: tk.fold.Withdrawn, Asked: tk.asked(from),
		History: tk.commands(), MayAct: p.engine.mayAct,
		References: tk.references(m.References), OwnSession: tk.meta.OwnSession,
	})
	if r.done.happened {
		return r
	}
	if a, ok := p.Agent.(InlineAgent); ok && !stream {
		r.inline = a.Inline(&r.turn)
		return r
	}
	if shows && stream {
		r.turn.Sent = r.sent
	}
	r.start(func() (bool, error) { return tk.consume(r.ctx, r, p.Agent.Run(r.ctx, &r.turn, stream)) })
	return r
}

// newRun returns a run of the task. The caller must start it. If the engine is closed, the run has ended already: the
// next engine resumes the turn. A turn within a call is traced by the tracer of its caller; tracer traces other turns,
// or is nil. tk.mu is held.
func (p *Partner) newRun(caller trace.Span, tracer trace.TracerProvider, tk *activeTask, t *agent.Turn) *run {
	e := p.engine
	r := &run{partner: p, tk: tk, turn: *t, began: time.Now()}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.base.Err() != nil {
		r.settled.set()
		r.done.set()
		return r
	}
	tk.run = r
	tk.working.Store(r)
	tk.entry.Share()
	e.work.Add()
	base := e.base
	if caller.SpanContext().IsValid() {
		base = trace.ContextWithSpan(base, caller)
	}
	r.ctx, r.cancel = context.WithCancel(base)
	r.ctx, r.span = tracing.Start(r.ctx, tracer, trace.SpanKindInternal, "aip.run",
		attribute.String("aip.task.id", t.Message.TaskID), attribute.String("aip.command", string(t.Message.Command)))
	return r
}

// start has a goroutine of the engine carry the turn out. It calls first, and first reports whether the turn has ended,
// or returns the error ending it.
func (r *run) start(first func() (ended bool, _ error)) {
	r.tk.engine.work.Run(func() {
		ended, err := first()
		r.end(r.conclude(ended, err))
	})
}

// end ends the run. err is the reason if the result could not be stored.
func (r *run) end(err error) {
	tk := r.tk
	tk.mu.Lock()
	if r.trackQueued(false); r.queuedFor > 0 {
		r.span.SetAttributes(attribute.Float64("aip.run.waited", r.queuedFor.Seconds()))
	}
	r.err = err
	if tk.run == r {
		tk.handOn()
		tk.run = nil
	}
	r.answered.set()
	r.settle()
	r.done.set()
	tk.mu.Unlock()
	r.span.End()
	r.cancel()
	tk.release()
}

// settle notes the end of the turn: it has settled, or is given up. The mutex of the task is held.
func (r *run) settle() {
	r.settled.set()
	r.tk.working.CompareAndSwap(r, nil)
}

// noteReport measures the agent's time to its first report, and the time until the turn has settled. The mutex of the
// task is held, and the signals of the run are not set yet.
func (r *run) noteReport(settled bool) {
	first := !r.reported.happened
	settles := settled && !r.settled.happened
	if !first && !settles {
		return
	}
	took := time.Since(r.began)
	if first {
		r.partner.Meter.FirstReport.AddTraced(took, r.span)
	}
	if settles {
		r.partner.Meter.Settled.AddTraced(took, r.span)
	}
}

// stop ends the turn early. It does not wait for its end.
func (r *run) stop() {
	r.cancel()
	if r.inline != nil {
		r.inline.Interrupt()
	}
}

// noteDelivery notes the progress of the message's delivery. The mutex of the task is held.
func (r *run) noteDelivery(d agent.Delivery) {
	r.trackQueued(d == agent.DeliveryQueued)
	if d != agent.DeliverySending {
		r.answered.set()
	} else if r.answered.happened && !r.heard {
		r.answered = signal{} // one that is not set stays: a cancel may be waiting for it
	}
}

// trackQueued measures the time of the message in the queue before it is sent. The mutex of the task is held.
func (r *run) trackQueued(waiting bool) {
	switch {
	case waiting && r.queuedSince.IsZero():
		r.queuedSince = time.Now()
	case !waiting && !r.queuedSince.IsZero():
		r.queuedFor += time.Since(r.queuedSince)
		r.queuedSince = time.Time{}
	}
}

// conclude carries a turn out to its end, after the agent was asked once. If the connection broke, the agent is asked
// again, and if that fails, too, so does the task, with the reason. A turn left to the next process stays as it is in
// its log.
func (r *run) conclude(ended bool, err error) error {
	tk, ctx := r.tk, r.ctx
	if r.isHandedOn(err) {
		return nil
	}
	if !ended && err == nil {
		err = task.Errorf(task.InvalidAgentResponse, "the agent's answer ended before its work did")
	}
	if isRefusal(err) && ctx.Err() == nil {
		if taken, failed := r.refuse(err); taken || failed != nil {
			return failed
		}
	}
	if err != nil && mayBeRunning(err) && ctx.Err() == nil {
		r.span.AddEvent("aip.resume")
		r.partner.Meter.resumed.Add(1)
		tk.logger().InfoContext(ctx, "asking the agent again", "reason", err)
		var again error
		ended, again = tk.consume(r.ctx, r, r.partner.Agent.Resume(ctx, r.resumed(err)))
		switch {
		case errors.Is(again, errStore), task.KindOf(again) == task.AgentTimeout && isUnanswered(err):
			err = again // it says more than the first error
		case task.KindOf(again) == task.AgentTimeout: // the first error is the agent's own word
			err = task.Errorf(task.AgentTimeout, "%s; %s", detail(err), detail(again)).WithCause(again)
		}
	}
	switch {
	case ended || ctx.Err() != nil || r.isHandedOn(err):
		return nil
	case errors.Is(err, errStore):
		if !errors.Is(err, replay.ErrClosed) {
			tk.logger().ErrorContext(ctx, "a task cannot be stored", "error", err)
		}
		return err
	}
	r.span.SetStatus(codes.Error, task.KindOf(err).String())
	r.partner.Meter.fail(task.KindOf(err))
	if !tk.isCanceling() { // the end now is the cancel's work
		// What to do: see `reason` and `advice`.
		tk.logger().WarnContext(ctx, "the agent failed", "kind", task.KindOf(err).String(), "reason", withoutKind{err})
	}
	return tk.persist(ctx, r, func() error {
		end := agent.Report{State: task.Failed, Items: []task.DataItem{task.Text(detail(err))}}
		if ctx.Err() != nil || tk.run != r || tk.holdEnd(end) {
			return nil
		}
		if err := tk.fail(ctx, detail(err)); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		return nil
	})
}

// Unanswered is an error. Broken reports whether the connection broke before the agent had answered. An Agent may
// return it.
type Unanswered interface {
	error
	Broken() bool
}

// isUnanswered reports whether the connection broke before the agent had answered.
func isUnanswered(err error) bool {
	u, ok := errors.AsType[Unanswered](err)
	return ok && u.Broken()
}

// isHandedOn reports whether the next process takes over a turn ended by an error: this process is about to end, and
// so, perhaps, is the agent, as it has not answered or cannot be reached.
func (r *run) isHandedOn(err error) bool {
	select {
	case <-r.partner.Stopping:
	default:
		return false
	}
	return isUnanswered(err) || task.KindOf(err) == task.AgentUnavailable
}

// resumed returns the turn of the run, to be resumed after an error.
func (r *run) resumed(err error) *agent.Turn {
	t := r.turn
	t.Answered = !isUnanswered(err)
	r.tk.mu.Lock()
	defer r.tk.mu.Unlock()
	if now := r.tk.meta.Ref; r.tk.loaded && now != t.Ref {
		t.Ref, t.Named = now, true
	}
	return &t
}

// withoutKind is an error without its kind at the beginning of its text.
type withoutKind struct{ error }

// Error implements error.
func (e withoutKind) Error() string {
	return strings.TrimPrefix(e.error.Error(), task.KindOf(e.error).String()+": ")
}

// Unwrap returns the error.
func (e withoutKind) Unwrap() error { return e.error }

// mayBeRunning reports whether the agent may still work on a turn after an error, and can be asked.
func mayBeRunning(err error) bool {
	switch task.KindOf(err) {
	case task.AgentUnavailable, task.AgentTimeout, task.UnsupportedOperation:
		return false
	}
	return !isRefusal(err) && !errors.Is(err, errStore) && !errors.Is(err, errPanic)
}

// errStore marks an error of the store, and not of the agent.
var errStore = errors.New("partner: the store failed")

// fail ends a task with a reason, because its agent cannot continue. tk.mu is held.
func (tk *activeTask) fail(ctx context.Context, reason string) error {
	if err := tk.load(ctx); err != nil {
		return err
	}
	b := tk.batch()
	if tk.meta.Pending != nil {
		b.beginTask(task.Accepted, nil)
	}
	if !b.move(task.Failed, []task.DataItem{task.Text(reason)}, nil) {
		return nil // it has settled
	}
	return b.write(ctx)
}

// detail returns the part of an error that a Leader may read.
func detail(err error) string {
	var e *task.Error
	if errors.As(err, &e) && e.Detail != "" {
		return e.Detail
	}
	return "the agent failed"
}

// resumeTurn resumes the turn of a task without a run, and reports whether there is one. tk.mu is held.
func (tk *activeTask) resumeTurn(p *Partner) bool {
	state := tk.fold.Status().State
	mayResume := tk.meta.SelfResuming && state == task.AwaitingInput
	if !tk.exists || tk.run != nil || state.Settled() && !mayResume {
		return false
	}
	tk.logger().DebugContext(tk.traced(p.engine.base), "resuming an unfinished task", "state", string(state))
	pending := tk.meta.Pending != nil
	stream, unsent, cut := tk.meta.Stream, tk.meta.Unsent, tk.logState.cut
	r := p.newRun(noop.Span{}, tk.engine.tracing, tk, tk.turn())
	if r.done.happened {
		return true
	}
	r.start(func() (bool, error) {
		run := func() (bool, error) { return tk.consume(r.ctx, r, p.Agent.Run(r.ctx, &r.turn, stream)) }
		if unsent && !cut {
			if err := tk.takeOn(r.ctx, r); err != nil || r.ctx.Err() != nil {
				return false, err
			}
			return run()
		}
		p.Meter.resumed.Add(1)
		ended, err := tk.consume(r.ctx, r, p.Agent.Resume(r.ctx, &r.turn))
		unknown := pending && !r.turn.Named && task.KindOf(err) == task.TaskNotFound
		if unknown || task.KindOf(err) == task.AgentUnavailable {
			if cut {
				return ended, errCut
			}
			r.turn.Repeated = true
			return run() // the agent has not received the turn
		}
		return ended, err
	})
	return true
}

// errCut is the reason for not sending a turn unknown to its agent: the agent may have ended and forgotten it.
var errCut = task.Errorf(task.AgentTimeout, "the store was repaired after it was damaged, and the agent does not have "+
	"the message; it is unknown whether the agent has acted on it, so it is not sent again")

// turn returns the present turn of the task, for Agent.Resume. tk.mu is held.
func (tk *activeTask) turn() *agent.Turn {
	t := &agent.Turn{
		Leader: tk.leader(), Caller: tk.caller(nil), Ref: tk.meta.Ref, Revision: tk.meta.Revision,
		Acknowledged: tk.meta.Acknowledged, Known: tk.fold.Task().Products, Withdrawn: tk.fold.Withdrawn,
		History: tk.commands(), Kept: tk.meta.Kept, MayAct: tk.engine.mayAct,
	}
	if tk.meta.Accepted {
		t.Reported = task.Working
	}
	if tk.meta.SelfResuming && tk.fold.Status().State == task.AwaitingInput {
		t.Reported = task.AwaitingInput
	}
	if tk.meta.Pending != nil {
		t.Message = *tk.meta.Pending
	} else if n := len(t.History); n > 0 {
		t.Message = t.History[n-1]
	}
	t.References, t.OwnSession = tk.references(t.Message.References), tk.meta.OwnSession
	if t.Message.Command != task.Continue {
		t.Named, t.Unreported = tk.isNamed(&t.Message), tk.meta.Unreported
		return t
	}
	for _, s := range slices.Backward(tk.fold.Task().StatusHistory) {
		if s.State.Settled() {
			t.From = s.State
			break
		}
	}
	t.Asked = tk.asked(t.From)
	return t
}

// isNamed reports whether the agent has named the task started by m: its name is none of the gateway's (see
// Partner.pending). tk.mu is held.
func (tk *activeTask) isNamed(m *task.Message) bool {
	return !tk.isDerived() && !tk.isDerived(m.ID) && tk.meta.Ref.Task != m.TaskID
}

// asked returns the agent's words of its request for input, if from is the state AwaitingInput. tk.mu is held.
func (tk *activeTask) asked(from task.State) []task.DataItem {
	if from != task.AwaitingInput {
		return nil
	}
	for _, s := range slices.Backward(tk.fold.Task().StatusHistory) {
		if s.State == task.AwaitingInput {
			return s.DataItems
		}
	}
	return nil
}
