// SPDX-License-Identifier: Apache-2.0

package gateway

import (
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
		err = p.Look(c.ctx, c.leader, w.TaskID, func(_ string, at partner.At) error {
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
		err = p.Watch(c.ctx, c.leader, w.TaskID, func(log string, at partner.At) error {
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

// adopt gives a task that is being started the webhooks that were set for it before anybody knew whose it would be,
// where nobody verifies who calls.
func (c *conversation) adopt(p *partner.Partner) error {
	if c.h.Guard.Mode != identity.Off || c.call.Message.Command != task.Start {
		return nil
	}
	id := c.call.Message.TaskID
	return c.h.Webhooks().Move(c.ctx, p.LogOf(partner.Anyone, id), p.LogOf(c.leader, id))
}

// useWebhook has the webhook told of the task that a command starts or continues: one that comes with it is set
// first; one that it names must exist, and is narrowed to the states that it names. A start that is repeated changes
// nothing.
func (c *conversation) useWebhook(p *partner.Partner) error {
	w, engine := c.call.Webhook, c.h.Webhooks()
	return p.Watch(c.ctx, c.leader, w.TaskID, func(log string, at partner.At) error {
		switch {
		case w.URL != "":
			_, err := engine.Set(c.ctx, log, *w, notify.At{Seq: at.Seq, Ended: at.Ended, Named: !c.call.Strict})
			return err
		case at.Exists:
			_, err := engine.Get(c.ctx, log, w.ID)
			return err
		}
		return c.narrow(engine, log, at)
	})
}

// narrow sets the states that a webhook is told of, and tells it in the dialect that the task is started in: versions
// of AIP set it by the same words.
func (c *conversation) narrow(engine *notify.Engine, log string, at partner.At) error {
	w := c.call.Webhook
	hooks, err := engine.Get(c.ctx, log, w.ID)
	if err != nil {
		return err
	}
	if hooks[0].Dialect == w.Dialect {
		return engine.Narrow(c.ctx, log, w.ID, w.States)
	}
	set := hooks[0]
	set.Dialect, set.States = w.Dialect, w.States
	_, err = engine.Set(c.ctx, log, set, notify.At{Seq: at.Seq, Ended: at.Ended, Named: true})
	return err
}
