// SPDX-License-Identifier: Apache-2.0

// Package callback receives what agents push about their tasks: HTTP requests to an address of the gateway that every
// turn has for itself.
//
// An agent that pushes and has no streams gets an address and a token for each turn. A pushed Task is one more report;
// a pushed piece, which may be a repeated one, is only a reason to poll.
package callback
