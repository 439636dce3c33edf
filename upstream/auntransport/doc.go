// SPDX-License-Identifier: Apache-2.0

// Package auntransport carries requests to agents over the connections of AUN: one connection for each identity of the
// gateway and each gateway of AUN, which all turns share.
//
//   - Agents of AUN name tasks, and a lost answer to a task.create would leave a task without an owner. So a turn
//     without a name is looked for in the agent's list (translate.Locator, upstream/locate.go) before it is sent again,
//     by the same process or the next one. A task that another turn of the process has is never taken.
//   - An agent of AUN that has no tasks is spoken to by messages. Only the transport knows: it makes messages of the
//     turn's task.create, and answers a task.get with the messages of the thread, which it pulls from the gateway's
//     inbox. Where the turn's part of the inbox begins is kept in the task's agent.Ref, so that the next process knows
//     it too.
package auntransport
