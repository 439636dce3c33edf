// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// consume records the reports of an agent until the turn has settled or an error ends it.
func (tk *activeTask) consume(
	ctx context.Context, r *run, reports iter.Seq2[agent.Report, error],
) (ended bool, _ error) {
	return tk.guardRun(ctx, func() (bool, error) {
		for rep, err := range reports {
			if ended, err := tk.handleReport(ctx, r, rep, err); ended || err != nil {
				return ended, err
			}
		}
		return false, nil
	})
}

// guardRun is guard for a part of a run with the context ctx. After a panic the task is loaded again.
func (tk *activeTask) guardRun(ctx context.Context, f func() (bool, error)) (bool, error) {
	ended, err := guard(ctx, tk.logger, f)
	if errors.Is(err, errPanic) {
		tk.mu.Lock()
		tk.invalidate()
		tk.mu.Unlock()
	}
	return ended, err
}

// handleReport records a report, again and again while the store refuses it for a time. It reports whether the turn has
// ended, or returns the error ending it: the error of the agent, or of the store, marked as errStore.
func (tk *activeTask) handleReport(ctx context.Context, r *run, rep agent.Report, err error) (ended bool, _ error) {
	if err != nil {
		return false, err
	}
	tk.awaitReaders(ctx, &rep)
	ended, last, err := tk.tryReport(ctx, r, &rep)
	if isTransient(err) {
		return tk.retryReport(ctx, r, rep, last)
	}
	return ended, err
}

// retryReport is handleReport for a report refused by the store. last was the number of the last record of the log
// before that, as the task knew it, and 0 if it did not know.
func (tk *activeTask) retryReport(ctx context.Context, r *run, rep agent.Report, last uint64) (ended bool, _ error) {
	err := tk.persist(ctx, r, func() (err error) {
		if err := tk.load(ctx); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		if len(rep.Chunks)+rep.Pieces.Len() > 0 && tk.logState.last != last {
			// The store may have these pieces after all, and they must not be added twice. The agent is asked again.
			return task.Errorf(task.Internal, "the store failed while the agent reported")
		}
		ended, err = tk.recordReport(ctx, r, &rep)
		return err
	})
	return ended, err
}

// tryReport records a report once. It returns the number of the last record of the log before it, too.
func (tk *activeTask) tryReport(ctx context.Context, r *run, rep *agent.Report) (ended bool, last uint64, err error) {
	tk.mu.Lock()
	defer tk.mu.Unlock()
	last = tk.logState.last
	ended, err = tk.recordReport(ctx, r, rep)
	return ended, last, err
}

// recordReport is tryReport while tk.mu is held.
func (tk *activeTask) recordReport(ctx context.Context, r *run, rep *agent.Report) (ended bool, _ error) {
	if ctx.Err() != nil || tk.run != r {
		if rep.Delivery == agent.DeliveryQueued && tk.run == r && tk.loaded {
			tk.meta.Unsent = true // see handOn
		}
		return true, nil // the run was stopped: the report comes too late
	}
	if rep.Delivery != agent.DeliveryUnknown {
		r.noteDelivery(rep.Delivery)
		if rep.Verbatim {
			r.verbatim.set()
		}
		return false, tk.recordDelivery(ctx, rep.Delivery)
	}
	r.heard = true
	r.answered.set()
	if rep.State == task.Canceled && tk.holdEnd(*rep) || rep.Presumed && tk.holdEnd(agent.Report{
		State: task.Failed, Items: []task.DataItem{task.Text("the agent has ended its stream without a last state")},
	}) {
		return true, nil
	}
	if err := tk.load(ctx); err != nil {
		return false, fmt.Errorf("%w: %w", errStore, err)
	}
	if tk.meta.Pending == nil && !tk.meta.SelfResuming && tk.fold.Status().State.Settled() {
		r.settle()
		return true, nil // a cancel has asked the agent, too, and has recorded the end before the run
	}
	over := tk.fold.Status().State.Terminal()
	if err := tk.applyReport(ctx, rep); err != nil {
		return false, fmt.Errorf("%w: %w", errStore, err)
	}
	if rep.Stored != nil && !over && !tk.failedInPlaceOf(rep) {
		rep.Stored()
	}
	if tk.meta.Pending != nil {
		return false, nil
	}
	r.noteReport(tk.fold.Status().State.Settled())
	r.reported.set()
	if rep.Verbatim {
		r.verbatim.set()
	}
	if !tk.fold.Status().State.Settled() {
		return false, nil
	}
	r.settle()
	return !rep.SelfResuming, nil
}

// failedInPlaceOf reports whether the task has failed because of a report of another state, for example one exceeding a
// limit. tk.mu is held.
func (tk *activeTask) failedInPlaceOf(rep *agent.Report) bool {
	return tk.fold.Status().State == task.Failed && rep.State != task.Failed && rep.State != task.Rejected
}

