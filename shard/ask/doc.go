// SPDX-License-Identifier: Apache-2.0

// Package ask has the owner of a shard, or all processes, answer what is asked in this one.
//
// A Service is one function. It answers here where this process owns the shard, and costs no more than its call then.
// Elsewhere its argument and its result travel as JSON (shard.Peers), with the kinds of errors. While a shard has no
// owner, a question waits, for Patience at most and never beyond its context; then its error is that of a store that
// cannot be used. The owner may die after it has carried something out and before it has said so, so a question may be
// asked twice: a function that must not be carried out twice has to recognize the second time, or is asked Once.
//
// What is asked of all processes is for operators, and for what is not kept in logs: who is connected where.
package ask
