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

// webhooks carries out an operation on the webhooks of a task. They belong to the task's Leader, also before there is a
// task.
func (x *exchange) webhooks(p *partner.Partner) (hooks []task.Webhook, err error) {
	w, engine := x.call.Webhook, x.g.webhooks
	if x.leader == "" { // identity is off, and the request names no sender
		if x.leader, err = p.LeaderOf(x.ctx, w.TaskID); err != nil {
			return nil, err
		}
	}
	if x.call.TaskExists {
		if err = p.CheckExists(x.ctx, x.leader, w.TaskID); err != nil {
			return nil, err
		}
	}
	switch x.call.Op {
	case translate.SetWebhook:
		err = p.Watch(x.ctx, x.leader, w.TaskID, func(log string, at task.Position) error {
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

// accept returns what to do when the life-cycle accepts a command: a started task gets the webhooks that were set for
// it before, and the webhook in the command is set. It returns nil if there is nothing to do.
func (x *exchange) accept(p *partner.Partner) func(log string, at task.Position) (undo func(), err error) {
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
	return func(log string, at task.Position) (func(), error) {
		var undos []func(context.Context) error
		undo := func() {
			ctx := context.WithoutCancel(x.ctx) // also after the caller has left
			for _, f := range slices.Backward(undos) {
				if err := f(ctx); err != nil {
					x.g.config.Log.Warn("a command failed, and the webhook that it had set could not be removed",
						"task", x.call.Message.TaskID, "leader", x.leader, "error", err)
				}
			}
		}
		for _, do := range steps {
			f, err := do(log, at)
			if err != nil {
				undo()
				return nil, err
			}
			undos = append(undos, f)
		}
		return undo, nil
	}
}

// step is a change of a task's webhooks, and returns how to undo it. log is the name of the task's log.
type step func(log string, at task.Position) (undo func(context.Context) error, err error)

// adopt gives a started task the webhooks that were set for its id while its Leader was not known, which happens only
// with identity off.
func (x *exchange) adopt(p *partner.Partner) step {
	return func(log string, _ task.Position) (func(context.Context) error, error) {
		return x.g.webhooks.Move(x.ctx, p.LogOf(partner.Anyone, x.call.Message.TaskID), log)
	}
}

// useWebhook sets the webhook of a command that starts or continues a task. A webhook with a URL is created, or
// replaces the one of its id. A webhook without a URL must exist, and is narrowed to the states that the command names;
// a repeated start leaves it as it is.
func (x *exchange) useWebhook(log string, at task.Position) (func(context.Context) error, error) {
	w, engine := *x.call.Webhook, x.g.webhooks
	if w.URL == "" {
		hooks, err := engine.Get(x.ctx, log, w.ID)
		if err != nil || at.Exists {
			return func(context.Context) error { return nil }, err
		}
		// It is notified in the dialect of the start: the versions of AIP share the method that has set it.
		hooks[0].Dialect, hooks[0].Confirm, hooks[0].States = w.Dialect, w.Confirm, w.States
		w = hooks[0]
	}
	return engine.Put(x.ctx, log, w, notify.At{Seq: at.Seq, Ended: at.Ended})
}
