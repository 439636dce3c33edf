// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// warnOfUnrouted warns of each site that mounts Partners at paths, and leaves others to nothing: Caddy answers those
// with 200 and no body, which a Leader with a wrong URL takes for success. That is Caddy's rule for every site, so the
// operator decides, and not a handler that is there for its mount point only.
func (a *App) warnOfUnrouted() {
	warned := make(map[*caddyhttp.Route]bool)
	for _, g := range a.members {
		if g.server == nil || answers(g.server.Routes) {
			continue
		}
		for i := range g.server.Routes {
			site := &g.server.Routes[i]
			if warned[site] || !leadsTo(site, g) || answersAll(site) {
				continue
			}
			warned[site] = true
			g.log.Warn("requests that no route of the site takes are answered with 200 and no body",
				"listen", strings.Join(g.server.Listen, " "), "advice",
				`add to the site: respond "nothing is served at this path" 404`)
		}
	}
}

// leadsTo reports whether a route has a handler, at any depth.
func leadsTo(route *caddyhttp.Route, g *Gateway) bool {
	return slices.ContainsFunc(route.Handlers, func(h caddyhttp.MiddlewareHandler) bool {
		if s, ok := h.(*caddyhttp.Subroute); ok {
			return slices.ContainsFunc(s.Routes, func(r caddyhttp.Route) bool { return leadsTo(&r, g) })
		}
		return h == caddyhttp.MiddlewareHandler(g)
	})
}

// passThrough are the handlers that change requests or answers, or serve some paths only, and pass all others on.
var passThrough = []caddy.ModuleID{
	"http.handlers.aip_aun", "http.handlers.aip_health", "http.handlers.aip_identify",
	"http.handlers.authentication", "http.handlers.encode", "http.handlers.headers", "http.handlers.intercept",
	"http.handlers.log_append", "http.handlers.map",
	"http.handlers.push", "http.handlers.request_body", "http.handlers.rewrite", "http.handlers.tracing",
	"http.handlers.vars",
}

// answersAll reports whether a route answers every request that it takes, whatever its path. A handler of another
// module may.
func answersAll(route *caddyhttp.Route) bool {
	return slices.ContainsFunc(route.Handlers, func(h caddyhttp.MiddlewareHandler) bool {
		switch h := h.(type) {
		case *caddyhttp.Subroute:
			return answers(h.Routes)
		case *Gateway:
			return h.BasePath == ""
		}
		return !passesOn(h)
	})
}

// passesOn reports whether a handler is one of passThrough.
func passesOn(h caddyhttp.MiddlewareHandler) bool {
	m, ok := h.(caddy.Module)
	return ok && slices.Contains(passThrough, m.CaddyModule().ID)
}

// answers reports whether a list of routes answers every request.
func answers(routes caddyhttp.RouteList) bool {
	return slices.ContainsFunc(routes, func(r caddyhttp.Route) bool { return len(r.MatcherSets) == 0 && answersAll(&r) })
}
