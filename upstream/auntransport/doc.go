// SPDX-License-Identifier: Apache-2.0

// Package auntransport carries requests to agents over the connections of AUN: one connection for each identity of the
// gateway and each gateway of AUN, shared by all turns.
//
//   - Agents of AUN name tasks, and a lost answer to a task.create would leave a task without an owner. So a turn
//     without a name is looked for in the agent's list (translate.Locator, upstream/locate.go) before it is sent again,
//     by the same process or the next one. A task of another turn of the process is never taken.
//   - An agent of AUN without tasks is addressed by messages. Only the transport knows: it makes messages of the turn's
//     task.create, and answers a task.get with the messages of the thread, pulled from the gateway's inbox. The
//     beginning of the turn's part of the inbox is kept in the task's agent.Ref, so the next process knows it too.
package auntransport
