// SPDX-License-Identifier: Apache-2.0

// Package onbehalf tells agents for whom they are asked: by header fields, by a signed token, or by baggage. It says
// what the gateway knows, and nothing that a caller has said about itself. What it makes stands in header fields, which
// over gRPC are metadata; the connections of AUN have no place for it, since one connection is for all callers.
package onbehalf
