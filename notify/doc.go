// SPDX-License-Identifier: Apache-2.0

// Package notify delivers every change of a task's state to the task's webhooks: at least once, in order for each
// task and webhook, however long the receiver is down, and after any crash.
//
// The notifications of a task are a log of their own in the same store, the task's outbox: one record for each change
// of state, and in its metadata the webhooks, each with a cursor. The outbox is written right after the task's log, and
// reconciled with it after a crash; so no change in the task's log is missed, and a notification does not depend on the
// time the task's log is kept.
//
// The store is the queue. Memory holds a bounded number of deliveries to be attempted next; the others stay due in the
// store until there is room.
//
// # Parts
//
// An outbox is a log, too. A task with webhooks has one beside its own log, in the same store and under the same name
// but for its class: one record for each change of state, with the Task as it was then, and in its metadata a cursor
// for each webhook. So a body is stored once for all webhooks of a task, retries for a day do not depend on the keeping
// or the trimming of the task's own log, and the store needs no second way to keep things.
//
// Calls go one way, through named parts:
//
//	partner -- Notify --> outbox -- Offer --> scheduler -- Run --> deliverer -- Send --> delivery --> egress --> receiver
//	                        ^                                          |
//	  reconciler, scanner,  |                                          |
//	  admin ----------------+------------ the outcome -----------------+
//
// The work of each part:
//
//   - outbox (notify/outbox.go): the notifications of a task, in order, and its webhooks. Each write offers its due
//     deliveries to the scheduler
//   - scheduler (notify/schedule): the choice of the next delivery: turns, slots, breakers, quarantine. In memory only,
//     bounded, no I/O. A process has one, and each engine, with the tasks of one shard, has a queue of it
//   - deliverer (notify/deliver.go): takes a notification from its outbox, has it sent, stores the outcome
//   - delivery (notify/delivery): one attempt: encode, sign, POST, and the meaning of the answer
//   - scanner (notify/scan.go): finds due outboxes in the store, and reviews them
//   - reconciler (notify/reconcile.go): compares outboxes with the logs of their tasks: at the start, after a failure,
//     when the store was reopened
//   - admin (notify/admin.go, notify/endpoints.go): lists deliveries and endpoints, replays dead letters, disables
//     endpoints
//
// # The reasons for an outbox
//
// A webhook could follow the log of its task as groups do (package follow), with a cursor and no bodies: then the write
// for each change of state would go away. BenchmarkBody measures that. CPU on two processors, with a store on disk:
//
//	to keep a body when the state is entered                  35 µs, once for all webhooks and attempts
//	to read it for an attempt                                 12 µs
//	to make it for an attempt from a log of 3 events          16 µs
//	of 23 events                                              40 µs
//	of 1,003 events                                        1,000 µs
//
// A start answered at once, with one webhook, writes the outbox 5 times (TestWritesOfAStart), and would write 4
// cursors; it would save 30 µs. A task with a streamed answer costs more from about 25 events on, and more for each
// further webhook and attempt: failing receivers cause many of these. And the log of a task keeps less than the page of
// webhooks promises: the body of each state with its products, for a day of attempts and for seven days as a dead
// letter, whatever was trimmed since; and the store drops no task for room while its notifications are not delivered.
// The states behind a snapshot have their products no more. So outboxes keep bodies, and only the records left out of
// them by a crash are made from the log, by follow.Steps.
//
// # A webhook, from its setting to the receiver
//
//  1. Under the task's lock, a command with a webhook is given to Engine.Accept, and a call to set one to Engine.Set;
//     outbox.create stores the webhook as a record of its own.
//  2. The task enters a state. The life-cycle appends the event to the task's log, then calls Engine.Notify.
//  3. outbox.append makes it a record, with the Task and the trace of the cause. outbox.write stores record and
//     metadata as one write, without an fsync, and outbox.offer names the webhooks with a due delivery.
//  4. Queue.Offer takes the deliveries into memory. Those without room stay due in the store, until scanner.visit
//     finds them there.
//  5. Scheduler.dispatch chooses: the line whose turn it is, in it a Leader, of that an endpoint. It starts
//     deliverer.run.
//  6. deliverer.prepare reads the record. Sender.Send has the dialect encode it, signs it and posts it; the connection
//     is opened by egress.Dialer, the judge of the address dialed. There is no proxy, and no redirect is followed.
//  7. Queue.Report counts the outcome for the endpoint's breaker. deliverer.finish stores it: the cursor moves to
//     the next record, or the next attempt gets its time, or the notification becomes a dead letter. That write
//     offers the next delivery, as in step 3.
//
// # Invariants
//
//   - A webhook's URL and token are a record of the outbox, written when it is set. The metadata is written with every
//     delivery, and has its cursor only. The records of webhooks are written again when the records between them have
//     as many bytes, to drop those.
//   - A crash between the writes of the task's log and of its outbox loses nothing: outbox.reconcile appends the
//     missing records. A notification's webhook-id is derived from the outbox, the webhook and the event, so it is the
//     same at every attempt, by whatever process it is made.
//   - The store is the queue. Memory holds a bounded number of deliveries to be attempted next, and the metadata of
//     some outboxes in use lately; everything else is due at the outbox's DueAt. Waiting for a slot, a breaker or an
//     operator uses up no attempt.
//   - Notifications are in order for each task and webhook: the head holds up those behind it until it is delivered or
//     dead. It is dead when its attempts are used up. A notification that waited behind a dead one gets one attempt.
//   - Leaders take turns, and so do the endpoints (scheme, host and port) of each Leader. An endpoint and its breaker
//     belong to one Leader: a breaker shared by Leaders would let one of them stop another's deliveries to a host, by
//     failing URLs. At the limit of endpoints in memory, failing ones are dropped first, and their breakers are kept.
//   - The last attempts of an undelivered notification are in the metadata of its outbox: they are stored with the
//     outcome, and cost no write of their own. A notification delivered at the first attempt stores nothing of it.
//   - Waiting notifications are counted as outboxes change (notify/backlog.go), so no scrape reads the store. Those
//     left in an outbox by the process before count when it is read, by the reconciler at the latest; an outbox with a
//     failed write counts again when it was read again. TestRandomFailures holds the count to the list of deliveries.
//   - An attempt taking more than a second gives its slot back. A thousand hanging receivers cost a thousand sockets,
//     and not the slots of others.
//   - Deadlines, starts and deliveries are all DueAts of logs, and their data is Metadata. The first byte of a log's
//     name is its class, so the life-cycle and the webhooks each find their own logs.
//   - The endpoints disabled by an operator are logs of a class of their own, with nothing but metadata.
package notify
