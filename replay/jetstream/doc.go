// SPDX-License-Identifier: Apache-2.0

// Package jetstream has the stores of several gateways that share their logs over streams of NATS JetStream: one stream
// for each shard. Consensus, replication and order are the streams'.
//
// # Owners
//
// The owner's record of a shard is one message of its stream; its sequence is the epoch. To take over a shard, a
// gateway writes the next record, and expects the sequence of the record it read (Streams.Claim). The owner is the only
// one to write anything else, and what it writes expects the last sequence of the stream, first that of its own record.
// So the record of another owner ends all writes of the former one: the server refuses them. They are refused together,
// as one atomic batch: a second message coming on its own could expect the very sequence of that record. A new leader
// of a stream takes writes after it has applied everything from the former leader, and counts those under way. So the
// fence holds over a change of leaders. A read may be answered by a deposed leader, so an owner in doubt writes a
// message that is nothing but its fence (Store.Confirm).
//
// # Appends
//
// The appends of a moment are one atomic batch, or one message, with one round trip and one sync. While it is under
// way others gather for the next one; a batch has one append of each log, so each is checked against the state of its
// log. Half of the shards of a process may have a batch under way at once (underway). After a lost acknowledgement
// it is sent again, with the same expectation, so it is written once; and whether it was written is read back at the
// sequences that it must have. The store answers the writers when it knows the outcome, but for one case: after
// Config.GiveUp they get ErrUnavailable. It says, as replay.ErrUnavailable always does, that the append may turn out
// to be written. Then the store takes no other appends until it knows the outcome. A caller waiting for an append,
// under the lock of a task, may have to read next. So an unanswered read is given up after as long at most, soon if
// the store takes no appends, and at once after another one was.
//
// An append is one message with the head of its log, as long as the last records fit into it (inlineBytes). With more,
// all of those become a message of their own, right before the head without them, which makes it visible. So a short
// log is one message, and a long one has many records in each. An owner has the records in heads at hand for the logs
// it has written last, and reads the head of another one before it appends. Anything larger than the server's
// max_payload goes in parts: messages right before the one with their number, in the same batch, found by their
// sequences. An append that fills more than a batch is refused: with max_payload at its default, one of a gigabyte.
//
// A dropped log gets an empty head. A while later it is purged up to the sequence of this head: the purge takes nothing
// of a log with the same name begun since. The head of a log has the sequence its log began after, so the remains of a
// former log, never purged, are not taken for its own. Trimmed records are purged up to the sequence of the first
// message kept.
//
// # The index
//
// The owner keeps the heads of all logs in memory (replay.Index), with their lists, times and metadata, packed but for
// those of the logs written last. Records are in memory only of logs being read, the last ones.
//
// A claim without a standby reads all heads, from any replica. At the end the leader lists the existing logs: a replica
// may still have a head of a dropped and purged log.
//
// # Standbys
//
// A process that may have to claim a shard soon keeps its heads as the owner does (Streams.StandBy, standby). So a
// take-over reads only the heads written since, however much is stored. The old heads are read a page at a time, with
// pauses, and compared with the leader once. The new ones are read every second. One message at each subject is kept,
// so a head is read in its last state only.
//
// All that is not in the heads is a drop whose empty head was purged before the standby read it. The index would then
// have a log that is gone. To use such a log in doubt, an owner would have to ask the leader first, and whatever walks
// over many logs, to count them, would have to ask for each. So the drops are made known instead: before it purges, the
// owner writes a mark, with the greatest sequence of the empty heads to be purged (Store.markDropped), and it purges
// some time after the drop (purgeAfter). A standby whose tail, of some seconds ago, is not before the mark has missed
// none. Its index is exact, and the store open at once. Otherwise the leader's list is compared again: by the standby,
// or at the claim. The owner's record says since when all owners write marks. So a standby of a shard with an owner of
// an older version is never exact. A deposed leader may show an older mark for some seconds. Elsewhere it is found out,
// as it lacks a message that there must be.
//
// A new owner looks a while later for dropped logs left in the stream, as its standby may not know them (Store.tidy).
//
// # Readers
//
// The readers of a log share this process's knowledge of it (followed). If the process owns the shard, the append
// itself wakes them. Elsewhere they get the messages republished by the stream. Some may be lost: if the records of a
// head did not arrive, they are read from the stream, and a missing head is found when the leader is asked for it,
// every few seconds. Readers of Streams.Logs go on from one to the other when a shard moves: the new owner has them
// read on with the heads it has read, since nothing reports missed records to them later. Records are read from any
// replica; the head gives the records there must be, so those missing on a replica are read from the leader. Heads are
// read from the leader alone, so a caller going from one node to another finds the results of its own calls.
//
// The lists of a shard are its owner's: Logs.Listed fails with ErrUnavailable elsewhere, and the owner must be asked.
package jetstream
