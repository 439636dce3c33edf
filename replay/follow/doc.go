// SPDX-License-Identifier: Apache-2.0

// Package follow is the way to follow the log of a task for longer than the process lives: the events of the task are
// read in order, from a stored position, while the log is trimmed, and its store is closed and opened again.
//
// A Position is the place a follower has read up to. Steps makes steps of the unread part of a log, event by event; if
// events are no longer kept, a step for each state held only by the snapshot. Follower does the same with a growing
// log. A Cursor is a position in the store, under a name; while it is there, the log it follows is pinned (replay.Pin):
// the life-cycle trims no event the cursor needs, up to twice the usual length kept of a task, and the store keeps an
// ended task for some days. So a cursor lies in the store of the log. Beyond these bounds a follower gets the snapshot,
// or, if the log was dropped, nothing more.
//
// The followers of a task, and their differences:
//
//   - Groups (package group) publish each state, and each complete product, as the Task is then. So their followers
//     fold, and each has a cursor. It moves when the broker has confirmed.
//   - Inboxes (package mailbox) get the messages made by the events of a conversation. A position is a part of the
//     inbox, written with the messages, so none comes twice; the log of the inbox pins those it follows.
//   - Subscriptions of AUN (package aunfront) are streams of events to a client, read by package gateway as every
//     stream is. Each device has a cursor. It moves when the device has answered a ping.
//   - Webhooks (package notify) have an outbox with the body of each notification. The life-cycle fills it. Only events
//     left out of it are read from the log, by Steps. Package notify gives the reasons.
package follow
