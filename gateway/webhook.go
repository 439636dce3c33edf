// SPDX-License-Identifier: Apache-2.0

package gateway

import (
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
		if x.leader, err = p.LeaderOf(x.ctx, w.TaskID, identity.Claimable); err != nil {
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
