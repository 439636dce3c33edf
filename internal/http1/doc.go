// SPDX-License-Identifier: Apache-2.0

// Package http1 is the client side of HTTP/1.1 (RFC 9112). The goroutine that waits for an answer writes the request
// and reads the answer itself, on a connection of a Pool. Answers are read strictly: one that could be framed in two
// ways is an error.
//
// Agents are spoken to in HTTP/1.1 by a client of our own (internal/http1), because net/http hands each request and
// each answer from goroutine to goroutine. Here the goroutine that waits for the answer writes the request, in one
// write, and reads the answer. Only a body of more than 16 KiB has a goroutine that writes it, since the agent may
// answer before it has read all. Deadlines take the place of timers, and are moved late: a wait that ends too early
// begins again. Before an idle connection is used, the system is asked whether anything can be read from it, be it an
// end: then nothing is sent on it. Of a connection with TLS the system does not know all, since TLS reads ahead: what
// that holds (http1.records) is looked at before the connection is kept, and before it is used. What was sent may have
// been received, so the transport sends it never again; that is for retry to decide. An answer that could be framed in
// two ways, or that net/http refuses, is an error; fuzz tests hold it to net/http, and TLS to no TLS.
package http1
