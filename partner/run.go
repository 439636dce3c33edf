// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// run is one turn under way: a start or continue, carried out by the agent in a goroutine of the engine's.
type run struct {
	partner     *Partner
	stop        context.CancelFunc
	reported    chan struct{} // closed when the agent has said something
	unreported  bool          // spoken is open; under the task's mutex
	settled     chan struct{} // closed when the turn rests, or is given up; the agent may still go on by itself
	isSettled   bool          // rests is closed; under the task's mutex
	done        chan struct{} // closed when nothing more is awaited of the agent
	response    time.Duration // how long a caller waits for rests
	queuedSince time.Time     // since when the message has waited to be sent; zero while it does not; under the task's mutex
	queuedFor   time.Duration // for how long it waited before; under the task's mutex
	err         error         // what kept the result from being stored; under the task's mutex
}

// begin sets the agent to work on a turn. tk.mu is held, and tk must be in use by the caller. The turn's
// context carries the caller's trace and nothing else of it: the turn outlives whoever began it.
func (p *Partner) beginTurn(ctx context.Context, tk *activeTask, m task.Message, from task.State, stream bool) *run {
	if tk.run != nil {
		tk.run.stop() // it only watched an agent that might have gone on by itself
	}
	t := &agent.Turn{Ref: tk.meta.Ref, Message: m, Known: tk.fold.Task.Products, Withdrawn: tk.fold.Withdrawn, Revision: tk.meta.Revision, From: from}
	return p.launch(ctx, tk, func(ctx context.Context, r *run) error {
		return tk.runTurn(ctx, nil, p, t, r, func(ctx context.Context) (bool, error) {
			return tk.consume(ctx, r, p.Agent.Run(ctx, t, stream))
		})
	})
}

