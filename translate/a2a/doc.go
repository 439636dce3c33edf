// SPDX-License-Identifier: Apache-2.0

// Package a2a is the Agent2Agent protocol. Each group of versions whose messages are the same is a package of its own
// below this one; here are the dialects that they make, and what concerns all of them: agent cards, and how the version
// that an agent speaks is found.
//
//   - Agents of A2A 0.2 and later name tasks. What the gateway derives for them is the id of the message, so that an
//     agent that checks it can detect a start that is sent twice; the task's name is in the metadata as soon as the
//     agent reports it.
//   - gRPC of A2A 1.0 has no codec of objects: the codec of HTTP+JSON is transcoded by the JSON mapping of protocol
//     buffers, which costs 5 to 30 µs a message. A front or a transport of gRPC carries bytes, and knows no A2A.
//   - A2A 0.3 has two sets of objects: that of its JSON-RPC, and that of its HTTP+JSON, out of which 1.0's has grown.
//     So a2a/0.3-rest is the server of a2a/1.0-rest with another schema, and callers of 0.3 may use both.
package a2a
