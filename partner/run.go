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
	spoken   chan struct{} // closed when the agent has said something
	silent   bool          // spoken is open; under the live's mutex
	rests    chan struct{} // closed when the turn rests, or is given up; the agent may still go on by itself
	resting  bool          // rests is closed; under the live's mutex
	done     chan struct{} // closed when nothing more is awaited of the agent
	response time.Duration // how long a caller waits for rests
	since    time.Time     // since when the message has waited to be sent; zero while it does not; under the live's mutex
	waited   time.Duration // for how long it waited before; under the live's mutex
	err      error         // what kept the result from being stored; under the live's mutex
}

// derive makes a name that is the same for the same parts, for ever, and tells nothing of them.
func derive(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(kind + separator + strings.Join(parts, separator)))
	return kind + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// begin sets the agent to work on a turn. lv.mu is held, and lv must be in use by the caller. The turn's
// context carries the caller's trace and nothing else of it: the turn outlives whoever began it.
func (p *Partner) begin(ctx context.Context, lv *live, m task.Message, from task.State, stream bool) *run {
	if lv.run != nil {
		lv.run.stop() // it only watched an agent that might have gone on by itself
	}
	t := &agent.Turn{Ref: lv.note.Ref, Message: m, Known: lv.fold.Task.Products, Withdrawn: lv.fold.Withdrawn, Revision: lv.note.Stamp, From: from}
	return p.launch(ctx, lv, func(ctx context.Context, r *run) error {
		return lv.follow(ctx, p, t, r, func() (bool, error) {
			return lv.takeAll(ctx, r, p.Agent.Run(ctx, t, stream))
		})
	})
}

// launch runs work as the task's turn. lv.mu is held.
func (p *Partner) launch(ctx context.Context, lv *live, work func(context.Context, *run) error) *run {
	runCtx, stop := context.WithCancel(trace.ContextWithSpan(p.engine.base, trace.SpanFromContext(ctx)))
	r := &run{partner: p, stop: stop, spoken: make(chan struct{}), silent: true, rests: make(chan struct{}), done: make(chan struct{}), response: lv.note.Terms.Response}
	p.engine.mu.RLock()
	defer p.engine.mu.RUnlock()
	if p.engine.base.Err() != nil { // closing: the next engine picks it up
		stop()
		r.rest()
		close(r.done)
		return r
	}
	lv.run = r
	p.engine.acquire(lv.log) // for the goroutine
	p.engine.work.Go(func() {
		defer lv.release()
		defer stop()
		err := work(runCtx, r)
		lv.mu.Lock()
		r.err = err
		if lv.run == r {
			lv.run = nil
		}
		r.rest()
		lv.mu.Unlock()
		close(r.done)
	})
	return r
}

// wait measures how long the turn waits to be sent. The live's mutex is held.
func (r *run) wait(waiting bool) {
	switch {
	case waiting && r.since.IsZero():
		r.since = time.Now()
	case !waiting && !r.since.IsZero():
		r.waited += time.Since(r.since)
		r.since = time.Time{}
	}
}

// rest lets those go on who wait for the turn's result. The live's mutex is held.
func (r *run) rest() {
	if !r.resting {
		r.resting = true
		close(r.rests)
	}
}

