// SPDX-License-Identifier: Apache-2.0

// Package takeover takes the HTTP/1.1 connection of a response over from net/http once the head of the response is
// sent. Then the handler returns, and everything held for the request by net/http and the other handlers is freed. The
// body is continued on the connection, in chunks as net/http writes them. After its end the connection is given back to
// its server for the next request.
//
// A resting stream, over HTTP/1.1. openStream.takeOver leaves the request when a stream rests, from half a second after
// its begin (Stream.RunFor): a stream ending sooner would only waste the time. Besides memory, this saves a third of
// the time of an event: the share of the layers between the stream and its connection. takeover.Take hijacks the
// connection from net/http below the host's wrappers, which must pass their input on unchanged (TakeOver.Passes), and
// the stream is parked (Stream.Park): then no goroutine waits for it. The Leader reads the same bytes as from net/http
// (TestTheSameBytes): takeover.Conn writes the same chunks. One epoll descriptor for all these connections notices a
// caller leaving or sending something; arriving bytes are read through crypto/tls, which learns of its end and of new
// keys, and are dropped. A read may wait for its caller, so a few goroutines read the connections of streams (readers),
// and nothing else waits for them. At the end, Conn.End gives the connection back to its http.Server, by a listener
// accepting this one connection, so a Leader keeps its connection as before.
//
// Successive calls, over HTTP/1.1. Front.loop has a loop serve the connection of a call from the next call on (Serve):
// one goroutine receives a request, calls the handler of the http.Server, as net/http does, and sends the answer. So
// all handlers of the host see each call as before, with a request, a context and a ResponseWriter of its own. This
// saves the goroutine by which net/http reads the connection during each call, and deadlines. The rules:
//
//   - A loop takes only requests read alike by all readers of HTTP (lengthOf): a POST to a path, with one Host, one
//     Content-Length, and bytes of ASCII. net/http's own parser reads each head, unless it equals the head of the call
//     before, byte by byte, but for the digits of its length. Anything else goes back to net/http with all bytes read,
//     and the connection is in no loop again: Expect, chunks, pipelined requests, more than 8 KiB.
//   - The body is in memory before the handler runs. A loop waits a second for the rest of a body, then net/http does.
//   - The caller reads the same bytes as from net/http (response): TestALoopIsTheSame and FuzzLoop compare both.
//   - A leaving caller is noticed from 20 ms after the begin of its call, by the same epoll descriptor.
//   - IdleTimeout and ReadHeaderTimeout count as in net/http. A server with ReadTimeout or WriteTimeout has no loops.
//   - A loop ends when its server shuts down: at once if it rests, else with its call, and the answer says so. A call
//     begins when its head has arrived. Shutdown does not wait for the call, Wait does.
package takeover
