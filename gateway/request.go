// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/url"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Request is one request as a front has received it. A front has Gateway.Match find its dialects, fills in what it knows,
// calls Dispatch, sends the answer, and calls Release. The zero Request is ready for use, and so is a released one. It is
// used by one goroutine at a time.
type Request struct {
	// Body is a buffer of NewBody; nil for none. It belongs to the Request, which may give it up in Dispatch.
	Body *[]byte
	// Content is the media type of the body, in lower case and without parameters; empty for none.
	Content string
	// Version is the version of A2A that the caller names; empty for none.
	Version string
	// Query holds the parameters of the request's URL; nil for none.
	Query url.Values
	// Resumes says that the caller resumes a stream after the event that it names by After, outside of the body.
	Resumes bool
	After   uint64
	// Host is the host that the caller has sent the request to, and TLS says that it did so over TLS. They are for the
	// URLs of a Partner without a public one.
	Host string
	TLS  bool
	// Address is the caller's, for the log.
	Address string

	method  string // of HTTP
	matches []match

	reply  *[]byte // a buffer of replies
	memory quota.Lease
	held   bool   // memory is in use
	holder string // the Leader that memory is counted for
}

// A request that holds more than quota.Free is counted, so no larger buffer is used again for one that is not.
var (
	bodies  = bufpool.Pool{Largest: quota.Free}
	replies = bufpool.Pool{Largest: 256 << 10}
)

// NewBody returns an empty buffer for the body of a request.
func NewBody() *[]byte { return bodies.Get() }

// Release gives back what the request holds. Neither its buffers nor a reply to it may be used any more.
func (r *Request) Release() {
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

// match is a dialect that may have a request, and what the request's path is for in it.
type match struct {
	dialect translate.Server
	route   translate.Route
}

// Match finds the dialects that may have a request, by its method of HTTP and its path under the mount point, without
// slashes at its ends; fronts without these have POST and the empty path. It reports whether there are any. This is the
// only time that a path is matched.
func (g *Gateway) Match(r *Request, method, path string) bool {
	r.method = method
	for _, dialect := range g.config.Callers {
		route, ok := dialect.Route(method, path)
		switch {
		case !ok:
		case len(r.matches) == 0:
			r.matches = append(r.matches, match{dialect, route})
		case route.Allow == "": // those that take the method replace one that has the path alone
			if r.matches[0].route.Allow != "" {
				r.matches = r.matches[:0]
			}
			r.matches = append(r.matches, match{dialect, route})
		}
	}
	return len(r.matches) > 0
}

// Allow returns the methods of HTTP that the path of a matched request takes, as an Allow field has them, if the
// request's is none of them. Such a request is not dispatched.
func (r *Request) Allow() string { return r.matches[0].route.Allow }

// choose returns the dialect of a request that has been parsed: where the path is open to several, the first that
// matches it.
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
