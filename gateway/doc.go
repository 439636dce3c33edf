// SPDX-License-Identifier: Apache-2.0

// Package gateway is one Partner between its callers and its agent. New composes it. Fronts, one for each transport,
// give callers' requests to Dispatch: a dialect decodes the request, a guard checks the peer, the Partner executes the
// command, and the dialect encodes the reply, the stream, or both. This package knows neither the transport of callers
// nor Caddy.
//
// # Execute
//
// There is one way into the life-cycle, Gateway.Execute. It stands below the admission of a call, which is the
// decoding, the guard and the questions to the store for completing the call, and above the life-cycle of the shard
// with the Leader's tasks. Its argument and its result are data (TestCallsAreData), so another process could execute a
// call for this one. The Peer is used up by the admission: only Call.Leader is left of it. A stream is a Result, too:
// the name of a log, and the number of the last event before those for the caller's process to read.
//
// Three ways lead to it. Dispatch takes bytes, or a call decoded by a front (Request.Use), and encodes the answer:
// HTTP, gRPC and AUN. Do takes a decoded call and returns its Result: groups, conversations and the console. An actor
// in the name of a Leader, such as a member leaving a group, calls Execute itself.
//
//	HTTP, gRPC, AUN         groups, conversations, console        a member leaving a group
//	       |                              |                                  |
//	   Dispatch                           Do                                 |
//	       |                              |                                  |
//	       +---------- admission ---------+                                  |
//	                       |                                                 |
//	                       +-------------------- Execute --------------------+
//	                                                |
//	                         own shard: the life-cycle of its tasks
//	                         other shard: ExecuteHere at its owner
//
// Additions of a command, stored beside its task (a webhook, the group to follow it, the entry of AUN), are in the
// Call, as partner.Extras. The Acceptors of the process store them under the lock of the task, when the command is
// accepted and before it is stored, and undo them if the command cannot be stored.
//
// # Streams
//
// A stream is executed as other calls are, but by Partner.Stream. It waits only for the agent's first report. Dispatch
// returns a gateway.Stream, and the exchange is released. httpfront.Front.stream makes an sseproxy.Writer and calls
// Stream.Run. A stream is sent in steps (Stream.step): the records at hand are read (replay.Reader.Next), framer.add
// has the dialect make their frames, and one Flush sends them. Then the stream rests, until an append, a heartbeat or
// its end wakes it. If its sink knows that a write does not wait for the caller (gateway.TrySink), the appending
// goroutine makes the step if no other stream follows the log: waking another thread for it would cost more than the
// write. Steps of several streams are made by workers, as many as there are processors, since the append holds the lock
// of the task. A step with a wait for the caller or for memory, and the end, are the business of the goroutine of the
// stream, which waits meanwhile. So a caller that never reads delays neither the agent nor other callers
// (TestACallerThatNeverReads), and all ways send the same bytes (TestEveryWayOfSendingIsTheSame). While it waits for
// the caller, it holds its frame only: the page is dropped (replay.Reader.Rewind), and the memory of the frame is lent
// (limit.Lease.Lend), so a waiting lease gets it back by cutting the stream (TestCallersThatNeverRead). Stream.Park
// leaves a resting stream without a goroutine.
//
// The open streams of a process are in one list (gateway.openStreams), from their opening to their closing. An
// operator's list copies it and reads the heads of the tasks on one page: behind is the number of the newest event less
// the number of the last sent one, stored by the stream by an atomic write.
package gateway
