// SPDX-License-Identifier: Apache-2.0

// Package http1 is the client side of HTTP/1.1 (RFC 9112). The goroutine waiting for an answer writes the request and
// reads the answer itself, on a connection of a Pool. Answers are read strictly: one with two possible framings is an
// error.
//
// Agents are spoken to in HTTP/1.1 by a client of our own (internal/http1), because net/http hands each request and
// each answer from goroutine to goroutine. Here the goroutine waiting for the answer writes the request, in one write,
// and reads the answer. Of a body of more than 16 KiB it writes what the system takes at once, and another goroutine
// the rest, since the agent may answer before it has read all. Deadlines take the place of timers, and are moved late:
// a wait ended too early begins again. Before an idle connection is used, the system is asked whether anything can be
// read from it, be it an end: then nothing is sent on it. Of a connection with TLS the system does not know all, since
// TLS reads ahead: the bytes held there (http1.records) are looked at before the connection is kept, and before it is
// used. A sent request may have been received, so the transport never sends it again; upstream.retry decides about it.
// An answer with two possible framings, or refused by net/http, is an error; fuzz tests hold it to net/http, and TLS to
// no TLS.
package http1
