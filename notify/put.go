// SPDX-License-Identifier: Apache-2.0

package notify

// The webhooks set by a command are stored before the command, so no event is missed. If the store then fails, the
// change is undone.

import (
	"context"

	"github.com/aip-gateway/aip-gateway/task"
)

// Unclaimed has the webhooks of tasks of unknown Leaders, each by the log its task would have as such. It is an Engine,
// perhaps another process's.
type Unclaimed interface {
	// Find returns those of a task.
	Find(ctx context.Context, log string) ([]task.Webhook, error)
	// Drop deletes some of a task, and Restore sets them again.
	Drop(ctx context.Context, log string, hooks []task.Webhook) error
	Restore(ctx context.Context, log string, hooks []task.Webhook) error
}

// Find implements Unclaimed.
func (e *Engine) Find(ctx context.Context, log string) ([]task.Webhook, error) {
	if !e.Any() {
		return nil, nil
	}
	if watched, err := e.Watches(ctx, log); err != nil || !watched {
		return nil, err
	}
	return e.Get(ctx, log, "")
}

// Drop implements Unclaimed.
func (e *Engine) Drop(ctx context.Context, log string, hooks []task.Webhook) error {
	for _, w := range hooks {
		if err := e.Delete(ctx, log, w.ID); err != nil && task.KindOf(err) != task.TaskNotFound {
			return err
		}
	}
	return nil
}

// Restore implements Unclaimed. If one cannot be set, none is.
func (e *Engine) Restore(ctx context.Context, log string, hooks []task.Webhook) error {
	for i, w := range hooks {
		if _, err := e.Set(ctx, log, w, At{Named: true}); err != nil {
			_ = e.Drop(ctx, log, hooks[:i]) // the first error counts
			return err
		}
	}
	return nil
}

// Move moves the webhooks of one task to another one, not started yet: if callers are not verified, a webhook is set
// before the task's Leader is known. Both tasks are named by their logs, and e has the webhooks of the second one.
// Those of the first are deleted when all of them have been set. undo moves them back.
func (e *Engine) Move(
	ctx context.Context, source Unclaimed, from, to string,
) (undo func(context.Context) error, err error) {
	undo = func(context.Context) error { return nil }
	hooks, err := source.Find(ctx, from)
	if err != nil || len(hooks) == 0 {
		return undo, err
	}
	if err := e.Restore(ctx, to, hooks); err != nil {
		return undo, err
	}
	if err := source.Drop(ctx, from, hooks); err != nil {
		return undo, err
	}
	return func(ctx context.Context) error {
		if err := source.Restore(ctx, from, hooks); err != nil {
			return err
		}
		return e.Drop(ctx, to, hooks)
	}, nil
}

// Put is Set with At.Named: it creates or replaces a webhook. undo restores the task's webhooks as they were before.
func (e *Engine) Put(
	ctx context.Context, log string, w task.Webhook, at At,
) (undo func(context.Context) error, err error) {
	at.Named = true
	var before []task.Webhook
	if w.ID != "" {
		if before, err = e.Get(ctx, log, w.ID); err != nil && task.KindOf(err) != task.TaskNotFound {
			return nil, err
		}
	}
	set, err := e.Set(ctx, log, w, at)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if len(before) == 0 {
			return e.Delete(ctx, log, set.ID)
		}
		_, err := e.Set(ctx, log, before[0], at)
		return err
	}, nil
}
