// SPDX-License-Identifier: Apache-2.0

// Package callerinfo names to agents the caller they are asked for: by header fields, or by a signed token.
// It passes on the gateway's own knowledge, and nothing that a caller says of itself. The introduction stands in header
// fields, over gRPC in metadata. AUN has no place for it: one connection is for all callers, a task is of the AID
// logged in on it, and task.create has no member beside the content for the caller.
package callerinfo
