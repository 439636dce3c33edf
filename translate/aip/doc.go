// SPDX-License-Identifier: Apache-2.0

// Package aip is the dialect AIP v01.00. Its model is the canon's own.
//
// # Refusals
//
//   - Codes. Duplicate keys, too deep, too large, batches, a method against its path: −32600, with the field or limit
//     in data. BOM, invalid UTF-8, lone surrogates, trailing bytes: −32700. id: null is answered with null; no id is
//     −32600, in A2A only with right params, because its callers expect this. A missing command, senderId or taskId:
//     −32602. Limits: −32050 with data.limit and data.max. If an agent fails, its task fails, and the answer is the
//     Task and not an error; the error kinds are for requests without a task.
//   - Leniency. type, id, sentAt, senderRole, sessionId and dataItems may be missing; of the wrong type they are
//     errors. A time without an offset is Beijing's.
package aip
