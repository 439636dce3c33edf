// SPDX-License-Identifier: Apache-2.0

// Package gateway is one Partner between its callers and its agent. New composes it. Fronts, one for each transport,
// give callers' requests to Dispatch: a dialect decodes the request, a guard checks the peer, the Partner executes the
// command, and the dialect encodes the reply, the stream, or both. This package knows neither the transport of callers
// nor Caddy.
//
// # Streams
//
// A stream. Steps 1 to 5 are the same, but execute calls exchange.stream, and that Partner.Stream, which waits only for
// the agent's first report. Dispatch returns a gateway.Stream, and the exchange is released. httpfront.Front.stream
// makes an sseproxy.Writer and calls Stream.Run. A stream is sent in steps (Stream.step): the records that can be had
// at once are read (replay.Reader.Next), framer.add has the dialect make their frames, and one Flush sends them. Then
// the stream rests, until an append, a heartbeat or its end wakes it. Where its sink knows that a write does not wait
// for the caller (gateway.TrySink), the goroutine that appends makes the step if no other stream follows the log: to
// wake another thread for it would cost more than the write. Steps of several streams are made by workers, as many as
// there are processors, since the append holds the lock of the task. A step that has to wait for the caller or for
// memory, and the end, are the business of the goroutine of the stream, which waits meanwhile: so a caller that never
// reads delays neither the agent nor other callers (TestACallerThatNeverReads), and all ways send the same bytes
// (TestEveryWayOfSendingIsTheSame). While it waits for the caller, it holds its frame only: the page is dropped
// (replay.Reader.Rewind), and the memory of the frame is lent (quota.Lease.Lend), so that a lease which waits gets it
// back by cutting the stream (TestCallersThatNeverRead). Stream.Park leaves a stream that rests without a goroutine.
//
// The open streams of a process are in one list (gateway.openStreams), which a stream enters when it is opened and
// leaves when it is closed. An operator's list copies it and reads the heads of the tasks on one page: behind is the
// number of the newest event less that of the last one that was sent, which the stream stores by an atomic write.
package gateway
