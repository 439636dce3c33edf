// SPDX-License-Identifier: Apache-2.0

// Package cluster has several processes, its nodes, share the shards of one store: who lives, who owns which shard, and
// how a node asks another one. It knows no tasks.
//
// A node is its name and its incarnation, which is new with each start. It writes its record to the Registry every
// third of a lease. Its lease runs from before it sent a record that a quorum has, by a clock that counts suspension.
// Other nodes declare it gone after they have seen nothing new of it for a lease and a margin, by their own clock. They
// decide only right after a record of their own was written, which was sent after that time; so while no node can write
// to the Registry, no node is gone. A node whose own lease had lapsed gives the others the time of two tries from its
// renewal on, since they could not renew theirs either. The Registry is asked once more before a node is declared gone,
// as its leader has it: notices of records may be lost.
//
// That is liveness alone. What keeps two nodes from writing to one shard is the owner's record in the stream of the
// shard: each append expects it (Streams.Claim). A node acts outside its store only while Held says so: its lease
// holds, and has not lapsed since its ownership was checked, which was less than a lease ago. So a node that claims a
// shard without having heard yet that the owner is back needs to wait for no longer than a lease before it sends
// again what the owner may have sent: upstream asks the agent meanwhile (package model shows what follows if it did
// not). After a lease has lapsed, the store confirms by a write that it is the owner's before anything is acted on.
// An owner that cannot renew its lease keeps its shards: it only does not act.
//
// All nodes compute the same owner for each shard from the nodes that live (assign): rendezvous hashing with an equal
// share for each node, so that a node which comes or goes moves few shards. A node that fails to claim a shard for
// some leases says in its record that it refuses the shard, and is left out for it until a while later. A shard is
// claimed when its record names no node, or one that is gone. A shard that should be elsewhere is released: its
// engines close, the store closes, and the record then names no node; so its next owner need not wait for a lease. A
// node releases one shard at a time, and the next one when that has an owner. Shards of a name whose incarnation was
// replaced can be claimed when the lease of the former one cannot hold any more, because a former process may still
// run on a machine that is cut off.
//
// Calls go over the Network, which may lose messages but not reorder them. A call is not sent twice: who asks pings the
// node that works on it, and a node that does not know the call says so. Then, and when the node is gone, or silent,
// the call fails with a MovedError, which says whether the node may have begun. Who asks decides whether it asks again:
// commands are known again by their ids. All of a body but its first bytes goes in parts, as far as the receiver has
// granted, so that neither side holds more than it has counted. A service counts what its calls hold itself, before
// they do, or leaves it to the cluster, which bounds it. Each service has a bound of calls of its own: one that is
// full, such as that of Leaders' calls, leaves the others theirs.
//
// No other room is called under the mutex of a Cluster, but the log of the process. Engines ask other nodes under their
// own locks, and need this mutex for it; so does the goroutine that receives what nodes answer. So Busy, the drivers
// and the services are called without it, and what was found out under it is looked at again. A caller may hold any
// lock of an earlier level. Package lockorder has the levels; tests panic where a lock is taken in another order.
//
// The drivers, over NATS, are in cluster/natsdriver. The calls of Leaders, which are handed to the owner of their
// shard, are in cluster/handover.
package cluster
