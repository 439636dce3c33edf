// SPDX-License-Identifier: Apache-2.0

// Package authn finds out by which credentials the caller of an HTTP request proves who it is: by the client
// certificate of its connection, by one that a proxy hands on in a header, by a token of an issuer, or by a key of the
// gateway's own. Which of them a dialect accepts, and which Leader a caller is, is said by package identity.
//
// A certificate comes first: a caller that shows one and a token is who the certificate says. The token must be valid
// all the same, since a caller with a wrong credential is not the one that it claims to be.
//
// A header with a certificate is believed only of the TCP peer that the operator has named, never of a forwarded
// address, and its certificate is verified here again. The client certificate of such a peer is the proxy's own, and
// proves nothing of a caller. The header is removed from every request, so that no later handler takes a caller's own
// for the proxy's.
package authn
