// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/replay"
)

// SharedHost is what a SharedStore needs to know of this process. Its methods may be called by any number of goroutines
// at once.
type SharedHost interface {
	// Gateway returns the gateway of a Partner in the configuration in force, by its name; nil for none.
	Gateway(partner string) *gateway.Gateway
	// PartnerNames returns the names of the Partners in that configuration.
	PartnerNames() []string
	// Busy returns why another process should not take over a shard of this one now; empty if it may.
	Busy(shard int) string
	// Exiting is done when the process is about to exit.
	Exiting() context.Context
}

// SharedStore is the part of this process in a shared store.
type SharedStore interface {
	replay.Shards
	Storage

	// Owners hands calls to the owners of shards.
	Owners() gateway.Owners

	// HandOver has the other processes take over all shards of this one, and returns when they have, when no other one
	// can, or when the context is done. The process gets none after that.
	HandOver(ctx context.Context)

	// Close leaves the others. The shards were closed before.
	Close() error

	// Move has a process own a shard, from now on and while it lives. The error is one of package task.
	Move(ctx context.Context, shard int, to string) error

	// Drain has a process give its shards to the others, and take none, or ends that. An empty name is that of this
	// process. It returns the name.
	Drain(ctx context.Context, node string, drain bool) (string, error)
}

// Storage is what concerns the store as a whole, as replay.Store has it.
type Storage interface {
	Writable() error
	Configure(replay.Settings)
}
