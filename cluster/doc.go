// SPDX-License-Identifier: Apache-2.0

// Package cluster has several processes, its nodes, share the shards of one store: it keeps track of living nodes and
// of the owners of shards, and carries calls between nodes. It knows no tasks.
//
// A node is its name and its incarnation. The incarnation is new with each start. It writes its record to the Registry
// every third of a lease. Its lease runs from the moment before it sent a record, once a quorum has the record, by a
// clock that counts suspension. Other nodes declare it gone after they have seen nothing new of it for a lease and a
// margin, by their own clock. They decide only right after a write of a record of their own, sent after that time; so
// while no node can write to the Registry, no node is gone. After a lapse of its own lease a node gives the others the
// time of two tries from its renewal on, since they could not renew theirs either. The Registry is asked once more
// before a node is declared gone, at its leader: notices of records may be lost.
//
// All this is liveness alone. The owner's record in the stream of a shard keeps two nodes from writing to one shard:
// each append expects it (Streams.Claim). A node acts outside its store only while Held allows it: its lease holds, and
// has not lapsed since the last check of its ownership, and this check was less than a lease ago. So a node claiming a
// shard, without news yet of the owner's return, needs to wait for no longer than a lease before it repeats messages
// the owner may have sent: upstream asks the agent meanwhile (package model shows the consequences if it did not).
// After a lease has lapsed, the store confirms by a write that it is the owner's before any act. An owner unable to
// renew its lease keeps its shards: it only does not act.
//
// All nodes compute the same owner for each shard from the living nodes (assign): rendezvous hashing with an equal
// share for each node, so a node coming or going moves few shards. After failing to claim a shard for some leases, a
// node refuses the shard in its record, and is left out for it until a while later. A shard is claimed when its record
// names no node, or a gone one. A misplaced shard is released: its engines close, the store closes, and the record then
// names no node; so its next owner need not wait for a lease. A node releases one shard at a time, and the next one
// when the first has an owner. The shards of a node that was started again under its name can be claimed when the lease
// of its former incarnation cannot hold any more: the former process may still run, on a machine cut off.
//
// So each node knows which shards it would own if one other node died (standbys). It has their Streams keep ready what
// a claim needs (Streams.StandBy), and likewise for those it is to own while others hold them. A node stands by for as
// many shards as it owns, about, and no message between nodes is needed for it.
//
// Calls go over the Network. It may lose messages but not reorder them. A call is not sent twice: the caller pings the
// node working on it, and a node without the call reports it as unknown. Then, and when the node is gone, or silent,
// the call fails with a MovedError; it records whether the node may have begun. The caller decides whether to ask
// again: commands are known again by their ids. All of a body but its first bytes goes in parts, as far as granted by
// the receiver, so neither side holds more than it has counted. A service counts the memory of its calls itself, before
// they hold it, or leaves it to the cluster. The cluster bounds it. Each service has a bound of calls of its own: a
// full one, such as the bound of Leaders' calls, leaves the others theirs.
//
// No other room is called under the mutex of a Cluster, but the log of the process. Engines ask other nodes under their
// own locks, and need this mutex for it; so does the goroutine receiving the nodes' answers. So Busy, the drivers and
// the services are called without it, and findings made under it are checked again. A caller may hold any lock of an
// earlier level. Package lockorder has the levels; tests panic if a lock is taken in another order.
//
// A shard, as its owner sees it:
//
//	record without a node,       claim                     lease lapses
//	or with a gone one     --------------->  owned, acts  -------------->  owned, does not act
//	        ^                                |         |  <--------------          |
//	        |                     misplaced  |         |     confirmed             |
//	        |                                v         |                           |
//	        +----------------------------  releasing   +--- another node claims ---+
//	          engines and store closed                              v
//	                                                         fenced, closed
//
// The drivers, over NATS, are in cluster/natsdriver. The calls of Leaders, handed to the owner of their shard, are in
// cluster/handover.
package cluster
