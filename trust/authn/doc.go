// SPDX-License-Identifier: Apache-2.0

// Package authn finds out the credentials by which the caller of an HTTP request proves its identity: the client
// certificate of its connection, one handed on by a proxy in a header, a token of an issuer, or a key of the gateway's
// own. Package identity decides about the credentials accepted by a dialect, and about the caller's Leader.
//
// A certificate comes first: a caller with both a certificate and a token is the subject of the certificate. The token
// must be valid all the same, since a caller with a wrong credential is not the one it claims to be.
//
// A header with a certificate is believed only from the TCP peer named by the operator, never from a forwarded address,
// and its certificate is verified here again. The client certificate of such a peer is the proxy's own, and proves
// nothing of a caller. The header is removed from every request, so no later handler takes a caller's own for the
// proxy's.
package authn
