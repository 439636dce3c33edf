// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// Handlers before a Partner, such as handle_path, may cut off the begin of a path. Callers have it in their URLs, so it
// belongs to the mount point in all that names one.

// mountURL returns the URL at which this machine reaches the mount, as far as the configuration says it; empty if it
// does not.
func (g *Gateway) mountURL() string {
	if g.PublicURL != "" {
		return g.publicURL()
	}
	if g.server == nil || len(g.server.Listen) == 0 {
		return ""
	}
	at, err := caddy.ParseNetworkAddress(g.server.Listen[0])
	if err != nil || at.IsUnixNetwork() || at.IsFdNetwork() {
		return ""
	}
	cut, _ := g.cutIn(g.server.Routes, "")
	u := url.URL{Scheme: "http", Host: "localhost", Path: cut + g.BasePath}
	for _, host := range slices.Backward(g.hosts()) {
		if !strings.ContainsAny(host, "*{") {
			u.Host = host
		}
	}
	port := int(at.StartPort)
	if len(g.server.TLSConnPolicies) > 0 {
		u.Scheme = "https"
	}
	if port != map[string]int{"http": caddyhttp.DefaultHTTPPort, "https": caddyhttp.DefaultHTTPSPort}[u.Scheme] {
		u.Host += ":" + strconv.Itoa(port)
	}
	return u.String()
}

// cutIn returns what handlers cut off the path of a request on its way through routes to the Partner, behind what was
// cut off before, and whether the routes lead to it.
func (g *Gateway) cutIn(routes caddyhttp.RouteList, before string) (cut string, ok bool) {
	for i := range routes {
		cut = before
		for _, h := range routes[i].Handlers {
			switch h := h.(type) {
			case *rewrite.Rewrite:
				cut += strings.TrimSuffix(h.StripPathPrefix, "/")
			case *caddyhttp.Subroute:
				if all, ok := g.cutIn(h.Routes, cut); ok {
					return all, true
				}
			case *Gateway:
				if h == g {
					return cut, true
				}
			}
		}
		if len(routes[i].MatcherSets) == 0 {
			before = cut // the routes that follow get the request, too
		}
	}
	return "", false
}

// isAlone reports whether a part of the path was cut off, and no handler after the Partner that gets the same path may
// answer the request. Handlers further out are meant for whole paths: the /health of a site is not that of a mount at
// /agents/one.
func (g *Gateway) isAlone(r *http.Request) bool {
	if g.server == nil || stripped(r) == "" {
		return false
	}
	behind, cut, _ := g.behind(g.server.Routes)
	return cut && !mayAnswer(behind, r)
}

// behind returns the routes after the Partner that get the path as it does, and whether a part of it was cut off.
func (g *Gateway) behind(routes caddyhttp.RouteList) (after caddyhttp.RouteList, cut, ok bool) {
	for i := range routes {
		for j, h := range routes[i].Handlers {
			inside := false
			switch h := h.(type) {
			case *rewrite.Rewrite:
				cut = cut || h.StripPathPrefix != ""
			case *caddyhttp.Subroute:
				after, inside, ok = g.behind(h.Routes)
			case *Gateway:
				ok = h == g
			}
			switch {
			case inside:
				return after, true, true
			case ok:
				rest := caddyhttp.Route{Handlers: routes[i].Handlers[j+1:]}
				return slices.Concat(after, caddyhttp.RouteList{rest}, routes[i+1:]), cut, true
			}
		}
	}
	return nil, false, false
}

// mayAnswer reports whether a handler of the routes may answer a request.
func mayAnswer(routes caddyhttp.RouteList, r *http.Request) bool {
	return slices.ContainsFunc(routes, func(route caddyhttp.Route) bool {
		if matches, err := route.MatcherSets.AnyMatchWithError(r); err != nil || !matches {
			return err != nil
		}
		return slices.ContainsFunc(route.Handlers, func(h caddyhttp.MiddlewareHandler) bool {
			if s, ok := h.(*caddyhttp.Subroute); ok {
				return mayAnswer(s.Routes, r)
			}
			return !passesOn(h)
		})
	})
}

// stripped returns what handle_path, or another handler, has cut off the path of a request.
func stripped(r *http.Request) string {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok || len(original.URL.Path) <= len(r.URL.Path) {
		return ""
	}
	cut, is := strings.CutSuffix(original.URL.Path, r.URL.Path)
	if !is {
		return ""
	}
	return cut
}
