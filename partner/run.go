// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
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
	partner  *Partner
	stop     context.CancelFunc
	reported   chan struct{} // closed when the agent has said something
	unreported   bool          // spoken is open; under the task's mutex
	settled    chan struct{} // closed when the turn rests, or is given up; the agent may still go on by itself
	isSettled  bool          // rests is closed; under the task's mutex
	done     chan struct{} // closed when nothing more is awaited of the agent
	response time.Duration // how long a caller waits for rests
	queuedSince    time.Time     // since when the message has waited to be sent; zero while it does not; under the task's mutex
	queuedFor   time.Duration // for how long it waited before; under the task's mutex
	err      error         // what kept the result from being stored; under the task's mutex
}

// derive makes a name that is the same for the same parts, for ever, and tells nothing of them.
func derive(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(kind + separator + strings.Join(parts, separator)))
	return kind + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// begin sets the agent to work on a turn. tk.mu is held, and tk must be in use by the caller. The turn's
// context carries the caller's trace and nothing else of it: the turn outlives whoever began it.
func (p *Partner) beginTurn(ctx context.Context, tk *activeTask, m task.Message, from task.State, stream bool) *run {
	if tk.run != nil {
		tk.run.stop() // it only watched an agent that might have gone on by itself
	}
	t := &agent.Turn{Ref: tk.meta.Ref, Message: m, Known: tk.fold.Task.Products, Withdrawn: tk.fold.Withdrawn, Revision: tk.meta.Revision, From: from}
	return p.launch(ctx, tk, func(ctx context.Context, r *run) error {
		return tk.runTurn(ctx, p, t, r, func() (bool, error) {
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

// follow sees a turn to its end: what the agent yields by itself, then, if that broke off, what it says when
// it is asked again, and failing that, the truth about the failure.
func (tk *activeTask) runTurn(ctx context.Context, p *Partner, t *agent.Turn, r *run, first func() (bool, error)) error {
	ctx, span := tracing.Start(ctx, tk.engine.tracing, trace.SpanKindInternal, "aip.run",
		attribute.String("aip.task.id", t.Message.TaskID), attribute.String("aip.command", string(t.Message.Command)))
	defer span.End()

	rested, err := first()
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

// takeAll lets reports count until the turn rests.
func (tk *activeTask) consume(ctx context.Context, r *run, reports iter.Seq2[agent.Report, error]) (rested bool, _ error) {
	rested, err := guard(tk.logger, func() (bool, error) {
		for rep, err := range reports {
			if rested, err := tk.handleReport(ctx, r, rep, err); rested || err != nil {
				return rested, err
			}
		}
		return false, nil
	})
	if errors.Is(err, errPanic) {
		tk.mu.Lock()
		tk.invalidate()
		tk.mu.Unlock()
	}
	return rested, err
}

// take lets a report count. It reports whether the turn rests now, or what ended it: the agent's error, or
// the store's, marked as errStore.
func (tk *activeTask) handleReport(ctx context.Context, r *run, rep agent.Report, err error) (rested bool, _ error) {
	if err != nil {
		return false, err
	}
	rested, last, err := tk.tryReport(ctx, r, &rep)
	if isTransient(err) {
		return tk.retryReport(ctx, r, rep, last)
	}
	return rested, err
}

// takeLater is take for a report that the store refused when last was the log's last record, as the live knew it; 0 where
// it knew none.
func (tk *activeTask) retryReport(ctx context.Context, r *run, rep agent.Report, last uint64) (rested bool, _ error) {
	err := tk.persist(ctx, r, func() (err error) {
		if err := tk.load(ctx); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		if len(rep.Chunks) > 0 && tk.logState.last != last {
			// The store may hold these pieces after all, and they must not be added twice: the agent is asked.
			return task.Errorf(task.Internal, "the store failed while the agent reported")
		}
		rested, err = tk.recordReport(ctx, r, &rep)
		return err
	})
	return rested, err
}

// takeOnce is take without another attempt. It returns the log's last record before the report, too.
func (tk *activeTask) tryReport(ctx context.Context, r *run, rep *agent.Report) (rested bool, last uint64, err error) {
	tk.mu.Lock()
	defer tk.mu.Unlock()
	last = tk.logState.last
	rested, err = tk.recordReport(ctx, r, rep)
	return rested, last, err
}

// takeReport is takeOnce while tk.mu is held.
func (tk *activeTask) recordReport(ctx context.Context, r *run, rep *agent.Report) (rested bool, _ error) {
	if ctx.Err() != nil || tk.run != r {
		return true, nil // canceled: whatever the agent says comes too late
	}
	if rep.Delivery != agent.DeliveryUnknown {
		r.trackQueued(rep.Delivery == agent.DeliveryQueued)
		return false, tk.recordDelivery(ctx, rep.Delivery)
	}
	if rep.State == task.Canceled && tk.holdEnd(*rep) {
		return true, nil
	}
	if err := tk.load(ctx); err != nil {
		return false, fmt.Errorf("%w: %w", errStore, err)
	}
	if tk.meta.Pending == nil && !tk.meta.SelfResuming && tk.fold.Task.Status.State.Settled() {
		r.settle()
		return true, nil // a cancel has asked the agent, too, and was told of the end before the run
	}
	if err := tk.applyReport(ctx, rep); err != nil {
		return false, fmt.Errorf("%w: %w", errStore, err)
	}
	if tk.meta.Pending != nil {
		return false, nil
	}
	if r.unreported {
		r.unreported = false
		close(r.reported)
	}
	if !tk.fold.Task.Status.State.Settled() {
		return false, nil
	}
	r.settle()
	return !rep.SelfResuming, nil
}

// deliver remembers what has become of the message of the turn, so that after a crash it is sent if it was not, and not
// sent again if the agent has it. A start that is pending is sent then in any case. tk.mu is held.
func (tk *activeTask) recordDelivery(ctx context.Context, d agent.Delivery) error {
	unsent, taken := d == agent.DeliveryQueued, d == agent.DeliveryAcknowledged
	if err := tk.load(ctx); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	if tk.meta.Unsent == unsent && tk.meta.Acknowledged == taken {
		return nil
	}
	tk.meta.Unsent, tk.meta.Acknowledged = unsent, taken
	if tk.meta.Pending != nil {
		return nil
	}
	a := replay.Append{Log: tk.log, Expect: tk.logState.last, Metadata: tk.meta.encode(), DueAt: replay.Recover}
	if err := tk.append(ctx, &a); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// apply writes what a report makes happen. tk.mu is held.
func (tk *activeTask) applyReport(ctx context.Context, rep *agent.Report) error {
	if rep.Ref != nil {
		tk.meta.Ref = *rep.Ref
	}
	if rep.State.Settled() {
		tk.meta.Revision = rep.Revision
	}
	if rep.State != task.None {
		tk.meta.SelfResuming = rep.SelfResuming
	}
	b := tk.batch()
	if tk.meta.Pending != nil {
		if rep.State == task.Rejected {
			b.beginTask(task.Rejected, rep.Items)
			b.addExtensions(rep)
			return b.write(ctx)
		}
		if nothing := len(rep.Chunks) == 0 && len(rep.Products) == 0; nothing && rep.State == task.None {
			return nil
		} else if nothing && len(rep.Items) == 0 && !tk.meta.Stream && (rep.State == task.Accepted || rep.State == task.Working) {
			// Nobody waits for the news that the agent has taken the task, and it may still reject it. But what it
			// calls the task must be known after a crash.
			if rep.Ref == nil {
				return nil
			}
			return tk.append(ctx, &replay.Append{Log: tk.log, Metadata: tk.meta.encode(), DueAt: replay.Recover})
		}
		b.beginTask(task.Accepted, nil)
	}
	if b.state.Terminal() {
		return nil
	}

	chunks := rep.Chunks
	var offer []string
	if rep.Full {
		chunks = task.Diff(tk.fold.Task.Products, rep.Products)
		offer = task.Offer(tk.fold.Task.Products, rep.Products)
	}
	if len(chunks) > 0 {
		if over := tk.tooLarge(chunks, offer); over != "" {
			b.move(task.Failed, []task.DataItem{task.Text(over)}, nil)
			return b.write(ctx)
		}
		b.move(task.Working, nil, nil)
		for i := range chunks {
			b.events = append(b.events, task.Event{Chunk: &chunks[i]})
		}
	}

	if len(rep.Items) > 0 && rep.State != b.state {
		if over := tk.tooLong(rep.Items); over != "" {
			b.move(task.Failed, []task.DataItem{task.Text(over)}, nil)
			return b.write(ctx)
		}
	}
	switch {
	case rep.State == task.None || rep.State == task.Accepted:
		// No news, or that of a stage which the task has left behind.
	case rep.State == b.state:
		if len(rep.Items) > 0 && !slices.EqualFunc(rep.Items, tk.fold.Task.Status.DataItems, sameText) {
			b.addStatus(rep.Items)
		}
	case !b.move(rep.State, rep.Items, nil):
		// The table has no way from here to where the agent says that it is: a refusal after acceptance.
		items := append([]task.DataItem{task.Text("the agent says that the task is " + rep.NativeState)}, rep.Items...)
		if !b.move(task.Failed, items, nil) {
			b.move(task.Canceled, items, nil)
		}
	}
	if last := len(b.events) - 1; last >= 0 && b.events[last].Status != nil {
		b.events[last].Offer = offer // without a status, the next report has it again
	}
	b.addExtensions(rep)
	if b.state != task.AwaitingCompletion || !tk.meta.Terms.AutoComplete {
		return b.write(ctx)
	}
	// What the agent said at the end goes with the state that the caller is told.
	b.move(task.Completed, rep.Items, nil)
	b.addExtensions(rep)
	if err := b.write(ctx); err != nil {
		return err
	}
	if p := tk.partner(); p != nil {
		p.forwardComplete(tk, task.Message{TaskID: tk.fold.Task.ID, SessionID: tk.fold.Task.SessionID})
	}
	return nil
}

func sameText(a, b task.DataItem) bool {
	return a.Kind == task.TextItem && b.Kind == task.TextItem && a.Text == b.Text
}

// tooLarge says why the products would exceed what the Leader, or the gateway, allows, once chunks are added,
// of those that offer names; nil names all.
func (tk *activeTask) tooLarge(chunks []task.Chunk, offer []string) string {
	max, whose := tk.meta.Terms.MaxProductsBytes, "the Leader"
	if p := tk.partner(); p != nil && (max == 0 || p.MaxBytes < max) {
		max, whose = p.MaxBytes, "this gateway"
	}
	if max == 0 {
		return ""
	}
	have := make(map[string]int64, len(tk.fold.Task.Products))
	var total int64
	for i := range tk.fold.Task.Products {
		if offer != nil && !slices.Contains(offer, tk.fold.Task.Products[i].ID) {
			continue
		}
		n := task.ProductsSize(tk.fold.Task.Products[i : i+1])
		have[tk.fold.Task.Products[i].ID] = n
		total += n
	}
	for i := range chunks {
		id, n := chunks[i].Product.ID, task.ProductsSize([]task.Product{chunks[i].Product})
		if !chunks[i].Append {
			total -= have[id]
			have[id] = 0
		}
		have[id] += n
		total += n
	}
	if total <= max {
		return ""
	}
	return fmt.Sprintf("the products have %d bytes, but %s allows no more than %d (maxProductsBytes)", total, whose, max)
}

// tooLong says why the histories would be larger than what is kept of a task, once a status with these items is added.
func (tk *activeTask) tooLong(items []task.DataItem) string {
	p := tk.partner()
	if p == nil || p.MaxBytes == 0 {
		return ""
	}
	t := tk.fold.Task
	t.Products, t.Status = nil, task.Status{DataItems: items}
	if t.Size() <= p.MaxBytes {
		return ""
	}
	return fmt.Sprintf("the task's histories would exceed the %d bytes that this gateway keeps of a task (max_bytes)", p.MaxBytes)
}

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
