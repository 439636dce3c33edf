// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

// Accept sets the webhook of a command, and gives the task those that were set before its Leader was known; unclaimed
// has them, and is nil if there are none. The rest is as partner.Acceptor has it.
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

// use sets the webhook of a command that starts or continues a task. A webhook with a URL is created, or replaces the
// one of its id. A webhook without a URL must exist, and is narrowed to the states that the command names; a repeated
// start leaves it as it is.
func (e *Engine) use(
	ctx context.Context, log string, at task.Position, w task.Webhook,
) (undo func(context.Context) error, err error) {
	if w.URL == "" {
		hooks, err := e.Get(ctx, log, w.ID)
		if err != nil || at.Exists {
			return nil, err
		}
		// It is notified in the dialect of the start: the versions of AIP share the method that has set it.
		hooks[0].Dialect, hooks[0].Confirm, hooks[0].States = w.Dialect, w.Confirm, w.States
		w = hooks[0]
	}
	return e.Put(ctx, log, w, At{Seq: at.Seq, Ended: at.Ended})
}
