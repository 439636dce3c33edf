// SPDX-License-Identifier: Apache-2.0

// Package jetstream has the stores of several gateways that share their logs over streams of NATS JetStream: one stream
// for each shard. Consensus, replication and order are the streams'.
//
// # Owners
//
// The owner's record of a shard is one message of its stream; its sequence is the epoch. Who takes a shard over writes
// the next record, and expects the sequence of the one that it read (Streams.Claim). Each batch of the owner expects
// the sequence of its own record. So the first record of another owner ends all that the former one writes: the server
// refuses it, with the code 10071 on one replica and 10164 on several. A new leader of a stream takes writes when it
// has applied all that the leader before had, and no write whose expectation a write under way may change. So the fence
// holds over a change of leaders. A read may be answered by a leader that was deposed, so an owner
// that is in doubt writes a batch that is empty but for its fence (Store.Confirm).
//
// # Appends
//
// The appends of a moment are one atomic batch, with one round trip and one sync. While it is under way others gather
// for the next one; a batch has one append of each log, so each is checked against what its log is. The last message
// of a batch has its id, and expects the message with the id of the batch before. So a batch whose acknowledgement is
// lost is sent again, and written once, and whether it was written is read back by its id. The store answers the
// writers when it knows the outcome, but for one case: after Config.GiveUp they get ErrUnavailable, which says that
// the append may turn out to be written, as replay.ErrUnavailable always does. Then the store takes no other appends
// until it knows the outcome. Who waits for an append, under the lock of a task, may have to read next: so a read
// that is not answered is given up after as long at most, soon where the store takes no appends, and at once after
// another one was.
//
// An append is one message with its records, and one with the head of its log, which makes them visible. What is larger
// than the server's max_payload goes in parts: messages right before the one that has their number, in the same batch,
// found by their sequences. Records that fill more than a batch are written before it; no reader looks at them before
// the head says that they are there.
//
// A log that is dropped gets an empty head, and is then purged up to the sequence of that head: a purge that comes late
// takes nothing of a log with the same name that was begun since. The head of a log says after which sequence it began,
// so what a purge that was never made has left of a former log is not taken for its own. What is trimmed is purged up
// to the sequence of the first message that is kept.
//
// # The index
//
// The owner keeps the heads of all logs in memory (replay.Index), with their lists, times and metadata, and reads them
// once, when it has claimed the shard, from any replica: the leader says at the end which logs there are. Records are
// in memory only of logs that are being read, the last ones.
//
// # Readers
//
// The readers of a log share what this process knows of it (followed). Where the process owns the shard, the append
// itself wakes them. Elsewhere they get what the stream republishes, which may lose messages: a head whose records
// did not arrive has them read from the stream, and a head that did not arrive is found when the leader is asked for
// it, every few seconds. Readers of Streams.Logs go on from one to the other when a shard moves: a process that gets
// it has them read on with the heads that it has read, since nothing tells them later what they have missed. Records
// are read from any replica; the head says which ones there must be, so those that a replica does not have yet are
// read from the leader. Heads are read from the leader alone, so that a caller that goes from one node to another
// finds what it has done.
//
// The lists of a shard are its owner's: Logs.Listed fails with ErrUnavailable elsewhere, and the owner must be asked.
package jetstream
