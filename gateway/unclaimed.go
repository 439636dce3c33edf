// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

// unclaimed are the webhooks of a shard set for tasks while these had no Leader. It implements notify.Unclaimed,
// whichever process owns the shard: a task may be started in another one. It is asked under the lock of the task, so it
// does not wait for an owner; the call does.
type unclaimed struct {
	tasks *Tasks
	shard int
}

// claim is one call of unclaimed. A repeated one changes nothing more.
type claim struct {
	Log     string
	Hooks   []task.Webhook
	Drop    bool
	Restore bool
}

func (u unclaimed) Find(ctx context.Context, log string) ([]task.Webhook, error) {
	return u.tasks.claims.Try(ctx, u.shard, claim{Log: log})
}

func (u unclaimed) Drop(ctx context.Context, log string, hooks []task.Webhook) error {
	_, err := u.tasks.claims.Try(ctx, u.shard, claim{Log: log, Hooks: hooks, Drop: true})
	return err
}

func (u unclaimed) Restore(ctx context.Context, log string, hooks []task.Webhook) error {
	_, err := u.tasks.claims.Try(ctx, u.shard, claim{Log: log, Hooks: hooks, Restore: true})
	return err
}

// answerClaim answers a claim if the shard is owned here.
func (t *Tasks) answerClaim(ctx context.Context, shard int, c claim) ([]task.Webhook, error) {
	e := t.engines.Of(shard)
	switch {
	case e == nil:
		return nil, partner.Moved()
	case c.Drop:
		return nil, e.webhooks.Drop(ctx, c.Log, c.Hooks)
	case c.Restore:
		return nil, e.webhooks.Restore(ctx, c.Log, c.Hooks)
	}
	return e.webhooks.Find(ctx, c.Log)
}

// Interface guards.
var (
	_ notify.Unclaimed = unclaimed{}
	_ notify.Unclaimed = (*notify.Engine)(nil)
)
