// SPDX-License-Identifier: Apache-2.0

// Package httpfront takes callers' requests over HTTP/1.1 to 3 and hands them to a gateway. Replies are responses,
// streams are server-sent events.
package httpfront

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// Config is how requests are taken and answers are sent.
type Config struct {
	BodyTimeout  time.Duration // how long a caller may take to send a request's body
	Heartbeat    time.Duration // how long a stream may be silent before a comment is sent
	WriteTimeout time.Duration // how long a caller may take nothing in of what it is sent
	Log          *slog.Logger
}

// Front is a gateway's front for HTTP. It may serve any number of requests at once.
type Front struct {
	gateway *gateway.Gateway
	config  Config
}

// New returns a front for a gateway.
func New(g *gateway.Gateway, c Config) *Front { return &Front{g, c} }

// Find returns what serves a request, and nil if its path is not one of the Partner's. A handler that is found must
// serve this request, and no other.
func (f *Front) Find(r *http.Request) http.Handler {
	path, ok := f.under(r.URL.Path)
	if !ok {
		return nil
	}
	if document := f.gateway.Document(path); document != nil {
		return documentHandler{f, document, path}
	}
	e := exchanges.Get().(*exchange)
	e.front = f
	if !f.gateway.Match(&e.request, r.Method, path) {
		exchanges.Put(e)
		return nil
	}
	return e
}

// ServeHTTP answers a request. Whatever is wrong with it beyond HTTP itself is said in the caller's dialect; in
// JSON-RPC with status 200, as AIP wants it (v01.00 §5).
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := f.Find(r); h != nil {
		h.ServeHTTP(w, r)
		return
	}
	f.NotFound(w, f.gateway.Base())
}

// Under reports whether a request is for the mount point or for a path under it, whether that is served or not.
func (f *Front) Under(r *http.Request) bool {
	_, ok := f.under(r.URL.Path)
	return ok
}

// NotFound answers a request for a path that is not served. mount is the path of the mount point, as callers know it.
func (f *Front) NotFound(w http.ResponseWriter, mount string) {
	says := fmt.Sprintf("nothing is served at this path; the Partner is mounted at %s/ and takes POST requests there (%s)",
		mount, strings.Join(f.gateway.Dialects(), ", "))
	if cards := f.gateway.Documents(); len(cards) > 0 {
		says += "; by GET it shows " + strings.Join(cards, ", ") + " under it"
	}
	http.Error(w, says, http.StatusNotFound)
}

// under returns the part of a path that comes after the mount point, without slashes at its ends.
func (f *Front) under(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, f.gateway.Base())
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(rest, "/"), "/"), true
}

// exchanges keeps the exchanges that have ended for their next use.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}
