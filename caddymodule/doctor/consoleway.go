// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/intercept"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// guard is how it is proven who gets to a place in the routes. What is not proven does not count.
type guard int

const (
	anyone    guard = iota
	addressed       // clients at some addresses
	people          // clients that prove who they are
)

// way is what is proven of the requests that get to a place in the routes.
type way struct {
	all     guard    // of all requests
	console guard    // of those whose path is one of the console's at this place
	hosts   []string // that the requests name; none for any
	renamed bool     // a handler may have changed the host
}

// walker follows requests through the routes of a server, and collects the handlers of the gateway that they get to:
// each once for each way to it.
type walker struct {
	named    map[string]*caddyhttp.Route
	invoked  []string // those of named to which a handler leads
	consoles []foundConsole
	partners []foundPartner
}

type foundConsole struct {
	ConsoleHandler
	way way
}

type foundPartner struct {
	PartnerHandler
	hosts []string
}

// walkServer follows requests through all routes of a server. Anyone may get to a named route that no known handler
// invokes.
func walkServer(s *caddyhttp.Server) *walker {
	w := &walker{named: s.NamedRoutes}
	w.walk(s.Routes, way{})
	w.walk(errorRoutes(s.Errors), way{})
	for name, r := range s.NamedRoutes {
		if !slices.Contains(w.invoked, name) {
			w.walk(caddyhttp.RouteList{*r}, way{})
		}
	}
	return w
}

func errorRoutes(on *caddyhttp.HTTPErrorConfig) caddyhttp.RouteList {
	if on == nil {
		return nil
	}
	return on.Routes
}

// walk follows requests through routes. It returns what is proven of those that get past them.
func (k *walker) walk(routes caddyhttp.RouteList, w way) way {
	var group string
	var entered way
	for i := range routes {
		r, in := &routes[i], w
		if r.Group != "" && r.Group == group { // the routes of a group exclude each other
			in = entered
		}
		group, entered = r.Group, in
		w = w.past(r, k.through(handlersOf(r), in.into(r)))
	}
	return w
}

// into returns what is proven of the requests that a route takes.
func (w way) into(r *caddyhttp.Route) way {
	sets := matchersOf(r)
	if len(sets) == 0 {
		return w
	}
	if !slices.ContainsFunc(sets, func(set caddyhttp.MatcherSet) bool {
		return !slices.ContainsFunc(set, selectsAddresses)
	}) {
		w.all, w.console = max(w.all, addressed), max(w.console, addressed)
	}
	if len(w.hosts) == 0 && !w.renamed {
		w.hosts = HostsOf(r)
	}
	return w
}

// past returns what is proven of the requests that come after a route: of those before it, and of those that get
// through its handlers.
func (w way) past(r *caddyhttp.Route, through way) way {
	w.renamed = w.renamed || through.renamed
	switch {
	case r.Terminal:
	case r.Group == "" && len(matchersOf(r)) == 0:
		w.all, w.console = through.all, through.console
	case r.Group == "" && takesConsole(r):
		w.console = through.console
	default:
		w.console = min(w.console, through.console)
	}
	return w
}

// through follows requests through handlers.
func (k *walker) through(handlers []caddyhttp.MiddlewareHandler, w way) way {
	for _, handler := range handlers {
		switch h := handler.(type) {
		case ConsoleHandler:
			k.consoles = append(k.consoles, foundConsole{h, w})
		case PartnerHandler:
			k.partners = append(k.partners, foundPartner{h, w.hosts})
		case *caddyauth.Authentication:
			w.all, w.console = people, people
		case *caddyhttp.Subroute:
			inner := k.walk(h.Routes, w)
			if failing := errorRoutes(h.Errors); len(failing) > 0 {
				failed := k.walk(failing, way{all: w.all, console: w.all, hosts: w.hosts, renamed: inner.renamed})
				inner.all, inner.console = min(inner.all, failed.all), min(inner.console, failed.console)
			}
			w = inner
		case *caddyhttp.Invoke:
			if r := k.named[h.Name]; r != nil {
				k.invoked = append(k.invoked, h.Name)
				k.named[h.Name] = nil // what invokes itself has nothing more
				w = k.walk(caddyhttp.RouteList{*r}, w)
				k.named[h.Name] = r
			}
		case *reverseproxy.Handler:
			w = k.answered(h, w)
		case *intercept.Intercept: // later handlers may have changed what is answered
			for _, r := range h.HandleResponse {
				k.walk(r.Routes, way{all: w.all, console: w.all, hosts: w.hosts, renamed: true})
			}
		case *headers.Handler:
			w.renamed = w.renamed || h.Request != nil
		default:
			if !keepsPath(handler) {
				w.console, w.renamed = w.all, true
			}
		}
	}
	return w
}

