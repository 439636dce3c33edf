// SPDX-License-Identifier: Apache-2.0

// Package agentca obtains the certificates of agents from the certificate authority of ACPs, and renews them. It speaks
// ACME (RFC 8555) as that authority does, which no library does: an order is of an identifier of the type agent, with
// the usage serverAuth or clientAuth, and is ready at once; the names in the certificate come from the agent's ACS, and
// the request for it has only the AIC as its common name; errors have types of their own, and bring no nonce.
//
// # What is kept
//
// A Keeper looks after the certificates of one agent. All that it knows is one record in the storage, which is written
// before each step that depends on it:
//
//  1. the key of the account, before the authority hears of it;
//  2. the account, found by its key, or else made by an EAB. The authority spends an EAB whatever comes of it, so one
//     that it has refused is remembered and never sent again, and one that cannot be right is not sent at all;
//  3. the key of the next certificate, and then the URL of its order;
//  4. the certificate, which takes the place of the one before.
//
// A process that ends between any two steps leaves the next one where to go on: the account is asked for by its key,
// and the order where it stands. Only an order whose URL was not stored is lost, since these authorities list no
// orders: it is placed again, and the lost one ends without a certificate.
//
// Gateways that share a storage share the account and the certificates. One works at a time, under the storage's lock,
// and the others serve what they find there within a minute.
//
// # When
//
// A certificate is renewed when a third of its life is left, with a new key, by the account that is kept. One that is
// revoked while the registry has the agent as active is replaced at once, up to a few times an hour. What fails is
// tried again after 1 to 60 minutes, or when the authority says. What only a person can do, a new EAB, is looked for
// each minute.
//
// An agent of ACPs v01.00 has one certificate for both usages, and no EAB: its authority asks for a file at
// <ca-challenge-url>/<AIC>/<token>, which any of the gateways can show.
package agentca
