// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"slices"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// TaskAt returns a task as it was after a Status in its log, without its histories. It reads the log up to there, and
// calls reserve before, with the size of the stored log. If the log was trimmed further meanwhile, the products are
// those of a later event. The errors are the ones of Read.
func TaskAt(
	ctx context.Context, logs replay.Logs, log string, at *task.Event, reserve replay.Reserve,
) (task.Task, error) {
	head, err := logs.Head(ctx, log)
	if err != nil {
		return task.Task{}, streamError(ctx, err)
	}
	if err := reserve(ctx, sizeOf(&head)); err != nil {
		return task.Task{}, err
	}
	fold, err := foldTo(ctx, logs, log, at.Seq)
	if _, trimmed := errors.AsType[*replay.CompactedError](err); trimmed {
		fold, err = foldTrimmed(ctx, logs, log, at.Seq)
	}
	if err != nil {
		return task.Task{}, streamError(ctx, err)
	}
	t := *fold.Task()
	if fold.Seq != at.Seq {
		t.Status = *at.Status
	}
	t.StatusHistory, t.MessageHistory = nil, nil
	return t, nil
}

// Settled returns a task as it is after the event seq of its log, without its histories, if this process has it in
// memory in this form, and the task is not locked: the followers of a task just settled need not read its log again.
func (p *Partner) Settled(ctx context.Context, log string, seq uint64) (t task.Task, ok bool) {
	tk := p.engine.acquire(log)
	defer tk.release()
	if !tk.mu.TryLock() {
		return t, false
	}
	defer tk.mu.Unlock()
	if !tk.loaded && tk.idle {
		if head, err := tk.head(ctx); err == nil {
			tk.reuse(&head)
		}
	}
	if !tk.loaded || !tk.exists || tk.fold.Seq != seq {
		return t, false
	}
	return tk.snapshot(), true
}

// foldTo folds a log up to an event seen by a reader.
func foldTo(ctx context.Context, logs replay.Logs, log string, seq uint64) (fold task.Fold, err error) {
	reader := logs.Read(log, 0)
	defer reader.Close()
	for {
		records, _, err := reader.Next(ctx, nil)
		if err == nil && len(records) == 0 { // the store has become unavailable since
			err = replay.ErrUnavailable
		}
		if err != nil {
			return fold, err
		}
		for _, r := range records {
			if err := applyRecord(&fold, r); err != nil {
				return fold, damaged(err)
			}
			if r.Seq == seq {
				return fold, nil
			}
		}
	}
}

// foldTrimmed folds the kept part of a log up to an event.
func foldTrimmed(ctx context.Context, logs replay.Logs, log string, seq uint64) (fold task.Fold, err error) {
	head, snapshot, records, err := logs.Load(ctx, log)
	if err != nil {
		return fold, err
	}
	later := slices.IndexFunc(records, func(r replay.Record) bool { return r.Seq > seq })
	if later >= 0 {
		records = records[:later]
	}
	if fold, err = foldAll(head, snapshot, records, 0); err != nil {
		return fold, damaged(err)
	}
	return fold, nil
}
