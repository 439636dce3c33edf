// SPDX-License-Identifier: Apache-2.0

// Package onbehalf tells agents for whom they are asked: by header fields, by a signed token, or by baggage. It says
// what the gateway knows, and nothing that a caller has said about itself. What it makes stands in header fields, which
// over gRPC are metadata. AUN has no place for it: one connection is for all callers, a task is of the AID that has
// logged in on it, and task.create has no member beside the content for whom it is.
package onbehalf
