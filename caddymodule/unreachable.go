// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// placed is a handler of the gateway with the routes that lead to it, from the server on.
type placed struct {
	handler caddyhttp.MiddlewareHandler
	through []*caddyhttp.Route
}

// answering are the handlers of which one may take what is meant for another: those that answer some or all of the
// requests that get to them, and pass the others on.
var answering = []caddy.ModuleID{
	"http.handlers.aip_gateway", "http.handlers.aip_aun", "http.handlers.aip_callback", "http.handlers.aip_console",
	"http.handlers.aip_discovery", "http.handlers.aip_health", "http.handlers.aip_healthz", "http.handlers.aip_jwks",
	"http.handlers.aip_sample_agent",
}

// placedIn returns the handlers of the gateway in routes, in the order in which requests get to them.
func placedIn(routes caddyhttp.RouteList, through []*caddyhttp.Route) (all []placed) {
	for i := range routes {
		here := append(slices.Clone(through), &routes[i])
		for _, h := range routes[i].Handlers {
			if s, ok := h.(*caddyhttp.Subroute); ok {
				all = append(all, placedIn(s.Routes, here)...)
			} else if m, ok := h.(caddy.Module); ok && slices.Contains(answering, m.CaddyModule().ID) {
				all = append(all, placed{h, here})
			}
		}
	}
	return all
}

// warnOfUnreachable warns of each handler that no request gets to, because another one before it takes them all.
func (a *App) warnOfUnreachable(log *slog.Logger) {
	servers := make(map[*caddyhttp.Server]bool)
	for _, g := range a.members {
		servers[g.server] = true
	}
	for _, c := range a.consoles {
		servers[c.server] = true
	}
	delete(servers, nil)
	for server := range servers {
		all := placedIn(server.Routes, nil)
		for i, later := range all {
			j := slices.IndexFunc(all[:i], func(first placed) bool { return first.takesAllOf(later) })
			if j < 0 {
				continue
			}
			log.Warn("no request gets to a handler, since one before it takes them all",
				"handler", later.name(), "at", a.writtenAt(later.handler),
				"before", all[j].name(), "before_at", a.writtenAt(all[j].handler), "listen", strings.Join(server.Listen, " "))
		}
	}
}

// name returns the handler's directive, and the Partner's name.
func (p placed) name() string {
	name := p.handler.(caddy.Module).CaddyModule().ID.Name()
	if g, ok := p.handler.(*Gateway); ok {
		name += " " + g.title()
	}
	return name
}

// takesAllOf reports whether no request gets past a handler to a later one: of blocks handle that exclude each other,
// the first one takes the request, and a handler answers what one with the same settings would. It is false where that
// is not certain.
func (p placed) takesAllOf(later placed) bool {
	shared := 0
	for shared < len(p.through) && shared < len(later.through) && p.through[shared] == later.through[shared] {
		shared++
	}
	way, other := p.through[shared:], later.through[shared:]
	if len(way) > 0 && len(way[0].MatcherSets) > 0 && !(len(other) > 0 && takesAllOf(way[0], other[0])) {
		return false
	}
	if len(way) > 0 && way[0].Group != "" {
		return len(other) > 0 && other[0].Group == way[0].Group
	}
	if slices.ContainsFunc(way[min(1, len(way)):], func(r *caddyhttp.Route) bool {
		return len(r.MatcherSets) > 0 || r.Group != ""
	}) {
		return false
	}
	switch h := p.handler.(type) {
	case *SampleAgent, *Callback:
		return true
	case *Gateway: // which passes on what its callers do not ask for
		g, ok := later.handler.(*Gateway)
		return ok && g.BasePath == h.BasePath &&
			!slices.ContainsFunc(g.Callers, func(dialect string) bool { return !slices.Contains(h.Callers, dialect) })
	}
	return reflect.TypeOf(p.handler) == reflect.TypeOf(later.handler)
}

// takesAllOf reports whether a route matches every request that another one does, as far as hosts and paths say so.
func takesAllOf(route, other *caddyhttp.Route) bool {
	return slices.ContainsFunc(route.MatcherSets, func(set caddyhttp.MatcherSet) bool {
		return !slices.ContainsFunc(set, func(m any) bool { return !matchesAllOf(m, other) })
	})
}

func matchesAllOf(matcher any, other *caddyhttp.Route) bool {
	return len(other.MatcherSets) > 0 &&
		!slices.ContainsFunc(other.MatcherSets, func(set caddyhttp.MatcherSet) bool {
			return !slices.ContainsFunc(set, func(m any) bool {
				switch wide := matcher.(type) {
				case *caddyhttp.MatchPath:
					narrow, ok := m.(*caddyhttp.MatchPath)
					return ok && patternsTake(*wide, *narrow)
				case *caddyhttp.MatchHost:
					narrow, ok := m.(*caddyhttp.MatchHost)
					return ok && !slices.ContainsFunc(*narrow, func(host string) bool { return !slices.Contains(*wide, host) })
				}
				return false
			})
		})
}

// patternsTake reports whether each path of some patterns is one of others.
func patternsTake(wide, narrow []string) bool {
	return !slices.ContainsFunc(narrow, func(path string) bool {
		return !slices.ContainsFunc(wide, func(pattern string) bool {
			begin, open := strings.CutSuffix(pattern, "*")
			return pattern == path || open && !strings.Contains(begin, "*") && strings.HasPrefix(path, begin)
		})
	})
}

// writtenAt returns where a handler is written in the Caddyfile; empty for one that has no line there.
func (a *App) writtenAt(handler caddyhttp.MiddlewareHandler) string {
	var says conf.Fingerprint
	var same []caddyhttp.MiddlewareHandler // that say the same
	switch h := handler.(type) {
	case *Gateway:
		says = h.says
		for _, g := range a.members {
			if g.says == says {
				same = append(same, g)
			}
		}
	case *Console:
		says = h.says
		for _, c := range a.consoles {
			if c.says == says {
				same = append(same, c)
			}
		}
	}
	i := slices.Index(same, handler)
	if i < 0 {
		return ""
	}
	return conf.LineOf(says, i, len(same))
}