// answered follows requests through a reverse_proxy, which lets some past it by its handle_response alone. It proves
// who they are if it asks by a GET of its own, and lets them past for answers of success only, as forward_auth.
func (k *walker) answered(h *reverseproxy.Handler, w way) way {
	proves, out := len(h.HandleResponse) > 0 && h.Rewrite != nil && h.Rewrite.Method == http.MethodGet, w
	for _, r := range h.HandleResponse {
		out.console = min(out.console, k.walk(r.Routes, w).console)
		proves = proves && (isSuccess(r.Match) || r.StatusCode != "" || ends(r.Routes))
	}
	if proves {
		out.all, out.console = people, people
	}
	return out
}

// isSuccess reports whether a handle_response is for answers of success only.
func isSuccess(m *caddyhttp.ResponseMatcher) bool {
	return m != nil && len(m.StatusCode) > 0 &&
		!slices.ContainsFunc(m.StatusCode, func(status int) bool { return status != 2 && status/100 != 2 })
}

// ends reports whether no request gets past routes, because one of them answers it.
func ends(routes caddyhttp.RouteList) bool {
	return slices.ContainsFunc(routes, func(r caddyhttp.Route) bool {
		return len(matchersOf(&r)) == 0 && r.Group == "" &&
			slices.ContainsFunc(handlersOf(&r), func(h caddyhttp.MiddlewareHandler) bool {
				return slices.Contains([]string{"copy_response", "error", "static_response"}, handlerName(h))
			})
	})
}

// keepsPath reports whether a handler is known to leave the path of requests as it is.
func keepsPath(h caddyhttp.MiddlewareHandler) bool {
	name := handlerName(h)
	return strings.HasPrefix(name, "aip_") || slices.Contains([]string{"copy_response_headers", "encode", "error",
		"log_append", "map", "metrics", "request_body", "static_response", "tracing", "vars"}, name)
}

// handlerName returns the name that a handler has in a configuration; empty for one that is no module.
func handlerName(h caddyhttp.MiddlewareHandler) string {
	if m, ok := h.(caddy.Module); ok {
		return m.CaddyModule().ID.Name()
	}
	return ""
}

// HostsOf returns the hosts that a route is for; none for any.
func HostsOf(r *caddyhttp.Route) (hosts []string) {
	for _, set := range matchersOf(r) {
		i := slices.IndexFunc(set, func(m any) bool { _, is := m.(*caddyhttp.MatchHost); return is })
		if i < 0 {
			return nil
		}
		hosts = append(hosts, *set[i].(*caddyhttp.MatchHost)...)
	}
	return hosts
}

// takesConsole reports whether a route surely takes all requests of the console: a matcher set says so by their path,
// and says nothing else.
func takesConsole(r *caddyhttp.Route) bool {
	return slices.ContainsFunc(matchersOf(r), func(set caddyhttp.MatcherSet) bool {
		if len(set) != 1 {
			return len(set) == 0
		}
		path, _ := set[0].(*caddyhttp.MatchPath)
		return path != nil && slices.ContainsFunc(*path, func(pattern string) bool {
			begin, open := strings.CutSuffix(pattern, "*")
			return open && strings.HasPrefix("/aip/", strings.ToLower(begin))
		})
	})
}

// selectsAddresses reports whether a matcher takes the requests of clients at some addresses only.
func selectsAddresses(matcher any) bool {
	var ranges []string
	switch m := matcher.(type) {
	case *caddyhttp.MatchRemoteIP:
		ranges = m.Ranges
	case *caddyhttp.MatchClientIP:
		ranges = m.Ranges
	default:
		return false
	}
	return !slices.ContainsFunc(ranges, func(written string) bool {
		all := caddy.NewReplacer().ReplaceAll(written, "")
		return all == "" || strings.HasSuffix(all, "/0")
	})
}