// launch runs work as the task's turn. tk.mu is held.
func (p *Partner) launch(ctx context.Context, tk *activeTask, work func(context.Context, *run) error) *run {
	runCtx, stop := context.WithCancel(trace.ContextWithSpan(p.engine.base, trace.SpanFromContext(ctx)))
	r := &run{partner: p, stop: stop, reported: make(chan struct{}), unreported: true, settled: make(chan struct{}), done: make(chan struct{}), response: tk.meta.Terms.Response}
	p.engine.mu.RLock()
	defer p.engine.mu.RUnlock()
	if p.engine.base.Err() != nil { // closing: the next engine picks it up
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

// wait measures how long the turn waits to be sent. The the task's mutex is held.
func (r *run) trackQueued(waiting bool) {
	switch {
	case waiting && r.queuedSince.IsZero():
		r.queuedSince = time.Now()
	case !waiting && !r.queuedSince.IsZero():
		r.queuedFor += time.Since(r.queuedSince)
		r.queuedSince = time.Time{}
	}
}

// rest lets those go on who wait for the turn's result. The the task's mutex is held.
func (r *run) settle() {
	if !r.isSettled {
		r.isSettled = true
		close(r.settled)
	}
}

// runTurn sees a turn to its end: what the agent yields by itself, then, if that broke off, what it says when
// it is asked again, and failing that, the truth about the failure. A turn that is a part of a call is traced where its
// caller is; tracer is that of other turns, or nil.
func (tk *activeTask) runTurn(
	ctx context.Context, tracer trace.TracerProvider, p *Partner, t *agent.Turn, r *run,
	first func(context.Context) (bool, error),
) error {
	ctx, span := tracing.Start(ctx, tracer, trace.SpanKindInternal, "aip.run",
		attribute.String("aip.task.id", t.Message.TaskID), attribute.String("aip.command", string(t.Message.Command)))
	defer span.End()

	rested, err := first(ctx)
	tk.mu.Lock()
	if r.trackQueued(false); r.queuedFor > 0 {
		span.SetAttributes(attribute.Float64("aip.run.waited", r.queuedFor.Seconds()))
	}
	tk.mu.Unlock()
	if !rested && err == nil {
		err = task.Errorf(task.InvalidAgentResponse, "the agent's answer ended before its work did")
	}
	if err != nil && mayBeRunning(err) && ctx.Err() == nil {
		span.AddEvent("aip.resume")
		tk.logger().Info("asking the agent again", "reason", err)
		var again error
		rested, again = tk.consume(ctx, r, p.Agent.Resume(ctx, t))
		if errors.Is(again, errStore) || task.KindOf(again) == task.AgentTimeout {
			err = again // it knows more than the first error
		}
	}
	switch {
	case rested || ctx.Err() != nil:
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
		if ctx.Err() != nil || tk.run != r || tk.holdEnd(agent.Report{State: task.Failed, Items: []task.DataItem{task.Text(detail(err))}}) {
			return nil
		}
		if err := tk.fail(ctx, detail(err)); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		return nil
	})
}

// mayBeRunning reports whether the agent may be at work on a turn in spite of an error.
func mayBeRunning(err error) bool {
	switch task.KindOf(err) {
	case task.AgentUnavailable, task.AgentTimeout:
		return false
	}
	return !errors.Is(err, errStore) && !errors.Is(err, errPanic)
}

// errStore marks an error that is the store's and not the agent's.
var errStore = errors.New("partner: the store failed")

// fail ends a task whose agent cannot go on, with the reason. tk.mu is held.
func (tk *activeTask) fail(ctx context.Context, reason string) error {
	if err := tk.load(ctx); err != nil {
		return err
	}
	b := tk.batch()
	if tk.meta.Pending != nil {
		b.beginTask(task.Accepted, nil)
	}
	if !b.move(task.Failed, []task.DataItem{task.Text(reason)}, nil) {
		return nil // it rests already
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

// adopt goes on with the turn of a task that is at work but has nobody to work on it, by asking the agent.
// It reports whether there was one. tk.mu is held.
func (tk *activeTask) resumeTurn(p *Partner) bool {
	state := tk.fold.Task.Status.State
	mayGoOn := tk.meta.SelfResuming && state == task.AwaitingInput
	if !tk.exists || tk.run != nil || state.Settled() && !mayGoOn {
		return false
	}
	tk.logger().Debug("picking up an unfinished task", "state", string(state))
	t := tk.turn()
	pending := tk.meta.Pending != nil
	stream, unsent := tk.meta.Stream, tk.meta.Unsent
	p.launch(p.engine.base, tk, func(ctx context.Context, r *run) error {
		return tk.runTurn(ctx, tk.engine.tracing, p, t, r, func(ctx context.Context) (bool, error) {
			if unsent {
				return tk.consume(ctx, r, p.Agent.Run(ctx, t, stream))
			}
			rested, err := tk.consume(ctx, r, p.Agent.Resume(ctx, t))
			if k := task.KindOf(err); pending && k == task.TaskNotFound || k == task.AgentUnavailable {
				// The agent never heard of it: the turn is still to be made.
				rested, err = tk.consume(ctx, r, p.Agent.Run(ctx, t, stream))
			}
			return rested, err
		})
	})
	return true
}

// turn returns the turn that the task is at, as Agent.Resume takes it. tk.mu is held.
func (tk *activeTask) turn() *agent.Turn {
	t := &agent.Turn{Ref: tk.meta.Ref, Known: tk.fold.Task.Products, Withdrawn: tk.fold.Withdrawn, Revision: tk.meta.Revision, Acknowledged: tk.meta.Acknowledged}
	if tk.meta.Pending != nil {
		t.Message = *tk.meta.Pending
	} else if n := len(tk.fold.Task.MessageHistory); n > 0 {
		t.Message = tk.fold.Task.MessageHistory[n-1]
	}
	for i := len(tk.fold.Task.StatusHistory) - 1; i >= 0 && t.Message.Command == task.Continue && t.From == task.None; i-- {
		if s := tk.fold.Task.StatusHistory[i].State; s.Settled() {
			t.From = s
		}
	}
	return t
}
