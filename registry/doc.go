// SPDX-License-Identifier: Apache-2.0

// Package registry is the client of a registry of ACPs, which gives agents their AICs and knows their ACS.
//
// A Client asks what any caller may ask, such as for the ACS of an AIC. All that it reads has a limit, and each failure
// is an *Error, whose Kind says what the caller can do about it. A registry answers errors in three forms: problem
// documents, {"status":"error"} with a code, and {"detail"}; the Client reads them all.
//
// An Account acts for one user of the registry, who logs in by a Password or a Device. It registers the agents of
// Partners, asks what has become of that, and gets the credentials for their accounts at the certificate authority. Its
// session, and a Record of each Partner, are in a Storage that gateways share: one works on each at a time.
//
// A Feed follows which agents are active, and when they change. It keeps no ACS, only whether it is another one: who
// needs it asks for it again. What one agent has in it cannot stop the feed: an agent that cannot be read is not
// active. After a gap, or where the registry has gone back, as after a restore from a backup, all agents are read anew,
// and those are asked for that the snapshot lacks and that somebody wants to know of. One Feed serves all that want to
// know, since each holds a request open at the registry.
package registry
