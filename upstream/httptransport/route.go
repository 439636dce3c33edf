// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// routes are the at most two possible URLs of the agent for some operations. The right one shows when the agent first
// takes a request there. They may be used by any number of goroutines at once.
type routes struct {
	all   []upstream.Route
	known atomic.Pointer[[]upstream.Route] // the confirmed one; nil until then
}

// route is one URL. It implements upstream.Route.
type route struct {
	transport *Transport
	of        *routes
	url       *url.URL
	uri       string           // of url, as it stands in a request
	only      []upstream.Route // the route itself
}

func (t *Transport) routesTo(urls ...*url.URL) *routes {
	rs := &routes{}
	for _, u := range urls {
		r := &route{transport: t, of: rs, url: u, uri: requestURI(u)}
		r.only = []upstream.Route{r}
		rs.all = append(rs.all, r)
	}
	return rs
}

// newRoutes returns the routes of operations answered once, and of operations answered by a stream. An agent with a
// path for each method may be configured by its mount point or by the URL of its rpc.
func (t *Transport) newRoutes(base *url.URL) (rpc, events *routes) {
	m := t.facets.Mounted
	if m == nil {
		only := t.routesTo(base)
		return only, only
	}
	send, stream := m.Path(translate.Send), m.Path(translate.SendStream)
	path := strings.TrimSuffix(base.EscapedPath(), "/")
	at := func(path string) *url.URL {
		u := *base
		u.RawPath = path
		u.Path, _ = url.PathUnescape(path) // base has a readable path
		return &u
	}
	if mount, ok := strings.CutSuffix(path, "/"+send); ok {
		return t.routesTo(base), t.routesTo(at(mount+"/"+stream), base)
	}
	return t.routesTo(base, at(path+"/"+send)), t.routesTo(base, at(path+"/"+stream))
}

// routesElsewhere returns the routes of the operations with paths of their own on the host of a URL.
func (t *Transport) routesElsewhere(
	base *url.URL, paths map[translate.Operation]string,
) (map[translate.Operation][]upstream.Route, error) {
	routes := make(map[translate.Operation][]upstream.Route, len(paths))
	for op, path := range paths {
		ref, err := ParsePath(path)
		if err != nil {
			return nil, err
		}
		routes[op] = t.routesTo(base.ResolveReference(ref)).all
	}
	return routes, nil
}

// ParsePath parses a path, perhaps with a query, and checks it as one of Config.Paths. The error is an *upstream.Error.
func ParsePath(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host != "" || u.Scheme != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") {
		return nil, invalid(upstream.InvalidURL, "%q is no path that begins with a slash", s)
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// Routes implements upstream.Transport.
func (t *Transport) Routes(op translate.Operation) []upstream.Route {
	if routes := t.elsewhere[op]; routes != nil {
		return routes
	}
	rs := t.rpc
	if streams(op) {
		rs = t.events
	}
	if known := rs.known.Load(); known != nil {
		return *known
	}
	return rs.all
}

// streams reports whether an operation asks for a stream.
func streams(op translate.Operation) bool {
	return op == translate.SendStream || op == translate.Resubscribe
}

// Confirm implements upstream.Route.
func (r *route) Confirm() {
	if len(r.of.all) > 1 {
		r.of.known.CompareAndSwap(nil, &r.only)
	}
}

// Open implements upstream.Route.
func (r *route) Open(ctx context.Context, req *upstream.Request) (upstream.Exchange, error) {
	x, err := r.open(ctx, req)
	if err != nil {
		return nil, err // and no exchange holding a nil of some type
	}
	return x, nil
}

// target returns the method of a request, and its URL as it is sent.
func (r *route) target(req *upstream.Request) (method, uri string) {
	b := r.transport.facets.Binder
	if b == nil {
		return http.MethodPost, r.uri
	}
	method, path := b.Bind(req.Operation, req.Ref)
	path, query, _ := strings.Cut(path, "?")
	u := *r.url
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + path
	if clean, err := url.PathUnescape(u.RawPath); err == nil {
		u.Path = clean
	}
	if query != "" {
		if u.RawQuery != "" {
			query = u.RawQuery + "&" + query
		}
		u.RawQuery = query
	}
	return method, requestURI(&u)
}
