// SPDX-License-Identifier: Apache-2.0

// Package policy decides about calls of known callers: it lets them in or refuses them, and bounds each caller's use of
// countable things over time. It knows no wire format and no transport. A gateway describes a call, before any task,
// queue or store sees it, and carries out the call once it is let in.
//
//	call --> rules --> quotas --> decision point --> carried out
//	           |          |             |
//	        denied   over a limit     denied
//
// # Rules
//
// The first rule whose conditions all hold decides, and a call without such a rule is denied. The answer to a caller is
// always the same; the deciding rule is in the cause of the error, shown only by the log.
//
// A call is judged for all its effects: for each skill it names, in any place an agent may look at, and for a webhook
// set beside its command.
//
// # Quotas
//
// A quota applies to the calls under its conditions, and all quotas of a call must let it in. Their counts are in a
// Book, by the name of the quota and the key of the calls counted together, so it outlives configurations. The Book is
// kept in a store:
//
//   - A start is written before it is begun, so a crash forgets none. To save a write for each, starts are written
//     ahead, up to one in a hundred of the quota: a crash may count as many starts never made. A started task cannot
//     record its start itself: to find the count of a day, all tasks would have to be read again.
//   - Bytes, and the levels of slow rates of calls, are written within flushEvery, and when the Book is closed.
//   - Days are those of UTC. The day of a count never goes back by one, so a clock set back over midnight gives nothing
//     anew. Neither does a clock coming back from the future: then the count is kept until the next midnight.
//   - Rates of calls are measured by the monotonic clock. Nothing can set it. The time before a restart is the
//     exception.
//
// # Several processes
//
// All counts under one key are in one shard, and its owner counts for all processes (package ask). So calls and starts
// are exact, whichever process is called. Bytes are counted exactly, too, but the owner learns of them after
// reportAfter, so no stream waits for each piece: the pieces of several processes in this time may exceed the limit.
// The limits themselves are those of the called process.
//
// While the shard has no owner, a call waits as any other one does, and is refused then. A quota letting through
// uncounted calls would protect nothing. An open stream goes on. Its bytes are owed, and counted once there is an
// owner. If an owner fails between a count and its answer, the use is counted twice. Then a Leader has less; or it has
// more, if the use was a call or a start taken back.
//
// Unfinished tasks and open streams are not counted over time. The first are bounds of the call for the life-cycle,
// which knows them exactly. The second are counted by package limit, as the streams of limits are: in each process for
// itself.
package policy
