// SPDX-License-Identifier: Apache-2.0

// Package revocation knows which certificates of callers their issuers have revoked. A Checker has sources, and decides
// by them about the chain of a certificate that was verified otherwise.
//
// # Sources
//
// Certificate revocation lists (RFC 5280 §5) come from files and URLs, complete ones and deltas. A list counts for the
// certificates of the issuer that has signed it, and of its scope. An issuer is known by its certificate, from the
// first verified chain that has it: a list whose issuer has not been seen waits for it. A list that is forged, broken,
// older than the one that is there, or has critical extensions that are not known here, is refused, and the one that
// is there stays. Lists of URLs are kept on disk, so that a start needs no network.
//
// A list is read in place: of each entry only its serial number is kept, in 20 bytes.
//
// A certificate that no list covers is asked about, one by one: OCSP (RFC 6960), or the JSON status of an authority of
// ACPs. An answer is checked in all that package ocsp leaves out: that it is about a certificate of this issuer, that
// it is valid now, and that its signer is the issuer, or has a valid certificate of it for OCSP. Each source has
// a rate that holds in any minute; a certificate is asked about once at a time, and again after a while in the
// background. That a certificate is unknown is no answer, unless set otherwise: some authorities say it of each.
//
// # Decisions
//
// In a chain, the certificate of the caller needs an answer, and so does each certificate of an issuer below the root
// that such an issuer has issued. What a root has issued to an issuer is looked up where there is an answer, but needs
// none: few roots publish lists.
//
// Revoked refuses, whichever source says so, and however old its answer is. Otherwise one good answer is enough. There
// is none if no source has it, or each that has it is stale: then the certificate is refused, except in the time that
// Config.Grace and Config.Degrade give.
//
// Known decides by what is known alone, for a TLS handshake: that comes before the caller has proven the key of its
// certificate, so that a stranger could otherwise make the gateway ask about any certificate.
package revocation
