// SPDX-License-Identifier: Apache-2.0

package notify

// The webhooks that a command sets are stored before the command, so that no event is missed. If the store then fails,
// the change is undone.

import (
	"context"

	"github.com/aip-gateway/aip-gateway/task"
)

// Move moves the webhooks of one task to another one, which has not been started yet: where callers are not verified, a
// webhook is set before it is known to which Leader the task will belong. Both tasks are named by their logs, and e has
// the webhooks of the second one. undo moves the webhooks back.
func (e *Engine) Move(
	ctx context.Context, source *Engine, from, to string,
) (undo func(context.Context) error, err error) {
	undo = func(context.Context) error { return nil }
	if watched, err := source.Watches(ctx, from); err != nil || !watched {
		return undo, err
	}
	hooks, err := source.Get(ctx, from, "")
	if err != nil {
		return undo, err
	}
	if err := e.move(ctx, source, from, to, hooks); err != nil {
		return undo, err
	}
	return func(ctx context.Context) error { return source.move(ctx, e, to, from, hooks) }, nil
}

// move moves webhooks of a task. They are deleted there when all of them have been set.
func (e *Engine) move(ctx context.Context, source *Engine, from, to string, hooks []task.Webhook) error {
	for i, w := range hooks {
		if _, err := e.Set(ctx, to, w, At{Named: true}); err != nil {
			for _, done := range hooks[:i] {
				_ = e.Delete(ctx, to, done.ID) // the error that counts is the first one
			}
			return err
		}
	}
	for _, w := range hooks {
		if err := source.Delete(ctx, from, w.ID); err != nil && task.KindOf(err) != task.TaskNotFound {
			return err
		}
	}
	return nil
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
