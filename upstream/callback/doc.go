// SPDX-License-Identifier: Apache-2.0

// Package callback receives the pushes of agents about their tasks: HTTP requests to an address of the gateway, one for
// each turn.
//
// A pushing agent without streams gets an address and a token for each turn. A pushed Task is one more report; a pushed
// piece, perhaps a repeated one, is only a reason to poll.
package callback
