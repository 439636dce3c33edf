// SPDX-License-Identifier: Apache-2.0

// Package wsfront is the front for AUN over WebSocket. One connection reaches every agent that is fronted for AUN, by
// its AID. A client logs in, and then calls methods; events of its tasks are sent as notifications.
//
// What AUN has in a task beside the canon (its owner, who may see it, its children), and how far each device has
// received the events of a task, is kept in logs of the store: see Index.
//
// A frame of AUN is given to the one dispatch, decoded by a codec that knows what AUN has in the task beside the canon
// (Request.Use, aun.Server). So limits, the guard and the life-cycle are those of every caller. What the front answers
// itself, such as task.children, it has a gateway admit first (Gateway.Admit): the guard, the policy and its quotas
// decide about every call that names a task, for who calls and under the name that was called.
//
// # What is kept
//
//   - The index (wsfront.Index) has an entry for each task that AUN clients have created: a log of its own class, with
//     metadata and no records. It is stored before the task is started, so that no task is without one; an entry
//     without a task is dropped within a day. By it a task is found by its id alone, and its owner, participants and
//     children are known. A task that was created otherwise is found among the tasks of the client's Leader.
//   - A subscription is a gateway.Stream that is parked: a connection that waits has no goroutine but the one that
//     reads it. Its position is a cursor (follow.Cursor) for each AID, device, slot and task, stored when the client
//     has answered a ping that was sent after the event, and at most every 50 ms. So a cut loses nothing. What the
//     client has read before its answer arrived comes again after a cut, with the same seq; a client that names its
//     last seq gets nothing twice.
//   - Connections belong to the process (wsfront.Connections), since those of an old configuration live while it
//     drains. Their calls are for the agents of the configuration in force (Connections.Serve), so that its rules
//     decide; one whose client it does not serve is closed at once. A newer connection of a device waits until the
//     positions of the older one are stored.
//   - Notifications that are not of a subscription wait in the connection, at most 1000 of 16 MiB; a client that does
//     not take them is closed (1013). An agent that connects is sent its open tasks at the pace at which it reads,
//     however many.
//   - A login belongs to no connection (aun.Authority), and the authority of the last configuration is used again, so
//     that a login survives a reload. Where several processes share their tasks, the second step of a login may come to
//     another one than the first: it has the others hand the login over, once.
package wsfront
