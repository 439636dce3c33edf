// SPDX-License-Identifier: Apache-2.0

// Package httpfront is the front of a gateway for HTTP/1.1, 2 and 3, and for gRPC. A reply is a response, and a stream
// is a stream of server-sent events; over gRPC, both are messages.
package httpfront

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
)

// Config is the configuration of a Front.
type Config struct {
	BodyTimeout  time.Duration // for a caller to send a request's body
	Heartbeat    time.Duration // silence of a stream before a comment is sent
	WriteTimeout time.Duration // for a caller to read something of its answer
	TakeOver     TakeOver
	// Loop has a loop serve the next calls on a connection of HTTP/1.1. As TakeOver.Passes, it reports whether a
	// ResponseWriter of the host passes its input on unchanged; a loop begins below such ones only. nil: none does.
	Loop func(http.ResponseWriter) bool
	// Stripped returns the part of a request's path cut off by the host. nil: nothing.
	Stripped func(*http.Request) string
	// Healthy reports whether the Partner takes calls, as far as is known. It must cost nothing, since everyone may ask.
	// nil: it does.
	Healthy func() bool
	// Authenticate returns the sender of a request. An error is a *task.Error of kind AuthenticationRequired. Default: the
	// subject of the connection's client certificate, as identity.OfConnection has it.
	Authenticate func(*http.Request) (identity.Peer, error)
	// Proofs name the rules of Authenticate. Findings of a Previewer with others are not accepted.
	Proofs string
	// Challenges are for callers without a proof of their identity, by the name of their dialect.
	Challenges map[string]Challenges
	Log        *slog.Logger
}

// Front is the front of a gateway for HTTP. It may serve any number of requests at once.
type Front struct {
	gateway *gateway.Gateway
	config  Config
	grpc    *connect.Handler
}

// New returns a front for a gateway.
func New(g *gateway.Gateway, c Config) *Front {
	if c.Authenticate == nil {
		c.Authenticate = ofConnection
	}
	f := &Front{gateway: g, config: c}
	f.grpc = f.newGRPC()
	return f
}

func ofConnection(r *http.Request) (identity.Peer, error) { return identity.OfConnection(r.TLS), nil }

// Find returns the handler of a request; nil if nothing is served at its path. The handler must serve this request
// once, and no other. It sets summary before the answer is sent, and again when a stream has ended or has outlived its
// request.
func (f *Front) Find(r *http.Request, summary *gateway.Summary) http.Handler {
	path, ok := f.under(r.URL)
	if !ok {
		return nil
	}
	preview := PreviewOf(r.Context())
	if preview != nil {
		preview.report(summary)
	}
	if document := f.gateway.Document(path); document != nil {
		summary.Command = "card"
		return documentHandler{f, document, path, f.url(r)}
	}
	e := exchanges.Get().(*exchange)
	e.front, e.summary, e.preview, e.request.GRPC = f, summary, preview, isGRPC(r)
	if !f.gateway.Match(&e.request, r.Method, path) {
		e.release()
		return nil
	}
	return e
}

// ServeHTTP answers a request. Errors are answered in the caller's dialect: in JSON-RPC with status 200, as AIP
// requires (v01.00 §5).
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := f.Find(r, new(gateway.Summary))
	if h == nil {
		h = f.Offered(r, new(gateway.Summary))
	}
	if h == nil {
		f.NotFound(w, f.Mount(r))
		return
	}
	h.ServeHTTP(w, r)
}

// Under reports whether a request is for the mount point or a path below it, served or not.
func (f *Front) Under(r *http.Request) bool {
	_, ok := f.under(r.URL)
	return ok
}

// NotFound answers a request for an unserved path. mount is the path of the mount point, as callers see it.
func (f *Front) NotFound(w http.ResponseWriter, mount string) {
	text := fmt.Sprintf("nothing is served at this path; the Partner is mounted at %s/ and takes POST requests there (%s)",
		mount, strings.Join(f.gateway.Dialects(), ", "))
	if cards := f.gateway.Documents(); len(cards) > 0 {
		text += "; by GET it serves " + strings.Join(append(cards, acsPath, healthPath), ", ") + " below it"
	}
	http.Error(w, text, http.StatusNotFound)
}

// under returns the part of a URL's path after the mount point, as below does.
func (f *Front) under(u *url.URL) (string, bool) { return below(f.gateway.Base(), u) }

// below returns the part of a URL's path after a base, escaped as it was sent, without slashes at its ends.
func below(base string, u *url.URL) (string, bool) {
	rest, ok := strings.CutPrefix(u.Path, base)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	if u.RawPath == "" {
		rest = (&url.URL{Path: rest}).EscapedPath()
	} else if rest, ok = escapedBelow(base, u.EscapedPath()); !ok {
		return "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(rest, "/"), "/"), true
}

// escapedBelow returns the rest of an escaped path after a base. The base may be escaped in it, too. An escaped slash
// is none of the base's.
func escapedBelow(base, path string) (rest string, ok bool) {
	at, slashes := len(path), strings.Count(base, "/")
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		if slashes == 0 {
			at = i
			break
		}
		slashes--
	}
	before, err := url.PathUnescape(path[:at])
	return path[at:], err == nil && before == base
}

// exchanges pools exchanges.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}
