// SPDX-License-Identifier: Apache-2.0

// Package node is what a process of the gateway is, whatever hosts it: the state that its configurations share, an open
// store with what works on its shards, and the part of the process in a store that several share. It knows no Caddy,
// and no configuration as it is written: what has started of it are Partners.
//
//	configuration ---> Process <--- configuration    calls, streams, meters: they continue over a reload
//	      |               |               |
//	      +------------> Node <-----------+          tasks, webhooks, groups, quotas, AUN: on the shards it owns
//	                      |
//	                  shard.Set
//	                      |
//	                   Joining ---> Member           a store that is shared: tried until it can be reached
//
// A host makes one Process, and a Configuration of it for each of its own. Open opens the store, or takes over the
// open one, and Start puts the Settings in force: plain values, with the Partners and their gateways. A Node is opened
// by the first configuration over its store, and closed after the last one, so it logs to the process.
package node
