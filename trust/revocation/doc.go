// SPDX-License-Identifier: Apache-2.0

// Package revocation knows the revoked certificates of callers and of agents. A Checker has sources, and decides by
// them about the chain of a certificate verified otherwise.
//
// # Sources
//
// Certificate revocation lists (RFC 5280 §5) come from files and URLs, complete ones and deltas. In PEM, one of these
// may have several: each stands for itself. A list counts for the certificates of its signer, and of its scope. An
// issuer is known by its certificate, from the first verified chain with it: a list of an unseen issuer waits for it. A
// list that is forged, broken, older than the current one, or has critical extensions unknown here, is refused, and the
// current one stays. A valid list lost by its location stays, too; until it is back, no lists of other issuers are
// taken from there. Lists of URLs are kept on disk, so a start needs no network.
//
// A list is read as a stream, and hashed meanwhile: of each entry only its serial number is kept, in 20 bytes. It takes
// the place of the current one once its signature is verified. The signed part of a list signed by Ed25519 is held
// while it is read, since that signature needs it twice.
//
// Certificates not covered by a list are asked about, one by one: OCSP (RFC 6960), or the JSON status of an authority
// of ACPs. An answer is checked for everything package ocsp leaves out. It must be about a certificate of this issuer,
// and valid now. Its signer must be the issuer, or have a valid certificate of it for OCSP. Each source has a rate for
// any minute; a certificate is asked about once at a time, and again in the background before its answer ends, or is
// older than Config.Refresh. Then it decides no call, but the call waits: only after its source was asked and has not
// answered does it count further. If a rate is used up, a call waits for its turn if the turn comes within the time for
// an answer, and is refused otherwise. "Unknown" is no answer, unless set otherwise: some authorities give it for every
// certificate. Answers of OCSP are kept on disk, and verified again when they are read. A caller may bring one itself
// (a staple of TLS 1.3): it is checked like an answer to a question, has its own age, and does not postpone the next
// question to the sources.
//
// A registry of ACPs lists the active agents, by one request that waits for the next change. An agent that is not
// active is refused, whatever else is said about its certificate. "Active" is an answer about the agent, and not about
// one certificate: it counts if no source before it has one. The answers of a registry are not signed.
//
// # Decisions
//
// In a chain, the certificate of the caller needs an answer, and so does each certificate issued by an issuer below the
// root to another issuer. A certificate from a root to an issuer is looked up if there is an answer, but needs none:
// few roots publish lists.
//
// "Revoked" refuses, from any source, at any age. Otherwise a list covering a certificate decides, and nothing is
// asked. Without one, the sources are gone through in their order. The first one with a good answer lets in. A source
// that was healthy, and whose last good answer is older than Config.MaxAge, refuses: no source behind it stands in for
// it, since an attacker able to shut a source out could otherwise choose the deciding one. A source with its rate used
// up refuses, too. (Several lists of one issuer stand in for each other.) If none has an answer, or all answers have
// ended, and Config.Grace with them, the certificate is refused.
//
// Known decides by present knowledge alone, for a TLS handshake: the handshake comes before the caller has proven the
// key of its certificate, so a stranger could otherwise make the gateway ask about any certificate.
//
// A chain found good, with nothing to ask about, is not judged again for a second (passFor), unless lists or answers
// change.
package revocation
