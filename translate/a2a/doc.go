// SPDX-License-Identifier: Apache-2.0

// Package a2a is the Agent2Agent protocol. Each group of versions with the same messages is a package of its own below
// this one. Here are their dialects, and the parts for all of them: agent cards, and the search for an agent's version.
//
//   - Agents of A2A 0.2 and later name tasks. The gateway derives the id of the message for them, so that an agent
//     checking it can detect a start sent twice; the task's name is in the metadata as soon as the agent reports it.
//   - gRPC of A2A 1.0 has no codec of objects: the codec of HTTP+JSON is transcoded by the JSON mapping of protocol
//     buffers, at a cost of 5 to 30 µs a message. A front or a transport of gRPC carries bytes, and knows no A2A.
//   - A2A 0.3 has two sets of objects: that of its JSON-RPC, and that of its HTTP+JSON, the origin of 1.0's. So
//     a2a/0.3-rest is the server of a2a/1.0-rest with another schema, and callers of 0.3 may use both.
package a2a
