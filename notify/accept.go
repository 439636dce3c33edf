// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"slices"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Accept sets the webhook of a command, and gives the task the webhooks set before its Leader was known; unclaimed has
// them, and is nil if there are none. The rest is as partner.Acceptor has it.
func (e *Engine) Accept(
	ctx context.Context, unclaimed Unclaimed, log string, at task.Position, c *partner.Request,
) (done partner.Accepted, err error) {
	if unclaimed != nil {
		name, _, id := logname.Split(log)
		if done.Undo, err = e.Move(ctx, unclaimed, logname.New(name, partner.Anyone, id), log); err != nil {
			return partner.Accepted{}, err
		}
	}
	if c.Webhook == nil {
		return done, nil
	}
	put, err := e.use(ctx, log, at, *c.Webhook)
	adopted := done.Undo
	done.Undo = func(ctx context.Context) (err error) {
		if put != nil {
			err = put(ctx)
		}
		if adopted != nil {
			err = errors.Join(err, adopted(ctx))
		}
		return err
	}
	if err != nil {
		if bad := done.Undo(context.WithoutCancel(ctx)); bad != nil {
			e.logger().WarnContext(ctx, "a webhook of a task that was refused could not be given back", "error", bad)
		}
		return partner.Accepted{}, err
	}
	return done, nil
}

// use sets the webhook of a start or a continue. A webhook with a URL is created, or replaces the one of its id. A
// webhook without a URL must exist, and is narrowed to the states named in the command; a repeated start leaves it as
// it is.
func (e *Engine) use(
	ctx context.Context, log string, at task.Position, w task.Webhook,
) (undo func(context.Context) error, err error) {
	if w.URL == "" {
		was, err := e.webhook(ctx, log, w.ID)
		if err != nil || at.Exists {
			return nil, err
		}
		w = narrowed(was, &w)
	}
	return e.Put(ctx, log, w, At{Seq: at.Seq, Ended: at.Ended})
}

// Narrow narrows an existing webhook to the states of w. The rest is as Set has it.
func (e *Engine) Narrow(ctx context.Context, log string, w task.Webhook, at At) (task.Webhook, error) {
	was, err := e.webhook(ctx, log, w.ID)
	if err != nil {
		return was, err
	}
	now := narrowed(was, &w)
	if now.Dialect == was.Dialect && now.Confirm == was.Confirm && slices.Equal(now.States, was.States) {
		return was, nil
	}
	at.Named = false
	return e.Set(ctx, log, now, at)
}

// webhook returns the webhook of an id.
func (e *Engine) webhook(ctx context.Context, log, id string) (task.Webhook, error) {
	hooks, err := e.Get(ctx, log, id)
	if err != nil {
		return task.Webhook{}, err
	}
	return hooks[0], nil
}

// narrowed returns a webhook as used by a command naming it by its id. It is notified in the dialect of the command:
// the versions of AIP share the method for setting it.
func narrowed(was task.Webhook, by *task.Webhook) task.Webhook {
	was.Dialect, was.Confirm, was.States = by.Dialect, by.Confirm, by.States
	return was
}
