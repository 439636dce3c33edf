// SPDX-License-Identifier: Apache-2.0

package node

import (
	"log/slog"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// Driver says the place of tasks, their durability, and their retention.
type Driver interface {
	// Location returns the place of the store. Drivers with one name and one location share one store. It is empty if the
	// driver has one store in a process.
	Location() string

	// Open opens the store. It outlives the configuration, and so uses nothing of it: log is the one of the process, and
	// the settings of later ones come by replay.Store.Configure. Those of this one come so, too, when it is in force:
	// until then the store drops no log to make room. Open is not called while the store of this location is open.
	Open(log *slog.Logger) (replay.Store, error)

	// Settings returns the settings of the store while this configuration is the newest.
	Settings() replay.Settings
}

// SharedDriver is a Driver whose stores several processes share. Its Open is not called.
type SharedDriver interface {
	Driver

	// Continues returns an error if a store, open by this driver's settings, cannot be used by a newer driver of the same
	// location.
	Continues(newer Driver) error

	// Join takes part in the sharing, and drops no more than Open. It does not wait for the others, nor for their servers:
	// Open of the shards does. Waiting does not mend its error.
	Join(log *slog.Logger, host SharedHost) (SharedStore, error)
}

// Store is a driver with its name.
type Store struct {
	Driver
	Name string // of the driver
}

// key is equal for configurations that use the same store.
func (s Store) key() string { return s.Name + ":" + s.Location() }

// openShards opens the store of the node, and returns its shards.
func (n *Node) openShards(log *slog.Logger) (*shard.Set, error) {
	if d, ok := n.Store.Driver.(SharedDriver); ok {
		shared, err := d.Join(log, n)
		if err != nil {
			return nil, err
		}
		n.Storage, n.Shared = shared, shared
		return shard.Join(shared, log), nil
	}
	store, err := n.Store.Open(log)
	if err != nil {
		return nil, err
	}
	n.Storage = store
	return shard.One(store), nil
}

// leave ends the part of this process in a shared store.
func (n *Node) leave() error {
	if n.Shared == nil {
		return nil
	}
	return n.Shared.Close()
}
