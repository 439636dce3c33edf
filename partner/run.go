// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// run is a turn that an agent carries out now, in a goroutine of the engine. The fields from hasReported on are
// guarded by the mutex of the task.
type run struct {
	partner  *Partner
	stop     context.CancelFunc
	response time.Duration // how long a caller waits for settled

	reported chan struct{} // closed when the agent has reported something
	settled  chan struct{} // closed when the turn has settled or is given up; the agent may still resume by itself
	done     chan struct{} // closed when the run has ended

	hasReported bool          // reported is closed
	hasSettled  bool          // settled is closed
	queuedSince time.Time     // when the message began to wait to be sent; zero while it does not wait
	queuedFor   time.Duration // how long it waited before that
	err         error         // why the result could not be stored
}

// beginTurn has the agent carry out a turn. The context of the turn has the trace of ctx and nothing else of it: the
// turn outlives its caller. tk.mu is held, and tk must be in use by the caller.
func (p *Partner) beginTurn(ctx context.Context, tk *activeTask, m task.Message, from task.State, stream bool) *run {
	if tk.run != nil {
		tk.run.stop() // the turn before has settled; its run waits for an agent that may resume by itself
	}
	t := &agent.Turn{
		Ref: tk.meta.Ref, Message: m, From: from, Revision: tk.meta.Revision,
		Known: tk.fold.Task().Products, Withdrawn: tk.fold.Withdrawn,
	}
	return p.launch(ctx, tk, func(ctx context.Context, r *run) error {
		return tk.runTurn(ctx, nil, p, t, r, func(ctx context.Context) (bool, error) {
			return tk.consume(ctx, r, p.Agent.Run(ctx, t, stream))
		})
	})
}

// launch calls work as the run of the task. tk.mu is held.
func (p *Partner) launch(ctx context.Context, tk *activeTask, work func(context.Context, *run) error) *run {
	runCtx, stop := context.WithCancel(trace.ContextWithSpan(p.engine.base, trace.SpanFromContext(ctx)))
	r := &run{
		partner: p, stop: stop, response: tk.meta.Terms.Response,
		reported: make(chan struct{}), settled: make(chan struct{}), done: make(chan struct{}),
	}
	p.engine.mu.RLock()
	defer p.engine.mu.RUnlock()
	if p.engine.base.Err() != nil { // closing: the next engine resumes the turn
		stop()
		r.settle()
		close(r.done)
		return r
	}
	tk.run = r
	p.engine.acquire(tk.log) // for the goroutine
	p.engine.work.Go(func() {
		defer tk.release()
		defer stop()
		err := work(runCtx, r)
		tk.mu.Lock()
		r.err = err
		if tk.run == r {
			tk.run = nil
		}
		r.settle()
		tk.mu.Unlock()
		close(r.done)
	})
	return r
}

// trackQueued measures how long the message waits to be sent. The mutex of the task is held.
func (r *run) trackQueued(waiting bool) {
	switch {
	case waiting && r.queuedSince.IsZero():
		r.queuedSince = time.Now()
	case !waiting && !r.queuedSince.IsZero():
		r.queuedFor += time.Since(r.queuedSince)
		r.queuedSince = time.Time{}
	}
}

// settle ends the waiting for the result of the turn. The mutex of the task is held.
func (r *run) settle() {
	if !r.hasSettled {
		r.hasSettled = true
		close(r.settled)
	}
}

