// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

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

// accept returns what to do when the life-cycle accepts a command, or nil if there is nothing to do.
func (x *exchange) accept(p *partner.Partner) func(log string, at task.Position) (undo func(), err error) {
	if !x.mayAdopt() && x.call.Webhook == nil {
		return nil
	}
	x.partner = p
	return x.accepted
}

// mayAdopt reports whether the command may start a task for which webhooks were set while its Leader was not known,
// which happens only with identity off.
func (x *exchange) mayAdopt() bool {
	return x.g.config.Guard.Mode == identity.Off && x.call.Message.Command == task.Start
}

// accepted changes the webhooks of a task whose command the life-cycle has accepted: a started task gets the webhooks
// that were set for it before, and the webhook in the command is set. undo, if it is not nil, undoes that. log is the
// name of the task's log.
func (x *exchange) accepted(log string, at task.Position) (undo func(), err error) {
	adopts := x.mayAdopt() && x.g.webhooks.Any()
	if !adopts && x.call.Webhook == nil {
		return nil, nil
	}
	var undoAdopt, undoUse func(context.Context) error
	undo = func() {
		x.undo(undoUse)
		x.undo(undoAdopt)
	}
	if adopts {
		// Its webhooks have the id and no Leader.
		before := x.partner.LogOf(partner.Anyone, x.call.Message.TaskID)
		if undoAdopt, err = x.g.webhooks.Move(x.ctx, before, log); err != nil {
			return nil, err
		}
	}
	if x.call.Webhook != nil {
		if undoUse, err = x.useWebhook(log, at); err != nil {
			undo()
			return nil, err
		}
	}
	return undo, nil
}

// undo undoes a change of a task's webhooks; f is nil if there was none.
func (x *exchange) undo(f func(context.Context) error) {
	if f == nil {
		return
	}
	if err := f(context.WithoutCancel(x.ctx)); err != nil { // also after the caller has left
		x.g.config.Log.Warn("a command failed, and the webhook that it had set could not be removed",
			"task", x.call.Message.TaskID, "leader", x.leader, "error", err)
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
