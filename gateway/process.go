// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/assignee"
	"github.com/aip-gateway/aip-gateway/upstream/auntransport"
	"github.com/aip-gateway/aip-gateway/upstream/callback"
)

// Process is the state that all gateways of a process share, over all configurations. The zero value is ready for use.
// It must not be copied.
type Process struct {
	Streams   quota.Counter   // open streams
	Memory    quota.Counter   // bytes of memory that callers hold
	Callbacks callback.Server // receives push notifications of agents
	Assignees assignee.Hub    // the tasks of agents that connect to the gateway

	AUN auntransport.Pool // the gateway's own connections to AUN

	workers workers
	open    openStreams

	mu     sync.Mutex
	slots  map[slotsKey]*upstream.Slots // by agent. Entries are small and are kept
	meters map[string]*Meter            // likewise
}

type slotsKey struct {
	url            string
	max, perLeader int
}

// slotsOf returns the slots of an agent with its limits. Configurations share them, so that requests which were sent
// before a reload count after it.
func (p *Process) slotsOf(url string, c *AgentConfig) *upstream.Slots {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := slotsKey{url, c.MaxRequests, c.MaxPerLeader}
	if p.slots == nil {
		p.slots = make(map[slotsKey]*upstream.Slots)
	}
	if p.slots[key] == nil {
		p.slots[key] = upstream.NewSlots(c.MaxRequests, c.MaxPerLeader)
	}
	return p.slots[key]
}

// Tasks is the state that all gateways over one store share: the life-cycle of tasks, and their webhooks. It outlives
// configurations.
type Tasks struct {
	Store    replay.Store
	Engine   *partner.Engine
	Webhooks *notify.Engine
}

// OpenTasks takes up the tasks of a store. Tasks that an earlier process has left are continued as soon as a gateway is
// registered for their Partner. The store belongs to Tasks then, and is closed after an error, too. The tracer records
// the turns that have no caller, because they are resumed after a restart; nil for none. The logger is that of
// webhooks.
func OpenTasks(ctx context.Context, store replay.Store, tracer trace.TracerProvider, log *slog.Logger) (*Tasks, error) {
	webhooks, err := notify.Open(ctx, store, log)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	engine, err := partner.Open(ctx, store, partner.Options{Watcher: webhooks, Tracing: tracer})
	if err != nil {
		webhooks.Close()
		return nil, errors.Join(err, store.Close())
	}
	return &Tasks{store, engine, webhooks}, nil
}

// Close stops the work on all tasks, which the next process continues, and closes the store.
func (t *Tasks) Close() error {
	t.Engine.Close()
	t.Webhooks.Close()
	return t.Store.Close()
}
