// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// The pauses before outboxes are reconciled again, after the store failed.
const (
	reconcileSoon = time.Second
	reconcileMax  = time.Minute
)

// reconciler reconciles outboxes with the logs of their tasks. An outbox is written after its task's log, so a crash or
// a failing store may leave changes out of it; they are then appended from the task's log.
type reconciler struct {
	outboxes *outboxes
	reopened func() // called when the store was reopened
	log      func() *slog.Logger

	requested chan struct{} // holds one
}

// request notes a change not appended to its outbox. The outbox is not remembered: from now on every outbox is
// reconciled before its next write, and all of them in the background.
func (r *reconciler) request() {
	r.outboxes.newEpoch()
	select {
	case r.requested <- struct{}{}:
	default:
	}
}

// run reconciles all outboxes at once, on each request, and when the store was reopened: a change may then be in a
// task's log although its writer got an error. It returns when ctx ends.
func (r *reconciler) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	waiting, wait := true, reconcileSoon // until timer fires
	store := r.outboxes.store
	reopened := store.Reopened()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.requested: // the store has just failed
			if !waiting {
				waiting = true
				timer.Reset(wait)
			}
			continue
		case <-reopened:
			reopened = store.Reopened() // before the store is used, so no reopening is missed
			wait = reconcileSoon
			r.outboxes.newEpoch()
			r.reopened()
		case <-timer.C:
			waiting = false
		}
		err := r.all(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			wait = reconcileSoon
		default:
			background(r.log(), err).ErrorContext(ctx, "outboxes cannot be reconciled with their tasks; trying again",
				"error", err)
			wait = min(2*wait, reconcileMax)
			r.request()
		}
	}
}

// all reconciles every outbox. It continues after an error, and returns the last one.
func (r *reconciler) all(ctx context.Context) (failed error) {
	for due, err := range r.outboxes.store.Due(ctx, logname.Outbox, replay.Recover, replay.EndOfTime) {
		if err != nil {
			return err
		}
		if err := r.one(ctx, due.Log); err != nil {
			failed = err
		}
	}
	return failed
}

func (r *reconciler) one(ctx context.Context, name string) error {
	b := r.outboxes.lock(name)
	defer b.unlock()
	return replay.RetryConflict(func() error {
		err := b.load(ctx)
		if err != nil || !b.exists || b.metadata.Epoch == r.outboxes.present() {
			return err
		}
		return b.reconcile(ctx)
	})
}

// reconcile appends the events of the task since the last one accounted for, with the same content as from append. It
// writes only if something was missing. The lock of the outbox is held.
func (b *outbox) reconcile(ctx context.Context) error {
	m, store, log := &b.metadata, b.of.store, logname.TaskOf(b.name)
	epoch := b.of.present() // before the task's log is read
	brief, err := store.Head(ctx, log)
	switch {
	case errors.Is(err, replay.ErrNotFound):
		if m.Seen == 0 || !m.Ended.IsZero() {
			return nil
		}
		b.logger().WarnContext(ctx, "the log of a task was dropped before its webhooks could be notified of its end")
		now := time.Now()
		m.Ended, m.Epoch = now, epoch
		return b.write(ctx, now, nil, false)
	case err != nil:
		return unreadable(err)
	case brief.Last == m.Seen:
		return nil
	}

	head, snapshot, records, err := store.Load(ctx, log)
	if errors.Is(err, replay.ErrNotFound) {
		return nil // dropped just now; the next time says so
	}
	if err != nil {
		return unreadable(err)
	}
	now := time.Now()
	seen, ended := m.Seen, m.Ended
	var out batch
	if err := out.addMissing(m, head, snapshot, records, now); err != nil {
		b.loaded = ""
		return task.Errorf(task.Internal, "the task's log is damaged").WithCause(err)
	}
	if len(out.records) == 0 && m.Ended.Equal(ended) && (seen > 0 || m.Seen == 0) {
		return nil
	}
	m.Epoch = epoch
	return b.write(ctx, now, out.records, false)
}

// addMissing adds the changes of a task's log, as the store returned it, not yet accounted for.
func (r *batch) addMissing(
	m *metadata, head replay.Head, snapshot []byte, records []replay.Record, now time.Time,
) error {
	if len(records) > 0 && records[0].Seq == 1 && !m.Ended.IsZero() {
		first, err := task.DecodeEvent(records[0].Data)
		if err != nil {
			return err
		}
		if first.Task != nil && first.Task.Status.ChangedAt.After(m.SeenAt) {
			m.beginGeneration()
		}
	}
	var fold task.Fold
	for s, err := range follow.Steps(follow.Position{Seq: m.Seen, At: m.SeenAt}, head, snapshot, records) {
		if err != nil {
			return err
		}
		fold.Apply(s.Event)
		if s.Entered {
			r.add(m, s.Seq, fold.Task(), "", now)
		}
	}
	return nil
}
