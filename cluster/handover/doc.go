// SPDX-License-Identifier: Apache-2.0

// Package handover has calls of Leaders executed by the node of a cluster owning their shard.
//
// The caller's node admits its call, and hands it over as data (gateway.Call). The owner executes it
// (gateway.ExecuteHere), and its answer is data, too: a Result, or an error, with its kind, its text for the caller,
// and those of its causes gateways look for. A stream is not handed over: its caller's node reads the log.
//
// If a call fails because its shard moves, the gateway that admitted it hands it over again. This gateway knows the
// calls that may be executed twice. The same holds if the owner has no such Partner, as during the roll-out of a
// configuration: in the end, the error names the node.
//
// A caller's node counts its part of a Result before it reads it. The owner counts the requests of others, their reads
// from the store, and their replies, in the same limits as its own callers' (gateway.Handed), each before it holds
// them. Each Leader has a share of the calls of a node.
package handover
