// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// Tasks is shared by all gateways over the same shards: the life-cycle of tasks, and their webhooks. It outlives
// configurations.
type Tasks struct {
	set      *shard.Set
	engines  *shard.Each[engines]
	process  *partner.Process
	webhooks *notify.Process
	owners   Owners // of the other shards; nil for none
	leaders  *ask.Service[idOfTask, string]
	claims   *ask.Service[claim, []task.Webhook]
}

// engines work on the tasks of one shard.
type engines struct {
	tasks    *partner.Engine
	webhooks *notify.Engine
	logs     replay.Logs
}

// OpenTasks takes up the tasks of the shards owned by this process now and later. Tasks from an earlier process, or
// from the owner before, are continued as soon as a gateway is registered for their Partner. The tracer records the
// turns without a caller, those resumed after a restart; nil for none. The logger is for webhooks. The set belongs to
// Tasks then, and is closed after an error, too.
func OpenTasks(set *shard.Set, tracer trace.TracerProvider, log *slog.Logger) (*Tasks, error) {
	t := &Tasks{set: set, process: partner.NewProcess(), webhooks: notify.NewProcess(log)}
	t.process.AddAcceptor(t)
	options := partner.Options{Tracing: tracer, Process: t.process}
	var err error
	t.engines, err = shard.Open(set, func(ctx context.Context, _ int, store replay.Store) (*engines, error) {
		webhooks, err := t.webhooks.Open(ctx, store)
		if err != nil {
			return nil, err
		}
		options := options
		options.Watcher = webhooks
		engine, err := partner.Open(ctx, store, options)
		if err != nil {
			webhooks.Close()
			return nil, err
		}
		return &engines{engine, webhooks, store}, nil
	}, func(e *engines) {
		e.tasks.Close()
		e.webhooks.Close()
	})
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	t.leaders = ask.New(set, "leader", t.leaderIn)
	t.claims = ask.New(set, "unclaimed", t.answerClaim)
	return t, nil
}

// Close stops the work on all tasks, for the next process to continue it, and closes the set.
func (t *Tasks) Close() error { return t.set.Close() }

// Configure puts a configuration of webhooks in force.
func (t *Tasks) Configure(c notify.Config) { t.webhooks.Configure(c) }

// Engines returns those of the shards owned by this process.
func (t *Tasks) Engines() (all partner.Engines) {
	for e := range t.engines.All() {
		all = append(all, e.tasks)
	}
	return all
}

// Stays returns the reason why a shard should not move to another process now; empty if it may.
func (t *Tasks) Stays(shard int) string {
	e := t.engines.Of(shard)
	if e == nil {
		return ""
	}
	switch n := e.tasks.Unresumable(); n {
	case 0:
		return ""
	case 1:
		return "an agent works on a turn that no other gateway can resume"
	default:
		return fmt.Sprintf("agents work on %d turns that no other gateway can resume", n)
	}
}

// Webhooks returns those of the shards owned by this process.
func (t *Tasks) Webhooks() (all notify.Engines) {
	for e := range t.engines.All() {
		all = append(all, e.webhooks)
	}
	return all
}

// ShardOf returns the shard of a Leader at a Partner.
func (t *Tasks) ShardOf(name, leader string) int {
	return logname.Shard(t.engines.Count(), name, leader)
}

// Of returns the engines for the tasks of a Leader at a Partner. There is an error if another process owns their shard.
func (t *Tasks) Of(name, leader string) (*partner.Engine, *notify.Engine, error) {
	if e := t.engines.Of(t.ShardOf(name, leader)); e != nil {
		return e.tasks, e.webhooks, nil
	}
	return nil, nil, partner.Moved()
}

// Process returns the shared state of the engines of tasks.
func (t *Tasks) Process() *partner.Process { return t.process }

// Accept implements partner.Acceptor for webhooks.
func (t *Tasks) Accept(
	ctx context.Context, log string, at task.Position, c *partner.Request,
) (partner.Accepted, error) {
	if c.Webhook == nil && !c.Adopt {
		return partner.Accepted{}, nil
	}
	name, leader, _ := logname.Split(log)
	_, webhooks, err := t.Of(name, leader)
	if err != nil {
		return partner.Accepted{}, err
	}
	var from notify.Unclaimed
	if c.Adopt {
		i := t.ShardOf(name, partner.Anyone)
		switch e := t.engines.Of(i); {
		case e == nil:
			from = unclaimed{t, i}
		case e.webhooks.Any():
			from = e.webhooks
		}
	}
	return webhooks.Accept(ctx, from, log, at, c)
}

// owned is a gateway in one shard owned by this process.
type owned struct {
	partner  *partner.Partner
	webhooks *notify.Engine
	logs     replay.Logs
	held     func() error // see replay.HeldBy
}

// Register makes the Partner work on tasks.
func (g *Gateway) Register(t *Tasks) {
	g.tasks = t
	g.owned, _ = shard.Open(t.set, func(_ context.Context, i int, store replay.Store) (*owned, error) {
		e := t.engines.Of(i)
		return &owned{e.tasks.Register(g.config.Partner), e.webhooks, store, replay.HeldBy(store)}, nil // never fails
	}, func(o *owned) { o.partner.Unregister() })
}

// Unregister leaves tasks without a running turn to another gateway of the same Partner, if there is one. Requests in
// flight are not affected. It does nothing if the gateway is not registered.
func (g *Gateway) Unregister() {
	if g.owned != nil {
		g.owned.Close()
	}
}

// ready waits until the Partner is registered.
func (g *Gateway) ready(ctx context.Context) error {
	if g.config.Ready == nil {
		return nil
	}
	return g.config.Ready(ctx)
}

// shardOf returns the shard of a Leader.
func (g *Gateway) shardOf(leader string) int {
	return logname.Shard(g.owned.Count(), g.config.Partner.Name, leader)
}

// logs returns the logs of a Leader's tasks. Another process may own their shard.
func (g *Gateway) logs(leader string) replay.Logs { return g.tasks.set.Logs(g.shardOf(leader)) }

// in returns the gateway in the shard of a Leader; nil if another process owns the shard.
func (g *Gateway) in(leader string) *owned {
	return g.owned.Of(g.shardOf(leader))
}

// owner is in, with an error in place of nil.
func (g *Gateway) owner(leader string) (*owned, error) {
	if o := g.in(leader); o != nil {
		return o, nil
	}
	return nil, partner.Moved()
}
