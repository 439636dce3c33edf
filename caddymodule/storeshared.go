// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/shard"
)

// SharedDriver is a StoreDriver whose stores several processes share. Its Open is not called.
type SharedDriver interface {
	StoreDriver

	// Continues returns why a store that is open by this driver's settings cannot be used by those of a newer
	// configuration, which has the same location; nil if it can.
	Continues(newer StoreDriver) error

	// LeastResend returns for how long an agent must be asked for a message before the message is sent again: until then a
	// process that owned the task before may still send it.
	LeastResend() time.Duration

	// Join takes part in the sharing. It does not wait for the others, nor for what they share: Open of the shards does.
	// The error is one that waiting does not mend.
	Join(log *slog.Logger, host SharedHost) (SharedStore, error)
}

// SharedHost is what a SharedStore needs to know of this process. Its methods may be called by any number of goroutines
// at once.
type SharedHost interface {
	// Gateway returns the gateway of a Partner in the configuration that is in force, by its name; nil for none.
	Gateway(partner string) *gateway.Gateway
	// Partners returns the names of the Partners in that configuration.
	Partners() []string
	// Busy returns why another process should not take over a shard of this one now; empty if it may.
	Busy(shard int) string
}

// SharedStore is the part of a process in a store that several share.
type SharedStore interface {
	replay.Shards
	storage

	// Owners hands calls to the processes that own shards.
	Owners() gateway.Owners

	// HandOver has the other processes take over all shards of this one, and returns when they have, when no other one
	// can, or when the context is done. The process gets none after that.
	HandOver(ctx context.Context)

	// Close leaves the others. The shards were closed before.
	Close() error

	// Report returns the processes that this one knows, and, unless it is brief, what they and the store say when they are
	// asked.
	Report(ctx context.Context, brief bool) (*adminapi.ClusterReport, error)

	// Move has a process own a shard, from now on and while it lives. The error is one of package task.
	Move(ctx context.Context, shard int, to string) error

	// Drain has a process give its shards to the others, and take none, or ends that. An empty name is that of this
	// process. It returns the name.
	Drain(ctx context.Context, node string, drain bool) (string, error)
}

// storage is what concerns the store as a whole, as replay.Store has it.
type storage interface {
	Writable() error
	Configure(replay.Settings)
}

// checkShared returns an error for a handler that does not go with a store that several processes share.
func (a *App) checkShared(g *Gateway) error {
	d, ok := a.store.(SharedDriver)
	if !ok || g.Agent.Resend.Never {
		return nil
	}
	if after, least := time.Duration(*g.Agent.Resend.After), d.LeastResend(); after < least {
		return fmt.Errorf("agent: resend after is %s, but must be at least %s, twice the lease of the store: until then the "+
			"gateway that owned the task before may still send the message", after, least)
	}
	return nil
}

// openShards opens the store of the driver, with its shards.
func (o *openStore) openShards(log *slog.Logger) error {
	if d, ok := o.driver.(SharedDriver); ok {
		shared, err := d.Join(log, o)
		if err != nil {
			return err
		}
		o.store, o.shared, o.shards = shared, shared, shard.Join(shared, log)
		return nil
	}
	store, err := o.driver.Open(log)
	if err != nil {
		return err
	}
	o.store, o.shards = store, shard.One(store)
	return nil
}

// Gateway implements SharedHost.
func (o *openStore) Gateway(partner string) *gateway.Gateway {
	for _, g := range o.members() {
		if g.name() == partner {
			return g.gateway
		}
	}
	return nil
}

// Partners implements SharedHost.
func (o *openStore) Partners() (names []string) {
	for _, g := range o.members() {
		if !slices.Contains(names, g.name()) {
			names = append(names, g.name())
		}
	}
	return names
}

// Busy implements SharedHost.
func (o *openStore) Busy(shard int) string {
	if tasks := o.working.Load(); tasks != nil {
		return tasks.Stays(shard)
	}
	return ""
}

// owned returns the shards that this process owns now.
func (o *openStore) owned() (list []int) {
	for i := range o.shards.Count() {
		if o.shards.Owns(i) {
			list = append(list, i)
		}
	}
	return list
}

// hasShard reports whether there is a shard of a number, which another process may have sent.
func (o *openStore) hasShard(i int) bool { return i >= 0 && i < o.shards.Count() }

// leave ends the part of this process in a store that is shared.
func (o *openStore) leave() error {
	if o.shared == nil {
		return nil
	}
	return o.shared.Close()
}
