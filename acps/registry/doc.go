// SPDX-License-Identifier: Apache-2.0

// Package registry is the client of a registry of ACPs, which gives agents their AICs and knows their ACS.
//
// A Client makes requests open to any caller, for example for the ACS of an AIC. All it reads has a limit, and each
// failure is an *Error. Its Kind is for the caller's decision. A registry answers errors in three forms: problem
// documents, {"status":"error"} with a code, and {"detail"}; the Client reads them all.
//
// An Account acts for one user of the registry, logged in by a Password or a Device. It registers the agents of
// Partners, asks for the outcome, and gets the credentials for their accounts at the certificate authority. Its
// session, and a Record of each Partner, are in a Storage shared by gateways: one works on each at a time.
//
// A Feed follows the active agents, and their changes. It keeps no ACS, only whether it is another one: users of the
// ACS ask for it again. The content of one agent cannot stop the feed: an unreadable agent is not active. After a gap,
// or if the registry has gone back, as after a restore from a backup, all agents are read anew, and the registry is
// asked for those missing in the snapshot, if a caller wants to know of them. One Feed serves all callers, since each
// holds a request open at the registry.
package registry
