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

// leaderOf returns the Leader of a task by its id alone, which is for callers that are not identified.
func (g *Gateway) leaderOf(ctx context.Context, taskID string) (leader string, err error) {
	leader = partner.Anyone
	for o := range g.owned.All() {
		if leader, err = o.partner.LeaderOf(ctx, taskID, identity.Claimable); err != nil || leader != partner.Anyone {
			return leader, err
		}
	}
	return leader, nil
}

// webhooks carries out an operation on the webhooks of a task. They belong to the task's Leader, also before there is a
// task.
func (x *exchange) webhooks() (hooks []task.Webhook, err error) {
	w, p, engine := x.call.Webhook, x.owned.partner, x.owned.webhooks
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
