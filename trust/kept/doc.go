// SPDX-License-Identifier: Apache-2.0

// Package kept knows which Leaders have lost their standing: of those who have something that goes on without a
// connection, webhooks or groups, it keeps the certificates by which they have called, so that these can be judged
// while the Leader does not call, and after a restart.
//
// A Leader has lost its standing when no certificate that it has called by, and that has not expired, counts any more.
// One that is renewed, or has a certificate for each of several processes, keeps it: a call by another certificate that
// counts is enough, also later. What was kept of a Leader is dropped some time after its last certificate has expired;
// that of a Leader without standing is not, or its webhooks would go on.
//
// The certificates, which are public, are metadata of a log of each Leader. They are stored once for each certificate,
// and not with each call.
package kept
