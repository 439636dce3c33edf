// SPDX-License-Identifier: Apache-2.0

// Package follow is the way to follow the log of a task for longer than the process lives: what happens to the task is
// read in order, from a position that is stored, while the log is trimmed, and its store is closed and opened again.
//
// A Position says how far a follower has read. Steps makes of a log what was not read of it, event by event; where
// events are no longer kept, a step for each state that only the snapshot has. Follower does that with a log that
// grows. A Cursor is a position in the store, under a name; while it is there, the log that it follows is pinned
// (replay.Pin): the life-cycle trims no event that the cursor needs, up to twice what is kept of a task otherwise, and
// the store keeps a task that has ended for some days. So a cursor lies in the store of the log. Beyond these bounds a
// follower gets the snapshot, or, if the log was dropped, nothing more.
//
// What follows a task, and where each of them differs:
//
//   - Groups (package group) publish each state, and each product that is complete, as the Task is then. So their
//     followers fold, and each has a cursor, which moves when the broker has confirmed.
//   - Inboxes (package mailbox) get the messages that the events of a conversation make. A position is a part of the
//     inbox, written with the messages, so that none comes twice; the log of the inbox pins those that it follows.
//   - Subscriptions of AUN (package wsfront) are streams of events to a client, which are read by package gateway as
//     every stream is. Each device has a cursor, which moves when it has answered a ping.
//   - Webhooks (package notify) have an outbox, which keeps the body of each notification, and which the life-cycle
//     fills. Only what was left out of it is read from the log, by Steps. notify says why.
package follow