// handOn records for the next engine, when this one closes, that nothing of the message of the turn has been sent: so
// it is sent at once. While the engine runs, a pending start has no such record. tk.mu is held.
func (tk *activeTask) handOn() {
	if tk.engine.base.Err() == nil || !tk.loaded || !tk.meta.Unsent || tk.fold.Status().State.Settled() {
		return
	}
	_ = tk.appendMetadata(replay.Recover, false) // else the next engine asks the agent first, for some time
}

// takeOn records that the message of a turn, handed on by an earlier engine, is about to be sent: so the engine after
// this one asks the agent first.
func (tk *activeTask) takeOn(ctx context.Context, r *run) error {
	return tk.persist(ctx, r, func() error {
		if ctx.Err() != nil || tk.run != r {
			return nil
		}
		if err := tk.load(ctx); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		tk.meta.Unsent = false
		if err := tk.appendMetadata(replay.Recover, false); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		return nil
	})
}

// recordDelivery records the progress of the delivery of the turn's message. So after a crash the message is sent if it
// was not sent before, and not sent twice. A pending start is sent again in any case. tk.mu is held.
func (tk *activeTask) recordDelivery(ctx context.Context, d agent.Delivery) error {
	unsent, acknowledged := d == agent.DeliveryQueued, d == agent.DeliveryAcknowledged
	if err := tk.load(ctx); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	if tk.meta.Unsent == unsent && tk.meta.Acknowledged == acknowledged {
		return nil
	}
	tk.meta.Unsent, tk.meta.Acknowledged = unsent, acknowledged
	if tk.meta.Pending != nil {
		return nil
	}
	if err := tk.appendMetadata(replay.Recover, false); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// applyReport writes the events following from a report. tk.mu is held.
func (tk *activeTask) applyReport(ctx context.Context, rep *agent.Report) error {
	withoutTask := tk.isWithoutTask(rep)
	first := tk.meta.Unreported
	tk.meta.Unreported = false
	named := rep.Ref != nil && *rep.Ref != tk.meta.Ref
	if named {
		if rep.OwnSession && rep.Ref.Session != tk.meta.Ref.Session {
			if err := tk.keepOwnSession(ctx, rep.Ref.Session); err != nil {
				return err
			}
		}
		tk.meta.Ref = *rep.Ref
	}
	if rep.State.Settled() {
		tk.meta.Revision = rep.Revision
	}
	if rep.State != task.None {
		tk.meta.SelfResuming = rep.SelfResuming
	}
	accepts := rep.Stored != nil && rep.State == task.Working && !tk.meta.Accepted
	tk.meta.Accepted = tk.meta.Accepted || accepts
	b := tk.batch()
	b.answers = rep.Stored != nil
	if tk.meta.Pending != nil {
		switch {
		case rep.State == task.Rejected:
			b.beginTask(task.Rejected, rep.Items)
			b.addExtensions(rep)
			return b.write(ctx)
		case tk.staysPending(rep):
			if !named {
				return nil
			}
			// The agent's name for the task must survive a crash.
			return tk.appendMetadata(replay.Recover, false)
		}
		var items []task.DataItem
		if rep.State == task.Accepted {
			items = rep.Items
		}
		b.beginTask(task.Accepted, items)
	}
	if b.state.Terminal() {
		return nil
	}
	if rep.Pieces.Len() > 0 {
		if err := tk.addPieces(ctx, b, rep.Pieces); err != nil || b.state.Terminal() {
			return err
		}
	}
	rep = tk.withAnswer(tk.withSaid(rep))
	offer, over := b.addProducts(rep)
	if over == "" && len(rep.Items) > 0 && rep.State != b.state {
		over = tk.tooLong(rep.Items)
	}
	if over != "" {
		b.move(task.Failed, []task.DataItem{task.Text(over)}, nil)
		return b.write(ctx)
	}
	b.addState(rep)
	if last := len(b.events) - 1; last >= 0 && b.events[last].Status != nil {
		b.events[last].Offer = offer // without a status, the next report has it again
	}
	b.addExtensions(rep)
	tk.meta.WithoutTask = withoutTask && b.state == task.AwaitingCompletion
	if b.state == task.AwaitingCompletion && (tk.meta.Terms.AutoComplete || rep.Closed && tk.meta.Terms.Direct) {
		return tk.completeReported(ctx, b, rep)
	}
	if (accepts || first || named) && b.len() == 0 { // the task was shown as working before
		return tk.appendMetadata(tk.dueAt(b.state, b.since), accepts)
	}
	return b.write(ctx)
}

// isWithoutTask reports whether a report says that the agent has made no task, and nothing said before contradicts it.
// tk.mu is held.
func (tk *activeTask) isWithoutTask(rep *agent.Report) bool {
	return rep.WithoutTask && len(rep.Products) == 1 && len(rep.Products[0].DataItems) > 0 &&
		tk.isDerived() && len(tk.fold.Task().Products) == 0
}

// staysPending reports whether a start stays pending after a report: no caller waits for the agent's report of an
// accepted task, and the agent may still reject it. tk.mu is held.
func (tk *activeTask) staysPending(rep *agent.Report) bool {
	if len(rep.Chunks)+rep.Pieces.Len()+len(rep.Products) > 0 {
		return false
	}
	switch {
	case rep.State == task.None:
		return true
	case rep.Verbatim && tk.meta.Terms.Direct:
		return false
	}
	switch rep.State {
	case task.Working:
		return rep.Stored == nil && !tk.meta.Stream && len(rep.Items) == 0
	case task.Accepted:
		return (!tk.meta.Stream || tk.meta.Tentative) && len(rep.Items) == 0
	}
	return false
}

// completeReported writes a batch ending with awaiting-completion, and completes the task: for its caller, or since the
// agent has.
func (tk *activeTask) completeReported(ctx context.Context, b *batch, rep *agent.Report) error {
	// The items of the last report belong to the state seen by the caller.
	b.move(task.Completed, rep.Items, nil)
	b.addExtensions(rep)
	if err := b.write(ctx); err != nil {
		return err
	}
	if p := tk.partner(); p != nil && !rep.Closed {
		p.forwardComplete(tk, task.Message{TaskID: tk.fold.Task().ID, SessionID: tk.fold.Task().SessionID}, nil)
	}
	return nil
}

// addProducts adds a report's changes of the products. It returns the ids of the products offered by the task from now
// on, or the limit exceeded by the report.
func (b *batch) addProducts(rep *agent.Report) (offer []string, over string) {
	chunks := rep.Chunks
	if rep.Full {
		chunks = task.Diff(b.tk.fold.Task().Products, rep.Products)
		offer = task.Offer(b.tk.fold.Task().Products, rep.Products)
	}
	if len(chunks) == 0 {
		return offer, ""
	}
	if over := b.tk.tooLarge(chunks, offer); over != "" {
		return offer, over
	}
	b.move(task.Working, nil, nil)
	ends := rep.State.Settled()
	for i := range chunks {
		if rep.Full {
			chunks[i].Last = ends
		} else {
			b.leaveToAgent(chunks[i].Product.ID)
		}
		b.add(task.Event{Chunk: &chunks[i]})
	}
	if rep.Full && !ends {
		b.leaveOpen(chunks)
	}
	return offer, ""
}

// addState adds the state of a report, and the agent's words about it.
func (b *batch) addState(rep *agent.Report) {
	switch {
	case rep.State == b.state:
		if len(rep.Items) > 0 && !slices.EqualFunc(rep.Items, b.said(), sameText) || b.bringsMembers(rep) {
			b.addStatus(rep.Items)
		}
	case rep.State == task.None || rep.State == task.Accepted:
		// Nothing new, or a state left by the task.
	case !b.move(rep.State, rep.Items, nil):
		// The table has no path to the reported state, for example rejected after accepted.
		items := rep.Items
		if len(items) == 0 || !rep.Verbatim {
			items = append([]task.DataItem{task.Text("the agent says that the task is " + rep.NativeState)}, items...)
		}
		if !b.move(task.Failed, items, nil) {
			b.move(task.Canceled, items, nil)
		}
	}
}

// bringsMembers reports whether an agent of AIP has members of its own in a report, and the report adds no status to
// carry them.
func (b *batch) bringsMembers(rep *agent.Report) bool {
	if !rep.Verbatim || slices.ContainsFunc(b.events, func(ev task.Event) bool { return ev.Chunk == nil }) {
		return false
	}
	now := b.tk.fold.Task()
	return len(rep.Extensions) > 0 && !bytes.Equal(rep.Extensions, now.Status.Extensions) ||
		len(rep.TaskExtensions) > 0 && !bytes.Equal(rep.TaskExtensions, now.Extensions)
}

// addPieces adds the pieces of a report to a batch, and the surplus to batches before it. If they exceed a limit, it
// writes the pieces within the limit, and fails the task. tk.mu is held.
func (tk *activeTask) addPieces(ctx context.Context, b *batch, of *task.Pieces) error {
	n, over := tk.fitting(of)
	b.move(task.Working, nil, nil)
	most := tk.maxPieces()
	for from := 0; from < n; from += most {
		if from > 0 {
			if err := b.write(ctx); err != nil {
				return err
			}
			answers := b.answers
			*b = *tk.batch()
			b.answers = answers
		}
		b.addPieces(of, from, min(from+most, n))
	}
	if over == "" {
		return nil
	}
	b.move(task.Failed, []task.DataItem{task.Text(over)}, nil)
	return b.write(ctx)
}

// sameText reports whether two items are the same text.
func sameText(a, b task.DataItem) bool {
	return a.Kind == task.TextItem && b.Kind == task.TextItem && a.Text == b.Text
}
