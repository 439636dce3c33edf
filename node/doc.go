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
// open one, and Start takes the Settings: plain values, with the Partners and their gateways. A Node is opened
// by the first configuration over its store, and closed after the last one, so it logs to the process.
//
// A host starts the parts of a configuration one after another, and stops them again if one cannot start. A
// configuration in force for that moment would do harm: smaller limits drop tasks, webhooks go to Leaders that are
// revoked, streams end. So one configuration is in force at a time, and the next one waits after Start until the host
// drains that, which it does when all of the next one has started. Without one before, it does not wait. In this order:
//
//  1. Start does all that can fail. The one before is in force, alone. Calls of the new one wait.
//  2. Drain of the one before puts the new one in force. Its roots and its sources judge the Leaders first, since the
//     next step lets webhooks go on. Then its limits hold for the store, its Partners get the tasks, the process shows
//     its agents, and its own work and its calls begin.
//  3. The streams of the one before end, one by one: what connects again finds the new one in force. Its Stop ends the
//     other streams that the new one refuses.
//
// A configuration that ends before step 2 has changed nothing. Its calls are refused, and can be sent again.
package node
