// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/url"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Request is a request received by a front. The front calls Gateway.Match, fills in the fields, calls Dispatch, sends
// the answer, and calls Release. The zero Request is ready for use, and so is a released one. It is used by one
// goroutine at a time.
type Request struct {
	// Body is a buffer of NewBody, or nil. It belongs to the Request: Dispatch may drop it.
	Body *[]byte
	// Content is the media type of the body, in lower case and without parameters; empty for none.
	Content string
	// Version is the version of A2A in the request's header or URL; empty for none.
	Version string
	// Activated are the values of the header fields for activating extensions of A2A.
	Activated []string
	// Query holds the parameters of the request's URL; nil for none.
	Query url.Values
	// Resumes is true if the caller resumes a stream after the event with the number After. The body does not have the
	// number.
	Resumes bool
	After   uint64
	// Reader is the Leader charged for streams and memory, if it is not the Leader of the task but another one with the
	// right to read it; empty for the Leader of the task.
	Reader string
	// Caller is the caller, if it is not the peer: the call is executed for the peer's Leader. nil for the peer. The guard
	// and a policy decide by the caller.
	Caller *identity.Peer
	// OfAgent is true if the Caller is the agent itself, asking for its own tasks. The guard knows Leaders alone, so it is
	// not asked.
	OfAgent bool
	// Authorization are the values of the header of this name. They hold secrets.
	Authorization []string
	// Host is the host in the caller's request, and TLS is true if the caller has used TLS. They are used for the URL of a
	// Partner if no public one is configured.
	Host string
	TLS  bool
	// Stripped is the part of the path cut off by the front's host, before the mount point. It is used for the same URL,
	// too.
	Stripped string
	// Address is the address of the caller, for the log.
	Address string
	// Transport is the caller's connection, for the list of open streams, such as HTTP/2.0.
	Transport string
	// Asked is a Reader's view of the request, if something was decided by it; nil otherwise.
	Asked *Asked
	// GRPC is true if the request has come over gRPC: only a translate.Transcoder reads it, and nothing else is read by
	// one.
	GRPC bool

	method  string // of HTTP
	matches []match
	id      jsonrpc.ID // of a request decoded by the front to call
	call    *Call

	exchange exchange // of Dispatch

	reply  *[]byte // a buffer of replies, or nil
	memory limit.Lease
	held   bool   // memory is in use
	holder string // the Leader charged for memory
}

// A request of more than limit.Free bytes is counted, so a larger buffer must not be reused for an uncounted one.
var (
	bodies  = bufpool.Pool{Largest: limit.Free}
	replies = bufpool.Pool{Largest: 256 << 10}
)

// NewBody returns an empty buffer for the body of a request.
func NewBody() *[]byte { return bodies.Get() }

// Release gives back everything the request holds. Its buffers and the reply to it must not be used afterwards.
func (r *Request) Release() {
	r.exchange.use.End() // after a panic
	r.memory.Release()
	if r.Body != nil {
		bodies.Put(r.Body)
	}
	if r.reply != nil {
		replies.Put(r.reply)
	}
	clear(r.matches)
	*r = Request{matches: r.matches[:0]}
}

// Uncount ends the counting of the request's memory, since another Request counts it now.
func (r *Request) Uncount() { r.memory.Release() }

// match is a dialect with the path of a request, and the meaning of the path in it.
type match struct {
	dialect translate.Server
	route   translate.Route
}

// Match finds the dialects of a request by its HTTP method and its path below the mount point, without slashes at its
// ends. A front without methods and paths uses POST and the empty path. It reports whether there is a dialect. A path
// is matched only here.
func (g *Gateway) Match(r *Request, method, path string) bool {
	r.method = method
	for _, dialect := range g.config.Callers {
		route, ok := dialect.Route(method, path)
		_, grpc := dialect.(translate.Transcoder)
		switch {
		case !ok || grpc != r.GRPC:
		case len(r.matches) == 0:
			r.matches = append(r.matches, match{dialect, route})
		case route.Allow == "": // it replaces a dialect with the path, but not with this method
			if r.matches[0].route.Allow != "" {
				r.matches = r.matches[:0]
			}
			r.matches = append(r.matches, match{dialect, route})
		}
	}
	return len(r.matches) > 0
}

// Use is for a front with a decoding of its own, instead of Match: the dialect encodes the answer, with the id of the
// request. The request has no body. Dispatch finds the Leader of the call, and names its dialect.
func (r *Request) Use(dialect translate.Server, id jsonrpc.ID, c *Call) {
	r.matches = append(r.matches[:0], match{dialect: dialect})
	r.id, r.call = id, c
}

// Allow returns the HTTP methods of the path of a matched request, in the form of an Allow field, if the request has
// another method. Such a request must not be dispatched.
func (r *Request) Allow() string { return r.matches[0].route.Allow }

// choose returns the dialect of a parsed request: the first match of several with the path.
func (r *Request) choose(req *translate.Request) match {
	first := r.matches[0]
	if len(r.matches) == 1 {
		return first
	}
	for _, m := range r.matches {
		if m.route.Unenveloped == first.route.Unenveloped && m.dialect.Matches(req) {
			return m
		}
	}
	return first
}
