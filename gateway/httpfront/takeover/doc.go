// SPDX-License-Identifier: Apache-2.0

// Package takeover takes the HTTP/1.1 connection of a response over from net/http once the head of the response is
// sent. Then the handler returns, which frees all that net/http and the other handlers hold for the request. The body
// is continued on the connection, in chunks as net/http writes them. After its end the connection is given back to its
// server for the next request.
//
// A stream that rests, over HTTP/1.1. openStream.takeOver leaves the request when a stream rests, from half a second
// after its begin (Stream.RunFor): a stream that ends sooner would only waste the time. Besides memory, that saves a
// third of the time of an event, which the layers between the stream and its connection take. takeover.Take hijacks the
// connection from net/http below the host's wrappers, which must pass on unchanged what they are given
// (TakeOver.Passes), and the stream is parked (Stream.Park): then no goroutine waits for it. The Leader reads the same
// bytes as from net/http (TestTheSameBytes): takeover.Conn writes the same chunks. One epoll descriptor for all these
// connections shows that a caller has left or has sent something; what arrives is read through crypto/tls, which learns
// of its end and of new keys, and is dropped. At the end, Conn.End gives the connection back to its http.Server, by a
// listener that accepts this one connection, so that a Leader keeps its connection as before.
package takeover
