// SPDX-License-Identifier: Apache-2.0

// Package partner is a small Partner of AIP v01.00 and v02.02 in memory, as the specification wants it. Its hooks,
// rules and numbers may be changed, for a deviation at one place:
//
//	ServeHTTP ──▶ parse ──▶ check ──▶ command or configuration ──▶ Envelope, Body
//	                                     └──▶ change ──▶ log ──▶ streams and webhooks
//
// The first word of a text is what the work is:
//
//	stream N MS   a product in N pieces, one every MS milliseconds
//	slow SECONDS  works for this time
//	accept        is accepted, and never begins
//	ask           asks for a colour, and repeats the next text
//	fail, reject  fails; is rejected
//	two           two products
//	file, data    a product with a file, with structured data
//
// Any other text is repeated in a product.
package partner

import "time"

// Limits of a Partner.
const (
	maxBody   = 8 << 20
	maxTasks  = 10_000
	maxTaskID = 256
)

// Bounds of webhooks: each is tried so often, and the pause between two tries doubles.
const (
	maxTries   = 4
	firstPause = 20 * time.Millisecond
	hookTime   = 5 * time.Second
)
