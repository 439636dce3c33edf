// SPDX-License-Identifier: Apache-2.0

// Package ask has the owner of a shard, or all processes, answer questions asked in this one.
//
// A Service is one function. It answers here if this process owns the shard, and costs no more than its call then.
// Elsewhere its argument and its result travel as JSON (shard.Peers), with the kinds of errors. While a shard has no
// owner, a question waits, for Patience at most and never beyond its context; then its error is the one of an unusable
// store. The owner may die after it has carried something out and before its answer, so a question may be asked twice:
// a function that must not be carried out twice has to recognize the second time, or is asked Once.
//
// Questions to all processes are for operators, and for data not kept in logs: the connections of each process.
package ask
