// SPDX-License-Identifier: Apache-2.0

package notify

// What a command changes of webhooks is changed before the command is stored, so that no event is missed. If the store
// then fails, the change is undone.

import (
	"context"

	"github.com/aip-gateway/aip-gateway/task"
)

// Move makes the webhooks of one task those of another, which has not been started yet: where nobody verifies who
// calls, a webhook is set before it is known whose the task will be. Both are named by their logs. Where there are
// none, nothing happens. undo moves them back.
func (e *Engine) Move(ctx context.Context, from, to string) (undo func(context.Context) error, err error) {
	undo = func(context.Context) error { return nil }
	if watched, err := e.Watches(ctx, from); err != nil || !watched {
		return undo, err
	}
	hooks, err := e.Get(ctx, from, "")
	if err != nil {
		return undo, err
	}
	if err := e.move(ctx, from, to, hooks); err != nil {
		return undo, err
	}
	return func(ctx context.Context) error { return e.move(ctx, to, from, hooks) }, nil
}

// move moves some webhooks of a task. They are deleted when all of them have been set.
func (e *Engine) move(ctx context.Context, from, to string, hooks []task.Webhook) error {
	for i, w := range hooks {
		if _, err := e.Set(ctx, to, w, At{Named: true}); err != nil {
			for _, done := range hooks[:i] {
				_ = e.Delete(ctx, to, done.ID) // the error that counts is the first one
			}
			return err
		}
	}
	for _, w := range hooks {
		if err := e.Delete(ctx, from, w.ID); err != nil && task.KindOf(err) != task.TaskNotFound {
			return err
		}
	}
	return nil
}

// Put is Set for a webhook of the caller's own ID, which need not be known, and for one without an ID. undo makes
// the task's webhooks what they were before.
func (e *Engine) Put(ctx context.Context, log string, w task.Webhook, at At) (undo func(context.Context) error, err error) {
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
