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
func (x *exchange) webhooks(p *partner.Partner) (hooks []task.Webhook, err error) {
	w, engine := x.call.Webhook, x.g.webhooks
	if x.leader == "" { // identity is off, and the request does not say who sends it
		if x.leader, err = p.LeaderOf(x.ctx, w.TaskID); err != nil {
			return nil, err
		}
	}
	if x.call.TaskExists {
		err = p.Look(x.ctx, x.leader, w.TaskID, func(_ string, at task.At) error {
			if !at.Exists {
				return partner.NotFound(w.TaskID)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	switch x.call.Op {
	case translate.SetWebhook:
		err = p.Watch(x.ctx, x.leader, w.TaskID, func(log string, at task.At) error {
			set, err := engine.Set(x.ctx, log, *w, notify.At{Seq: at.Seq, Ended: at.Ended, Named: !x.call.Strict})
			hooks = []task.Webhook{set}
			return err
		})
	case translate.GetWebhooks:
		hooks, err = engine.Get(x.ctx, p.LogOf(x.leader, w.TaskID), w.ID)
	case translate.DeleteWebhooks:
		err = engine.Delete(x.ctx, p.LogOf(x.leader, w.TaskID), w.ID)
		if x.call.TaskExists && task.KindOf(err) == task.TaskNotFound {
			err = nil // it was deleted before (A2A 1.0 §3.1.10)
		}
	}
	return hooks, err
}

// accept returns what is done when the life-cycle accepts a command: a task that is started gets the webhooks that were
// set for it before, and a webhook that comes with the command is set. It returns nil where there is nothing to do.
func (x *exchange) accept(p *partner.Partner) func(log string, at task.At) (undo func(), err error) {
	var steps []step
	if x.g.config.Guard.Mode == identity.Off && x.call.Message.Command == task.Start {
		steps = append(steps, x.adopt(p))
	}
	if x.call.Webhook != nil {
		steps = append(steps, x.useWebhook)
	}
	if steps == nil {
		return nil
	}
	return func(log string, at task.At) (func(), error) {
		var undos []func(context.Context) error
		undo := func() {
			ctx := context.WithoutCancel(x.ctx) // even if the caller has left
			for _, f := range slices.Backward(undos) {
				if err := f(ctx); err != nil {
					x.g.config.Log.Warn("a command failed, but the webhook that it set could not be removed",
						"task", x.call.Message.TaskID, "leader", x.leader, "error", err)
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
func (x *exchange) adopt(p *partner.Partner) step {
	return func(log string, _ task.At) (func(context.Context) error, error) {
		return x.g.webhooks.Move(x.ctx, p.LogOf(partner.Anyone, x.call.Message.TaskID), log)
	}
}

// useWebhook has the webhook told of the task that a command starts or continues: one that comes with it is created,
// or replaces the one of its id; one that it names must exist, and is narrowed to the states that it names. A start
// that is repeated changes nothing.
func (x *exchange) useWebhook(log string, at task.At) (func(context.Context) error, error) {
	w, engine := *x.call.Webhook, x.g.webhooks
	if w.URL == "" {
		hooks, err := engine.Get(x.ctx, log, w.ID)
		if err != nil || at.Exists {
			return func(context.Context) error { return nil }, err
		}
		// It is told in the dialect that the task is started in: versions of AIP set it by the same words.
		hooks[0].Dialect, hooks[0].Confirm, hooks[0].States = w.Dialect, w.Confirm, w.States
		w = hooks[0]
	}
	return engine.Put(x.ctx, log, w, notify.At{Seq: at.Seq, Ended: at.Ended})
}
