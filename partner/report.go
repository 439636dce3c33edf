// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

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
