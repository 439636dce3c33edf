// SPDX-License-Identifier: Apache-2.0

// Package task is the canon: the words of AIP in Go. It has the Task, the table of its states, and the folding of
// events into a Task. It knows no wire format, no clock and no storage, and imports the standard library only. All
// other packages use these types.
//
// A stored event is one line or more: a letter for its kind and AIP's JSON of it, then, of a status with another offer
// of products, their ids, or, of a snapshot, the products withdrawn by a continue, then the JSON of its cause. Events
// are sent to AIP callers without decoding them.
package task
