// SPDX-License-Identifier: Apache-2.0

// Package node is what a process of the gateway is, whatever hosts it: the state that its configurations share, and its
// part in a store that several processes share. It knows no Caddy, and no configuration as it is written.
//
//	configuration ──▶ Process ◀── configuration      calls, streams, meters: they continue over a reload
//	                     │
//	                  Joining ──▶ Member             a store that is shared: tried until it can be reached
//	                     │
//	                 shard.Set                       the shards that this process owns
//
// A host makes one Process, and hands it to everything that it makes of its configurations. A store is opened by the
// first configuration that uses it, and closed after the last one, so a Joining outlives configurations, too.
package node
