// SPDX-License-Identifier: Apache-2.0

// Package handover has calls of Leaders executed by the node of a cluster that owns their shard.
//
// The node that a caller is connected to admits its call, and hands it over as data (gateway.Call). The owner executes
// it (gateway.ExecuteHere), and its answer is data, too: a Result, or an error, with its kind, its text for the caller,
// and those of its causes that gateways look for. A stream is not handed over: its caller's node reads the log.
//
// A call that fails because its shard moves is handed over again by the gateway that admitted it, which knows what may
// be executed twice. The same holds where the owner has no such Partner, as while a configuration is rolled out:
// in the end, the error names the node.
//
// What a caller's node holds of a Result is counted there, before it is read. The owner counts the requests of others,
// what they read from the store, and their replies, in the same quotas as those of its own callers
// (gateway.Handed), each before it holds them. Each Leader has a share of the calls of a node.
package handover
