// SPDX-License-Identifier: Apache-2.0

// Package wire carries requests to a Partner and its answers back, over HTTP/1.1 and HTTP/2, with the certificates of
// several callers. It keeps each exchange for reports, and bounds all that it reads.
package wire

import "time"

// Limits of what a Partner may send. Beyond them an Exchange has an error.
const (
	maxBody    = 16 << 20 // bytes of an answer, or of the data of one event
	maxStream  = 64 << 20 // bytes of a stream
	maxEvents  = 100_000  // of a stream
	maxHeaders = 256 << 10
	maxHooks   = 10_000 // requests at a receiver
	maxHook    = 4 << 20
)

// Shown is the most bytes of a body in a report.
const Shown = 4 << 10

const dialTimeout = 10 * time.Second
