// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

// accept returns what to do when the life-cycle accepts a command, or nil if there is nothing to do.
func (x *exchange) accept() func(log string, at task.Position) (undo func(), err error) {
	if !x.mayAdopt() && !x.brings() {
		return nil
	}
	return x.accepted
}

// brings reports whether the command comes with something that is done when it is accepted.
func (x *exchange) brings() bool {
	return x.call.Webhook != nil || x.startsInGroup() || x.in.Accept != nil
}

// undoFunc undoes a part of what was done when a command was accepted; nil if nothing is to be undone.
type undoFunc func(context.Context) error

// accepted does what belongs to a command that the life-cycle has accepted, before the command is stored: each part is
// there when the first event is. log is the name of the task's log. undo undoes all of it.
func (x *exchange) accepted(log string, at task.Position) (undo func(), err error) {
	if !x.adopts() && !x.brings() {
		return nil, nil // what follows allocates
	}
	parts := [...]func(log string, at task.Position) (undoFunc, error){x.adopt, x.useWebhook, x.follow, x.inform}
	var undos [len(parts)]undoFunc
	undo = func() {
		for i := range undos {
			x.undo(undos[len(undos)-1-i])
		}
	}
	for i, part := range parts {
		done, err := part(log, at)
		if err != nil {
			undo()
			return nil, err
		}
		undos[i] = done
	}
	return undo, nil
}

// undo undoes a part, also after the caller has left.
func (x *exchange) undo(f undoFunc) {
	if f == nil {
		return
	}
	if err := f(context.WithoutCancel(x.ctx)); err != nil {
		x.g.config.Log.Warn("a command failed, and what it had set before could not be removed",
			"task", x.call.Message.TaskID, "leader", x.leader, "error", err)
	}
}

// inform has the front store what it keeps of a task that is started.
func (x *exchange) inform(log string, at task.Position) (undoFunc, error) {
	if x.in.Accept == nil || at.Exists || x.call.Message.Command != task.Start {
		return nil, nil
	}
	return x.in.Accept(x.ctx, log)
}

// mayAdopt reports whether the command may start a task for which webhooks were set while its Leader was not known,
// which happens only with identity off.
func (x *exchange) mayAdopt() bool {
	return x.g.config.Guard.Mode == identity.Off && x.call.Message.Command == task.Start && identity.Claimable(x.leader)
}

// adopts reports whether there are webhooks that the command may give to the task.
func (x *exchange) adopts() bool { return x.unclaimed() != nil }

// unclaimed returns what has the webhooks that the command may give to the task; nil if there are none.
func (x *exchange) unclaimed() *owned {
	if !x.mayAdopt() {
		return nil
	}
	if o := x.g.in(partner.Anyone); o != nil && o.webhooks.Any() {
		return o
	}
	return nil
}

// adopt gives a started task the webhooks that were set for it before. They have its id and no Leader.
func (x *exchange) adopt(log string, _ task.Position) (undoFunc, error) {
	unclaimed := x.unclaimed()
	if unclaimed == nil {
		return nil, nil
	}
	return x.owned.webhooks.Move(x.ctx, unclaimed.webhooks,
		unclaimed.partner.LogOf(partner.Anyone, x.call.Message.TaskID), log)
}

// useWebhook sets the webhook of a command that starts or continues a task. A webhook with a URL is created, or
// replaces the one of its id. A webhook without a URL must exist, and is narrowed to the states that the command names;
// a repeated start leaves it as it is.
func (x *exchange) useWebhook(log string, at task.Position) (undoFunc, error) {
	if x.call.Webhook == nil {
		return nil, nil
	}
	w, engine := *x.call.Webhook, x.owned.webhooks
	if w.URL == "" {
		hooks, err := engine.Get(x.ctx, log, w.ID)
		if err != nil || at.Exists {
			return nil, err
		}
		// It is notified in the dialect of the start: the versions of AIP share the method that has set it.
		hooks[0].Dialect, hooks[0].Confirm, hooks[0].States = w.Dialect, w.Confirm, w.States
		w = hooks[0]
	}
	return engine.Put(x.ctx, log, w, notify.At{Seq: at.Seq, Ended: at.Ended})
}
