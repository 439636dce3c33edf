// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/shard"
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
	Join(log *slog.Logger, host node.SharedHost) (SharedStore, error)
}

// SharedStore is the part of a process in a store that several share.
type SharedStore interface {
	node.SharedStore

	// Report returns the processes that this one knows, and, unless it is brief, what they and the store say when they are
	// asked.
	Report(ctx context.Context, brief bool) (*adminapi.ClusterReport, error)
}

// joinedStore is a SharedStore of a clusterMember.
type joinedStore struct{ *node.Joining }

// Report implements SharedStore.
func (s joinedStore) Report(ctx context.Context, brief bool) (*adminapi.ClusterReport, error) {
	m, err := s.Member()
	if err != nil {
		return nil, err
	}
	return m.(*clusterMember).Report(ctx, brief)
}

// sample implements sampledStore.
func (s joinedStore) sample(out samples) {
	if m, err := s.Member(); err == nil {
		m.(*clusterMember).sample(out)
	}
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

// openShards opens the store of the driver, and returns its shards.
func (o *openStore) openShards(log *slog.Logger) (*shard.Set, error) {
	if d, ok := o.driver.(SharedDriver); ok {
		shared, err := d.Join(log, o)
		if err != nil {
			return nil, err
		}
		o.store, o.shared = shared, shared
		return shard.Join(shared, log), nil
	}
	store, err := o.driver.Open(log)
	if err != nil {
		return nil, err
	}
	o.store = store
	return shard.One(store), nil
}

// Gateway implements node.SharedHost.
func (o *openStore) Gateway(partner string) *gateway.Gateway {
	if p := o.partners().Named(partner); p != nil {
		return p.Gateway
	}
	return nil
}

// Partners implements node.SharedHost.
func (o *openStore) Partners() (names []string) {
	for p := range o.partners().Each() {
		names = append(names, p.Name)
	}
	return names
}

// leave ends the part of this process in a store that is shared.
func (o *openStore) leave() error {
	if o.shared == nil {
		return nil
	}
	return o.shared.Close()
}

// Interface guards.
var (
	_ SharedStore     = joinedStore{}
	_ sampledStore    = joinedStore{}
	_ node.SharedHost = (*openStore)(nil)
)
