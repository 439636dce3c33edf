// SPDX-License-Identifier: Apache-2.0

// Package agentapi is the Agent API of AgentScope Runtime: requests of POST {input, stream, user_id, session_id}, and
// streams of responses, messages and contents as answers. It has no envelope. A run of an agent belongs to a session
// and has no name of its own: it cannot be asked for, and its stream cannot be continued.
//
//   - Callers of the Agent API name a session and no task (dialect.Policy.BySession). The ids of a session's tasks are
//     made of the session and a number rising with each task, so nothing else has to be kept of a session. Of two
//     messages at the same moment, the log of a task decides which one is first: the other one finds the task of the
//     first at work, and is refused. The number of the last task is remembered; after a restart it is read from the
//     store (partner.lastOfSession).
//   - A response of the Agent API is sent once. So its stream is not ended by a reload (translate.Unresumer), and its
//     encoder keeps its output, because the last event repeats all of it; this memory is counted (translate.Keeper).
//   - An agent of the Agent API knows sessions, and neither tasks nor the callers behind the gateway. Both names that
//     it gets, user_id and session_id, are the name that the gateway derives for a Leader's session. A run that may
//     have begun is never sent again, since the agent cannot be asked about it: after a lost connection its task fails.
//   - The questions of an agent of the Agent API (for an approval, or the output of a function) are in the data items
//     of the status, and a continue brings them along (agent.Turn.Asked). So the answer finds its question without any
//     other state.
package agentapi
