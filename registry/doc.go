// SPDX-License-Identifier: Apache-2.0

// Package registry is the client of a registry of ACPs, which gives agents their AICs and knows their ACS.
//
// A Client asks what anybody may ask, such as for the ACS of an AIC. All that it reads has a limit, and each failure is
// an *Error, whose Kind says what the caller can do about it. A registry answers errors in three forms: problem
// documents, {"status":"error"} with a code, and {"detail"}; the Client reads them all.
//
// A Feed follows which agents are active, and when they change. It keeps no ACS, only whether it is another one: who
// needs it asks for it again. One Feed serves all that want to know, since each holds a request open at the registry.
package registry
