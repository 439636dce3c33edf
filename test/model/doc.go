// SPDX-License-Identifier: Apache-2.0

// Package model has the rules by which several nodes share a store, as models in Promela, and a test in which spin
// checks them: it goes through every order of all steps, for three nodes and two tasks. Each model has mistakes that a
// word switches on; the test has spin find each, so that a property that no mistake breaks is noticed.
//
// # Two models
//
// append.pml is what an owner of a shard writes to its stream. turn.pml is what it does outside of it: a start is sent
// to the agent. Both together are too large. They are apart where the code is apart: the life-cycle sees of the store
// that an append was done, was refused by the fence, or is not answered yet. append.pml shows that this is so, however
// requests and answers are lost or late: a command is appended at most once, an acknowledged one stays, and only one
// owner appends in an epoch. So turn.pml may take an append for one step that is refused in another epoch. That the
// process dies, or loses its shard, while an answer is lost is there as well: it makes no more steps, before or after
// the append.
//
// In both, any node may take the shard over at any time. So nothing that they show rests on heartbeats, which only say
// when it is wise to do so. Each node owns the shard once, because one that owns it again remembers nothing; a process
// that dies is one that does nothing more. Nodes and tasks are alike, so it is enough that they begin in their order.
//
// # What is assumed
//
//   - A stream does one thing after the other, and loses nothing that it has acknowledged: that is NATS' to keep, with
//     sync_interval: always. The owner's record is read as the leader has it.
//   - A message to an agent arrives soon, or never. Agents are asked for a start (resend after) for longer than a
//     lease, with what a clock may lose in it, and such a message together. With less, a start may run twice.
//   - The lease of an owner counts from before it asked for the owner's record, and found itself in it. A lease that
//     is renewed by heartbeats alone is not enough: a node that is about to claim the shard may not have seen them yet,
//     and the owner goes on.
//
// # What remains
//
// A process may be stopped between the look at its lease and the act that follows, until the lease is over, another
// node owns the shard, and that one has asked the agent for the start long enough. If it goes on then, the start runs
// twice. STOPPED in turn.pml is that case. Nothing else makes a start run twice.
//
// # Names
//
//	the models                  the code
//	owner, epoch                cluster.Owner: the record in a stream; the sequence of it is the fence
//	claim                       cluster.Streams.Claim
//	load, find                  opening the engines of a shard: shard.Each, partner's recovery
//	head, expected              the head of a log, and what an append expects of it: replay.Head.Revision
//	now, late, doubt            an append that waits for its acknowledgement, and is sent again
//	forget                      replay.ErrFenced: the engines of the shard close
//	check, left, holds          cluster: the checks of a shard's owner; replay.HeldBy, the look at the lease
//	DROP, purge                 replay.Store.Drop: a tombstone, then a purge up to its sequence
//	QUEUE, SEND, ASK, RESEND    upstream: a turn that is queued, sent, asked for; Config.ResendAfter
package model