// follow sees a turn to its end: what the agent yields by itself, then, if that broke off, what it says when
// it is asked again, and failing that, the truth about the failure.
func (lv *live) follow(ctx context.Context, p *Partner, t *agent.Turn, r *run, first func() (bool, error)) error {
	ctx, span := tracing.Start(ctx, lv.engine.tracing, trace.SpanKindInternal, "aip.run",
		attribute.String("aip.task.id", t.Message.TaskID), attribute.String("aip.command", string(t.Message.Command)))
	defer span.End()

	rested, err := first()
	lv.mu.Lock()
	if r.wait(false); r.waited > 0 {
		span.SetAttributes(attribute.Float64("aip.run.waited", r.waited.Seconds()))
	}
	lv.mu.Unlock()
	if !rested && err == nil {
		err = task.Errorf(task.InvalidAgentResponse, "the agent's answer ended before its work did")
	}
	if err != nil && mayBeRunning(err) && ctx.Err() == nil {
		span.AddEvent("aip.resume")
		lv.logger().Info("asking the agent again", "reason", err)
		var again error
		rested, again = lv.takeAll(ctx, r, p.Agent.Resume(ctx, t))
		if errors.Is(again, errStore) || task.KindOf(again) == task.AgentTimeout {
			err = again // it knows more than the first error
		}
	}
	switch {
	case rested || ctx.Err() != nil:
		return nil
	case errors.Is(err, errStore):
		if !errors.Is(err, replay.ErrClosed) {
			lv.logger().Error("a task cannot be stored", "error", err)
		}
		return err
	}
	span.SetStatus(codes.Error, task.KindOf(err).String())
	lv.logger().Warn("the agent failed", "reason", err)
	return lv.persist(ctx, r, func() error {
		if ctx.Err() != nil || lv.run != r || lv.hold(agent.Report{State: task.Failed, Items: []task.DataItem{task.Text(detail(err))}}) {
			return nil
		}
		if err := lv.fail(ctx, detail(err)); err != nil {
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
func (lv *live) takeAll(ctx context.Context, r *run, reports iter.Seq2[agent.Report, error]) (rested bool, _ error) {
	rested, err := guard(lv.logger, func() (bool, error) {
		for rep, err := range reports {
			if rested, err := lv.take(ctx, r, rep, err); rested || err != nil {
				return rested, err
			}
		}
		return false, nil
	})
	if errors.Is(err, errPanic) {
		lv.mu.Lock()
		lv.forget()
		lv.mu.Unlock()
	}
	return rested, err
}

// take lets a report count. It reports whether the turn rests now, or what ended it: the agent's error, or
// the store's, marked as errStore.
func (lv *live) take(ctx context.Context, r *run, rep agent.Report, err error) (rested bool, _ error) {
	if err != nil {
		return false, err
	}
	rested, last, err := lv.takeOnce(ctx, r, &rep)
	if mayPass(err) {
		return lv.takeLater(ctx, r, rep, last)
	}
	return rested, err
}

// takeLater is take for a report that the store refused when last was the log's last record, as the live knew it; 0 where
// it knew none.
func (lv *live) takeLater(ctx context.Context, r *run, rep agent.Report, last uint64) (rested bool, _ error) {
	err := lv.persist(ctx, r, func() (err error) {
		if err := lv.load(ctx); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		if len(rep.Chunks) > 0 && lv.head.last != last {
			// The store may hold these pieces after all, and they must not be added twice: the agent is asked.
			return task.Errorf(task.Internal, "the store failed while the agent reported")
		}
		rested, err = lv.takeReport(ctx, r, &rep)
		return err
	})
	return rested, err
}

// takeOnce is take without another attempt. It returns the log's last record before the report, too.
func (lv *live) takeOnce(ctx context.Context, r *run, rep *agent.Report) (rested bool, last uint64, err error) {
	lv.mu.Lock()
	defer lv.mu.Unlock()
	last = lv.head.last
	rested, err = lv.takeReport(ctx, r, rep)
	return rested, last, err
}

// takeReport is takeOnce while lv.mu is held.
func (lv *live) takeReport(ctx context.Context, r *run, rep *agent.Report) (rested bool, _ error) {
	if ctx.Err() != nil || lv.run != r {
		return true, nil // canceled: whatever the agent says comes too late
	}
	if rep.Delivery != agent.DeliveryUnknown {
		r.wait(rep.Delivery == agent.DeliveryQueued)
		return false, lv.deliver(ctx, rep.Delivery)
	}
	if rep.State == task.Canceled && lv.hold(*rep) {
		return true, nil
	}
	if err := lv.load(ctx); err != nil {
		return false, fmt.Errorf("%w: %w", errStore, err)
	}
	if lv.note.Pending == nil && !lv.note.Open && lv.fold.Task.Status.State.Settled() {
		r.rest()
		return true, nil // a cancel has asked the agent, too, and was told of the end before the run
	}
	if err := lv.apply(ctx, rep); err != nil {
		return false, fmt.Errorf("%w: %w", errStore, err)
	}
	if lv.note.Pending != nil {
		return false, nil
	}
	if r.silent {
		r.silent = false
		close(r.spoken)
	}
	if !lv.fold.Task.Status.State.Settled() {
		return false, nil
	}
	r.rest()
	return !rep.SelfResuming, nil
}

// deliver remembers what has become of the message of the turn, so that after a crash it is sent if it was not, and not
// sent again if the agent has it. A start that is pending is sent then in any case. lv.mu is held.
func (lv *live) deliver(ctx context.Context, d agent.Delivery) error {
	unsent, taken := d == agent.DeliveryQueued, d == agent.DeliveryAcknowledged
	if err := lv.load(ctx); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	if lv.note.Unsent == unsent && lv.note.Taken == taken {
		return nil
	}
	lv.note.Unsent, lv.note.Taken = unsent, taken
	if lv.note.Pending != nil {
		return nil
	}
	a := replay.Append{Log: lv.log, Expect: lv.head.last, Metadata: lv.note.encode(), DueAt: replay.Recover}
	if err := lv.append(ctx, &a); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// apply writes what a report makes happen. lv.mu is held.
func (lv *live) apply(ctx context.Context, rep *agent.Report) error {
	if rep.Ref != nil {
		lv.note.Ref = *rep.Ref
	}
	if rep.State.Settled() {
		lv.note.Stamp = rep.Revision
	}
	if rep.State != task.None {
		lv.note.Open = rep.SelfResuming
	}
	b := lv.batch()
	if lv.note.Pending != nil {
		if rep.State == task.Rejected {
			b.begin(task.Rejected, rep.Items)
			b.keep(rep)
			return b.write(ctx)
		}
		if nothing := len(rep.Chunks) == 0 && len(rep.Products) == 0; nothing && rep.State == task.None {
			return nil
		} else if nothing && len(rep.Items) == 0 && !lv.note.Stream && (rep.State == task.Accepted || rep.State == task.Working) {
			// Nobody waits for the news that the agent has taken the task, and it may still reject it. But what it
			// calls the task must be known after a crash.
			if rep.Ref == nil {
				return nil
			}
			return lv.append(ctx, &replay.Append{Log: lv.log, Metadata: lv.note.encode(), DueAt: replay.Recover})
		}
		b.begin(task.Accepted, nil)
	}
	if b.state.Terminal() {
		return nil
	}

	chunks := rep.Chunks
	var offer []string
	if rep.Full {
		chunks = task.Diff(lv.fold.Task.Products, rep.Products)
		offer = task.Offer(lv.fold.Task.Products, rep.Products)
	}
	if len(chunks) > 0 {
		if over := lv.tooLarge(chunks, offer); over != "" {
			b.move(task.Failed, []task.DataItem{task.Text(over)}, nil)
			return b.write(ctx)
		}
		b.move(task.Working, nil, nil)
		for i := range chunks {
			b.events = append(b.events, task.Event{Chunk: &chunks[i]})
		}
	}

	if len(rep.Items) > 0 && rep.State != b.state {
		if over := lv.tooLong(rep.Items); over != "" {
			b.move(task.Failed, []task.DataItem{task.Text(over)}, nil)
			return b.write(ctx)
		}
	}
	switch {
	case rep.State == task.None || rep.State == task.Accepted:
		// No news, or that of a stage which the task has left behind.
	case rep.State == b.state:
		if len(rep.Items) > 0 && !slices.EqualFunc(rep.Items, lv.fold.Task.Status.DataItems, sameText) {
			b.say(rep.Items)
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
	b.keep(rep)
	if b.state != task.AwaitingCompletion || !lv.note.Terms.AutoComplete {
		return b.write(ctx)
	}
	// What the agent said at the end goes with the state that the caller is told.
	b.move(task.Completed, rep.Items, nil)
	b.keep(rep)
	if err := b.write(ctx); err != nil {
		return err
	}
	if p := lv.partner(); p != nil {
		p.passOn(lv, task.Message{TaskID: lv.fold.Task.ID, SessionID: lv.fold.Task.SessionID})
	}
	return nil
}

func sameText(a, b task.DataItem) bool {
	return a.Kind == task.TextItem && b.Kind == task.TextItem && a.Text == b.Text
}

// tooLarge says why the products would exceed what the Leader, or the gateway, allows, once chunks are added,
// of those that offer names; nil names all.
func (lv *live) tooLarge(chunks []task.Chunk, offer []string) string {
	max, whose := lv.note.Terms.MaxProductsBytes, "the Leader"
	if p := lv.partner(); p != nil && (max == 0 || p.MaxBytes < max) {
		max, whose = p.MaxBytes, "this gateway"
	}
	if max == 0 {
		return ""
	}
	have := make(map[string]int64, len(lv.fold.Task.Products))
	var total int64
	for i := range lv.fold.Task.Products {
		if offer != nil && !slices.Contains(offer, lv.fold.Task.Products[i].ID) {
			continue
		}
		n := task.ProductsSize(lv.fold.Task.Products[i : i+1])
		have[lv.fold.Task.Products[i].ID] = n
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
func (lv *live) tooLong(items []task.DataItem) string {
	p := lv.partner()
	if p == nil || p.MaxBytes == 0 {
		return ""
	}
	t := lv.fold.Task
	t.Products, t.Status = nil, task.Status{DataItems: items}
	if t.Size() <= p.MaxBytes {
		return ""
	}
	return fmt.Sprintf("the task's histories would exceed the %d bytes that this gateway keeps of a task (max_bytes)", p.MaxBytes)
}

// fail ends a task whose agent cannot go on, with the reason. lv.mu is held.
func (lv *live) fail(ctx context.Context, reason string) error {
	if err := lv.load(ctx); err != nil {
		return err
	}
	b := lv.batch()
	if lv.note.Pending != nil {
		b.begin(task.Accepted, nil)
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
