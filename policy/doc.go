// SPDX-License-Identifier: Apache-2.0

// Package policy decides which calls of known callers are carried out, and how much of what is counted over time each
// of them may use. It knows no wire format and no transport: a gateway describes a call, before any task, queue or
// store sees it, and carries out what is let in.
//
// # Rules
//
// The first rule whose conditions all hold decides, and a call that no rule has is denied. The answer to a
// caller is always the same; which rule has decided is in the cause of the error, which only the log shows.
//
// A call is judged for all that is carried out of it: for each skill that it names, wherever an agent may look for
// one, and for a webhook that it sets beside its command.
//
// # Quotas
//
// A quota applies to the calls for which its conditions hold, and all quotas of a call must let it in. What they have
// counted is in a Book, by the name of the quota and whose calls are counted together, so it outlives configurations.
// The Book is kept in a store:
//
//   - A start is written before it is begun, so a crash forgets none. So that not each is a write of its own, starts
//     are written ahead, up to one in a hundred of the quota: a crash may count as many that were not made. The task
//     that is started cannot say it itself: to find what was counted on a day, all tasks would have to be read again.
//   - Bytes, and how much is left of slow rates of calls, are written within flushEvery, and when the Book is closed.
//   - Days are those of UTC. The day of a count never goes back by one, so a clock that is set back over midnight gives
//     nothing anew, nor does one that comes back from the future: then the count is kept until the next midnight.
//   - Rates of calls are measured by the monotonic clock, which cannot be set, but for the time before a restart.
//
// # Several processes
//
// What is counted under one key is in one shard, whose owner counts it for all processes (package ask). So calls and
// starts are exact, whichever process is called. Bytes are counted exactly, too, but told the owner after tellAfter,
// so that a stream does not wait for each piece: what several processes send in that time may exceed the limit. The
// limits themselves are those of the process that is called.
//
// While the shard has no owner, a call waits as any other one does, and is refused then: what cannot be counted is
// not let in, since a quota that lets through what it cannot count protects nothing. A stream that is open goes on.
// What it is sent is owed, and counted when there is an owner. If an owner fails after it has counted something and
// before it has answered, that is counted twice. Then a Leader has less; or it has more, if that was a call or a
// start that was taken back.
//
// Unfinished tasks and open streams are not counted over time. The first are bounds of the call for the life-cycle,
// which knows them exactly, and the second are counted by package quota, as those of limits are: in each process for
// itself.
package policy
