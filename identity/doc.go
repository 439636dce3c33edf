// SPDX-License-Identifier: Apache-2.0

// Package identity finds out who calls. It knows the syntax and the check digits of an AIC, finds the AIC in a client
// certificate, and checks that the senderId of a request is that of its peer.
//
// Identity off trusts senderId. Optional separates callers without a certificate (unverified:), so that claiming an AIC
// does not give access to its tasks. For limits they count as one Leader, since their names cost nothing, and get at
// most half of what all Leaders share.
package identity
