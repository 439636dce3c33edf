// SPDX-License-Identifier: Apache-2.0

// Package token verifies the tokens of callers: JSON Web Tokens (RFC 7519) that an issuer has signed, by the keys that
// the issuer publishes (JWKS). It does not know what a token is good for: who calls is said by package identity, and
// what a token must say beside mutual TLS by package aac.
//
// A token is refused unless all of it is understood. It has at most 16 KiB and three parts; its header and its claims
// are JSON in which no name appears twice; the algorithm is one of four with a public key (RS256, PS256, ES256, EdDSA),
// so that neither "none" nor a key of the issuer that is taken for a secret passes; a header with crit is refused,
// since no extension is known here; and it must expire. The issuer is compared byte for byte before any key is looked
// for, so that a stranger's token causes no request. Such a token, or one with an unknown key id, costs a look into
// memory: keys are fetched at most once in 10 s, by one goroutine for all callers.
//
// Keys are kept while their issuer cannot be reached. They are fetched when the first token comes, so that a gateway
// starts without a network, and again in the background when they are older than ten minutes and a token comes. After
// twenty minutes without a fetch a token waits for it, for its key may have been taken back.
// Fetches go by https to public addresses, or to networks that the operator has allowed (package egress); redirects are
// not followed.
//
// A token that was verified is remembered, with the keys that have verified it: the signature of the same token is not
// computed again while these keys are in use. Its times are looked at each time.
package token
