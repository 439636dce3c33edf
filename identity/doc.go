// SPDX-License-Identifier: Apache-2.0

// Package identity finds out the caller. It knows the syntax and the check digits of an AIC, finds the AIC in a client
// certificate, and checks the senderId of a request against its peer.
//
// Identity off trusts senderId. Optional separates callers without a certificate (unverified:), so claiming an AIC does
// not give access to its tasks. For limits they count as one Leader, since their names cost nothing, and get at most
// half of the share of all Leaders.
package identity
