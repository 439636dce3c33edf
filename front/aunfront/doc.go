// SPDX-License-Identifier: Apache-2.0

// Package aunfront is the front for AUN over WebSocket. One connection reaches every agent fronted for AUN, by its AID.
// A client logs in, and then calls methods; events of its tasks are sent as notifications.
//
// The properties of a task in AUN beside the canon (its owner, its readers, its children), and the position of each
// device in the events of a task, are kept in logs of the store: see Index.
//
// A frame of AUN is given to the one dispatch, decoded by a codec with knowledge of these properties (Request.Use,
// aun.Server). So limits, the guard and the life-cycle are those of every caller. Calls answered by the front itself,
// such as task.children, are first admitted by a gateway (Gateway.Admit): the guard, the policy and its quotas decide
// about every call naming a task, for the actual caller and under its own method.
//
// # What is kept
//
//   - The index (aunfront.Index) has an entry for each task created by AUN clients: a log of its own class, with
//     metadata and no records. It is stored before the task is started, so no task is without one; an entry without a
//     task is dropped within a day. By it a task is found by its id alone, and its owner, participants and children are
//     known. A task created otherwise is found among the tasks of the client's Leader.
//   - A subscription is a parked gateway.Stream: a waiting connection has no goroutine but its reader. Its position is
//     a cursor (follow.Cursor) for each AID, device, slot and task, stored when the client has answered a ping sent
//     after the event, and at most every 50 ms. So a cut loses nothing. Events read by the client before its answer
//     arrived come again after a cut, with the same seq; a client naming its last seq gets nothing twice.
//   - Connections belong to the process (aunfront.Connections), since those of an old configuration live while it
//     drains. Their calls are for the agents of the configuration in force (Connections.Serve), so its rules decide; it
//     closes the connections of unserved clients at once. A newer connection of a device waits until the positions of
//     the older one are stored.
//   - Notifications outside a subscription wait in the connection, at most 1000 of 16 MiB; a client not taking them is
//     closed (1013). A connecting agent is sent its open tasks at its own pace of reading, however many.
//   - A login belongs to no connection (aun.Authority), and the authority of the last configuration is used again, so a
//     login survives a reload. If several processes share their tasks, the second step of a login may come to another
//     one than the first: it has the others hand the login over, once.
package aunfront