// runTurn carries a turn out to its end. first runs it at the agent. If the connection broke, the agent is asked again,
// and if that fails, too, so does the task, with the reason. A turn that is a part of a call is traced where its caller
// is; tracer is that of other turns, or nil.
func (tk *activeTask) runTurn(
	ctx context.Context, tracer trace.TracerProvider, p *Partner, t *agent.Turn, r *run,
	first func(context.Context) (bool, error),
) error {
	ctx, span := tracing.Start(ctx, tracer, trace.SpanKindInternal, "aip.run",
		attribute.String("aip.task.id", t.Message.TaskID), attribute.String("aip.command", string(t.Message.Command)))
	defer span.End()

	ended, err := first(ctx)
	tk.mu.Lock()
	if r.trackQueued(false); r.queuedFor > 0 {
		span.SetAttributes(attribute.Float64("aip.run.waited", r.queuedFor.Seconds()))
	}
	tk.mu.Unlock()
	if !ended && err == nil {
		err = task.Errorf(task.InvalidAgentResponse, "the agent's answer ended before its work did")
	}
	if err != nil && mayBeRunning(err) && ctx.Err() == nil {
		span.AddEvent("aip.resume")
		tk.logger().Info("asking the agent again", "reason", err)
		var again error
		ended, again = tk.consume(ctx, r, p.Agent.Resume(ctx, t))
		if errors.Is(again, errStore) || task.KindOf(again) == task.AgentTimeout {
			err = again // it says more than the first error
		}
	}
	switch {
	case ended || ctx.Err() != nil:
		return nil
	case errors.Is(err, errStore):
		if !errors.Is(err, replay.ErrClosed) {
			tk.logger().Error("a task cannot be stored", "error", err)
		}
		return err
	}
	span.SetStatus(codes.Error, task.KindOf(err).String())
	tk.logger().Warn("the agent failed", "reason", err)
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

// mayBeRunning reports whether the agent may still work on a turn after an error.
func mayBeRunning(err error) bool {
	switch task.KindOf(err) {
	case task.AgentUnavailable, task.AgentTimeout:
		return false
	}
	return !errors.Is(err, errStore) && !errors.Is(err, errPanic)
}

// errStore marks an error of the store, and not of the agent.
var errStore = errors.New("partner: the store failed")

// fail ends a task whose agent cannot continue, with the reason. tk.mu is held.
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

// detail returns what a Leader may read of an error.
func detail(err error) string {
	var e *task.Error
	if errors.As(err, &e) && e.Detail != "" {
		return e.Detail
	}
	return "the agent failed"
}

// resumeTurn resumes the turn of a task that no run works on, and reports whether there is one. tk.mu is held.
func (tk *activeTask) resumeTurn(p *Partner) bool {
	state := tk.fold.Status().State
	mayResume := tk.meta.SelfResuming && state == task.AwaitingInput
	if !tk.exists || tk.run != nil || state.Settled() && !mayResume {
		return false
	}
	tk.logger().Debug("resuming an unfinished task", "state", string(state))
	t := tk.turn()
	pending := tk.meta.Pending != nil
	stream, unsent := tk.meta.Stream, tk.meta.Unsent
	p.launch(p.engine.base, tk, func(ctx context.Context, r *run) error {
		return tk.runTurn(ctx, tk.engine.tracing, p, t, r, func(ctx context.Context) (bool, error) {
			if unsent {
				return tk.consume(ctx, r, p.Agent.Run(ctx, t, stream))
			}
			ended, err := tk.consume(ctx, r, p.Agent.Resume(ctx, t))
			if k := task.KindOf(err); pending && k == task.TaskNotFound || k == task.AgentUnavailable {
				// The agent has not received the turn: it is sent again.
				ended, err = tk.consume(ctx, r, p.Agent.Run(ctx, t, stream))
			}
			return ended, err
		})
	})
	return true
}

// turn returns the present turn of the task, for Agent.Resume. tk.mu is held.
func (tk *activeTask) turn() *agent.Turn {
	t := &agent.Turn{
		Ref: tk.meta.Ref, Revision: tk.meta.Revision, Acknowledged: tk.meta.Acknowledged,
		Known: tk.fold.Task().Products, Withdrawn: tk.fold.Withdrawn,
	}
	if tk.meta.Pending != nil {
		t.Message = *tk.meta.Pending
	} else if n := len(tk.fold.Task().MessageHistory); n > 0 {
		t.Message = tk.fold.Task().MessageHistory[n-1]
	}
	if t.Message.Command != task.Continue {
		return t
	}
	for _, s := range slices.Backward(tk.fold.Task().StatusHistory) {
		if s.State.Settled() {
			t.From = s.State
			break
		}
	}
	return t
}
