// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/notify/delivery"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Change is one change of a task's state.
type Change = task.Change

// Watches reports whether there are webhooks for a task about to be started, so Notify must be called. log is the name
// of the task's log.
func (e *Engine) Watches(ctx context.Context, log string) (bool, error) {
	if !e.Any() {
		return false, nil
	}
	head, err := e.store.Head(ctx, logname.OutboxOf(log))
	if errors.Is(err, replay.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, unreadable(err)
	}
	return head.Ended.IsZero(), nil
}

// Any reports whether any task has, or had, webhooks. Without them, a task needs no look-up.
func (e *Engine) Any() bool { return e.outboxes.any.Load() }

// Notify appends changes of a task's state to its outbox and returns; they are delivered later. The writer of the
// task's log calls it right after it has appended them there, in the order of their numbers. It is one write, without
// waiting for an fsync. If the write fails, or a loss of power takes it, the outbox is reconciled with the task's log
// later. If the task has no webhooks, Notify does nothing.
func (e *Engine) Notify(ctx context.Context, log string, changes []Change) {
	if len(changes) == 0 || !e.Any() {
		return
	}
	ctx = context.WithoutCancel(ctx) // the changes are in the task's log, even if the caller has left
	b := e.outboxes.lock(logname.OutboxOf(log))
	defer b.unlock()
	err := replay.RetryConflict(func() error { return b.append(ctx, changes) })
	if err != nil {
		e.reconciler.request()
		b.logger().ErrorContext(ctx, "a change cannot be appended to the outbox; trying again later", "error", err)
	}
}

// append appends changes. The lock of the outbox is held.
func (b *outbox) append(ctx context.Context, changes []Change) error {
	if err := b.load(ctx); err != nil || !b.exists {
		return err
	}
	m := &b.metadata
	first := &changes[0]
	if !m.Ended.IsZero() && first.Seq <= m.Seen && first.Task.Status.ChangedAt.After(m.SeenAt) {
		m.beginGeneration()
	}
	epoch := b.of.present()
	if m.Epoch != epoch && first.Seq > m.Seen+1 {
		return b.reconcile(ctx)
	}
	var traceparent string
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		traceparent = delivery.Traceparent(span)
	}
	var out batch
	now, seen := time.Now(), m.Seen
	for i := range changes {
		if changes[i].Seq > m.Seen {
			out.add(m, changes[i].Seq, changes[i].Task, traceparent, now)
		}
	}
	if m.Seen == seen || len(out.records) == 0 && m.Ended.IsZero() && seen > 0 {
		return nil // no webhook wants them: only the very first event is worth a write without a record
	}
	m.Epoch = epoch
	return b.write(ctx, now, out.records, false)
}
