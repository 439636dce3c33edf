// SPDX-License-Identifier: Apache-2.0

// Package task is the canon: the words of AIP in Go. It knows what a Task is, which states follow which, and how events
// fold into a Task. It knows no wire format, no clock and no storage, and imports the standard library only. All other
// packages use these types.
//
// A stored event is one line or more: a letter for its kind and AIP's JSON of it, then, of a status that changes what
// the task offers, the ids of the products, or, of a snapshot, the products that a continue has withdrawn, then the
// JSON of its cause. Events are sent to AIP callers without decoding them.
package task
