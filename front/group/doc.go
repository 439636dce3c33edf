// SPDX-License-Identifier: Apache-2.0

// Package group makes a Partner take part in the groups of AIP (v01.00 chapter 7): its Leader invites it to an exchange
// of a message broker, sends commands there, and reads there the progress of its tasks.
//
// A command in a group is one more call of the gateway, and the publications of a task come from one more follower of
// its log, with a stored cursor. So a group task has the life-cycle, the limits and the streams of every other task,
// and neither the life-cycle nor the agent knows of groups. A membership is a log of its own, with metadata and no
// records; one goroutine, its supervisor, connects it, reconnects it, and ends it.
//
// # Parts
//
//	exchange --> queue --> link -- receive --> lanes -- Do -------> partner -- append --> the task's log
//	   ^                    | ^                                                               |
//	   +----- Publish ------+ +-------------- publisher <-- follower: reader, fold, cursor <--+
//	                        |
//	                    supervisor: join, connect, move, mute, leave
//
// What each part does:
//
//   - pool (front/group/broker/pool.go): connections to brokers. Groups share one only if they are of one Leader and
//     Partner, with one address and credential: a Leader closing it hits its own groups only
//   - link (front/group/broker/link.go): one group on a connection: its queue, to consume from, and the exchange, to
//     publish to with confirms. It does not reconnect
//   - supervisor (front/group/supervise.go): one goroutine for each membership. Only this goroutine changes it:
//     invitations, commands for members, a lost link and an operator's leave are requests to it, so they happen one
//     after another
//   - inbox (front/group/inbox.go, front/group/invited.go): one goroutine for each Partner with an inbox, in the
//     process owning its shard. A message of the inbox becomes the same call as an invitation by rpc, and goes the same
//     way
//   - codec (translate/aip/group*.go, inbox.go): reads invitations, and messages in the form of either version: first
//     as far as every member has to, then, if it is for the agent, as a command; writes a member's publications
//   - commands (front/group/receive.go, front/group/command.go): deliveries are read, and become calls of the gateway,
//     in order for each task
//   - follower (front/group/follower.go): reads a task's log, and turns it into publications. While the task waits for
//     its Leader, it is a position in the log and nothing else
//   - publisher (front/group/publish.go, front/group/reply.go): gives the publications of a group's followers to the
//     link, in turns, and the answers to commands, and moves the cursors by the broker's confirms
//
// # Rules
//
//   - Memberships, and the cursors of followers (follow.Cursor), are logs of their own classes, found again by List
//     when the store is opened. A cursor is stored in Accept, before the start is: no task of a group is without one.
//     One without a task is dropped at once, or when the store is opened again.
//   - The store drops a task some time after its end, and a broker may be away for longer. So a cursor pins the log of
//     its task (replay.Pin) until all of it is published. TestLongSilence has every case.
//   - A command is acknowledged when its event is durable (task.NoWait): a command not stored is delivered again by the
//     broker, and a stored one is ignored by the life-cycle as any repeated command.
//   - A message's message_id is derived from the task's log and the state shown, not from the membership or the
//     attempt. So a message published again, by whatever process, has the same one, also when a part of the log was
//     replaced by a snapshot. The cursor moves with the confirms; it is stored late, since a repetition can be
//     recognized.
//   - An invitation is answered when the queue is consumed from. A changed one makes the new link first. On the same
//     queue, the old link is closed before the new one consumes, so messages keep their order. The queue at another
//     broker is read until it is empty, and then deleted; deliveries of the new one meanwhile wait, for 30 s at most
//     (TestOldBrokerIsSlow). If the new link fails, the membership stays at its place.
//   - An invitation by the inbox is acknowledged when the membership is stored, or when the broker has the refusal. It
//     may be delivered again, so a membership keeps a digest of its token: while it lasts, the Partner announces itself
//     again, and when it has ended, the invitation is refused (TestInbox). A refusal not taken by the broker is not
//     sent a second time, since it ends the link.
//   - An invitation by the inbox without a user_id is refused in the inbox of the Leader it names: those of AIP 02.01
//     have none, and their Leaders wait for long. No broker has verified the name, so such refusals are few
//     (front/group/claims.go), and none is sent for a time after one has ended the link.
//   - A leave is stored before it begins, and continues after a crash or a lost link: tasks are canceled, the group
//     gets the cancellations, then the last status; then the queue is deleted, and the log of the membership ends. Each
//     life of a membership has a log of its own, since an ended log takes no more appends.
//   - A connection has at most 16 joins in work, so that a slow broker answers those in time. A late join has ended for
//     its caller only: other groups keep the connection, all made by the join is removed, and the next join for the
//     same queue waits for the removal. A connection with such joins only is closed (broker.TestStallsLate).
//   - An exchange belongs to one Leader (front/group/exchange.go, TestExchangeOfALeader): a broker knows users, and one
//     user may serve several Leaders. It is judged for each invitation, and again for each connection, under the
//     present configuration; the engine holds each membership's claims. A follower publishes a task only if the task
//     was started in its group.
//   - If the exchange is out of reach, a second kind of link reads the queue only (front/group/dissolved.go), as the
//     command to dissolve the group may be in it.
//   - A connection with an alarm of the broker (connection.blocked) gets no more links, and is not closed, since its
//     groups go on when the alarm is over. A join interrupted by it is made once more on another one
//     (broker.TestBlockedWhileJoining).
//   - A closing link waits a second for the answer of its broker. A later one costs other groups nothing: the channel
//     is closed in the background, and the connection is closed only if nothing is answered for 30 s
//     (broker.TestCloseInTime).
//   - A missing queue is the removal: a link made again declares nothing (Config.Declare). A closed connection is never
//     one.
//   - Access tokens are sealed with the configured key, for the log of their membership (front/group/seal.go), so a
//     token copied to another membership cannot be opened.
//   - Addresses are judged at the dial by the rules of webhooks (egress), so a broker gains nothing by another address
//     of its name.
//   - The engine has the memberships of all shards owned by the process, each with the others of its home. It outlives
//     configurations: a reload changes the settings of memberships and keeps their links.
//   - Memory: the prefetch bounds the deliveries in work, the publisher bounds the unconfirmed publications (messages
//     and bytes), and a waiting follower has no reader's page, no fold and no goroutine. A prefetch counts messages, so
//     the socket counts their bytes, too (front/group/broker/socket.go): it reads no further while a connection holds
//     16 MiB not acknowledged. A message larger than the limit of a request arrives empty, and so cannot be read.
//   - A link sends one publication first, and more as they are confirmed, so that a broker taking none at the moment
//     (connection.blocked) can say so before much is written. A message refused by the broker ends the link, because
//     those after it may not come before it.
package group
