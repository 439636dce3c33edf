// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// webhooks carries out what is asked of a task's webhooks. They belong to the Leader of the task, whether it
// exists already or not.
func (c *conversation) webhooks(p *partner.Partner) (hooks []task.Webhook, err error) {
	w, engine := c.call.Webhook, c.h.Webhooks()
	if c.leader == "" { // identity is off, and the request does not say who sends it
		if c.leader, err = p.LeaderOf(c.ctx, w.TaskID); err != nil {
			return nil, err
		}
	}
	if c.call.TaskExists {
		err = p.Look(c.ctx, c.leader, w.TaskID, func(_ string, at task.At) error {
			if !at.Exists {
				return partner.NotFound(w.TaskID)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	switch c.call.Op {
	case translate.SetWebhook:
		err = p.Watch(c.ctx, c.leader, w.TaskID, func(log string, at task.At) error {
			set, err := engine.Set(c.ctx, log, *w, notify.At{Seq: at.Seq, Ended: at.Ended, Named: !c.call.Strict})
			hooks = []task.Webhook{set}
			return err
		})
	case translate.GetWebhooks:
		hooks, err = engine.Get(c.ctx, p.LogOf(c.leader, w.TaskID), w.ID)
	case translate.DeleteWebhooks:
		err = engine.Delete(c.ctx, p.LogOf(c.leader, w.TaskID), w.ID)
		if c.call.TaskExists && task.KindOf(err) == task.TaskNotFound {
			err = nil // it was deleted before (A2A 1.0 §3.1.10)
		}
	}
	return hooks, err
}

// accept returns what is done when the life-cycle accepts a command: a task that is started gets the webhooks that were
// set for it before, and a webhook that comes with the command is set. It returns nil where there is nothing to do.
func (c *conversation) accept(p *partner.Partner) func(log string, at task.At) (undo func(), err error) {
	var steps []step
	if c.h.Guard.Mode == identity.Off && c.call.Message.Command == task.Start {
		steps = append(steps, c.adopt(p))
	}
	if c.call.Webhook != nil {
		steps = append(steps, c.useWebhook)
	}
	if steps == nil {
		return nil
	}
	return func(log string, at task.At) (func(), error) {
		var undos []func(context.Context) error
		undo := func() {
			ctx := context.WithoutCancel(c.ctx) // even if the caller has left
			for _, f := range slices.Backward(undos) {
				if err := f(ctx); err != nil {
					c.h.Log.Warn("a command failed, but the webhook that it set could not be removed",
						"task", c.call.Message.TaskID, "leader", c.leader, "error", err)
				}
			}
		}
		for _, take := range steps {
			f, err := take(log, at)
			if err != nil {
				undo()
				return nil, err
			}
			undos = append(undos, f)
		}
		return undo, nil
	}
}

// step is one change of a task's webhooks. log is the name of the task's log.
type step func(log string, at task.At) (undo func(context.Context) error, err error)

// adopt gives a task that is being started the webhooks that were set for it before it was known whose it would be,
// where nobody verifies who calls.
func (c *conversation) adopt(p *partner.Partner) step {
	return func(log string, _ task.At) (func(context.Context) error, error) {
		return c.h.Webhooks().Move(c.ctx, p.LogOf(partner.Anyone, c.call.Message.TaskID), log)
	}
}

// useWebhook has the webhook told of the task that a command starts or continues: one that comes with it is created,
// or replaces the one of its id; one that it names must exist, and is narrowed to the states that it names. A start
// that is repeated changes nothing.
func (c *conversation) useWebhook(log string, at task.At) (func(context.Context) error, error) {
	w, engine := *c.call.Webhook, c.h.Webhooks()
	if w.URL == "" {
		hooks, err := engine.Get(c.ctx, log, w.ID)
		if err != nil || at.Exists {
			return func(context.Context) error { return nil }, err
		}
		// It is told in the dialect that the task is started in: versions of AIP set it by the same words.
		hooks[0].Dialect, hooks[0].Confirm, hooks[0].States = w.Dialect, w.Confirm, w.States
		w = hooks[0]
	}
	return engine.Put(c.ctx, log, w, notify.At{Seq: at.Seq, Ended: at.Ended})
}
