// SPDX-License-Identifier: Apache-2.0

// Package revocation knows which certificates of callers, and of agents, their issuers have revoked. A Checker has
// sources, and decides by them about the chain of a certificate that was verified otherwise.
//
// # Sources
//
// Certificate revocation lists (RFC 5280 §5) come from files and URLs, complete ones and deltas. In PEM, one of these
// may have several: each stands for itself. A list counts for the certificates of the issuer that has signed it, and of
// its scope. An issuer is known by its certificate, from the
// first verified chain that has it: a list whose issuer has not been seen waits for it. A list that is forged, broken,
// older than the one that is there, or has critical extensions that are not known here, is refused, and the one that
// is there stays. So does one that is valid and that its location has lost; until it is back, no lists of other issuers
// are taken from there. Lists of URLs are kept on disk, so that a start needs no network.
//
// A list is read as a stream, and hashed meanwhile: of each entry only its serial number is kept, in 20 bytes. It
// takes the place of the one that is there once its signature is verified. Of a list that is signed by Ed25519, what
// is signed is held while it is read, since that signature needs it twice.
//
// A certificate that no list covers is asked about, one by one: OCSP (RFC 6960), or the JSON status of an authority of
// ACPs. An answer is checked in all that package ocsp leaves out: that it is about a certificate of this issuer, that
// it is valid now, and that its signer is the issuer, or has a valid certificate of it for OCSP. Each source has a rate
// that holds in any minute; a certificate is asked about once at a time, and again in the background before its answer
// ends, or is older than Config.Refresh. Then it decides no call, but the call waits: only after its source was asked
// and has not answered does it count further. Where a rate is used up, a call waits for its turn if that comes within
// the time for an answer, and is refused otherwise. That a certificate is unknown is no answer, unless set otherwise:
// some authorities say it of each. Answers of OCSP are kept on disk, and verified again when they are read. A caller
// may bring one itself (a staple of TLS 1.3): it is checked as one that was asked for, is as old as it says, and does
// not postpone when the sources are asked next.
//
// A registry of ACPs says which agents are active, by one request that waits for the next change. An agent that is not
// active is refused, whatever else is said about its certificate. That it is active is an answer about the agent, and
// not about one certificate: it counts where no source before it has one. What a registry says is not signed.
//
// # Decisions
//
// In a chain, the certificate of the caller needs an answer, and so does each certificate of an issuer below the root
// that such an issuer has issued. What a root has issued to an issuer is looked up where there is an answer, but needs
// none: few roots publish lists.
//
// Revoked refuses, whichever source says so, and however old its answer is. Otherwise a list that covers a certificate
// decides, and nothing is asked. Without one, the sources are gone through in their order. The first that has a good
// answer lets in. One that was healthy, and whose last good answer is older than Config.MaxAge, refuses: no source
// behind it stands in for it, since who can shut a source out could otherwise choose which one decides. So does one
// whose rate is used up. (Several lists of one issuer stand in for each other.) If none has an answer, or each has one
// that has ended, the certificate is refused, except in the time that Config.Grace and Config.Degrade give.
//
// Known decides by what is known alone, for a TLS handshake: that comes before the caller has proven the key of its
// certificate, so that a stranger could otherwise make the gateway ask about any certificate.
//
// A chain that was found good, with nothing to ask about, is not judged again for a second (passFor), unless lists or
// answers change.
package revocation
