// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// Place is a handler of the gateway in the routes of a server, with the routes that lead to it, the outermost first.
type Place struct {
	Handler caddyhttp.MiddlewareHandler
	through []*caddyhttp.Route
}

// answering are the handlers that Places returns: those that answer some or all of the requests that get to them, and
// pass the others on.
var answering = []string{"aip_gateway", "aip_aun", "aip_callback", "aip_console", "aip_discovery", "aip_health",
	"aip_jwks", "aip_sample_agent"}

// passingOn are the handlers that change requests or answers, or serve some paths only, and pass all others on.
var passingOn = []string{"aip_aun", "aip_health", "aip_identify", "authentication", "encode", "headers", "intercept",
	"log_append", "map", "push", "request_body", "rewrite", "tracing", "vars"}

// passesOn reports whether a handler passes on what is not for a path of its own. One of another module may not.
func passesOn(h caddyhttp.MiddlewareHandler) bool { return slices.Contains(passingOn, handlerName(h)) }

// Places returns the handlers of the gateway in routes, in the order in which requests get to them.
func Places(routes caddyhttp.RouteList) []Place { return placesIn(routes, nil) }

func placesIn(routes caddyhttp.RouteList, through []*caddyhttp.Route) (all []Place) {
	for i := range routes {
		here := append(slices.Clone(through), &routes[i])
		for _, h := range routes[i].Handlers {
			if s, ok := h.(*caddyhttp.Subroute); ok {
				all = append(all, placesIn(s.Routes, here)...)
			} else if slices.Contains(answering, handlerName(h)) {
				all = append(all, Place{h, here})
			}
		}
	}
	return all
}

// Way is how requests get to a handler through the routes of a server.
type Way struct {
	Site  *caddyhttp.Route    // the outermost route
	Cut   string              // the begin of the path, which handlers on the way cut off, such as handle_path
	after caddyhttp.RouteList // what follows the handler where the path is cut as it is there
}

// WayTo returns the way to a handler; nil for none, or if it is not known.
func WayTo(s *caddyhttp.Server, h caddyhttp.MiddlewareHandler) *Way {
	if s == nil {
		return nil
	}
	return wayIn(s.Routes, "", h)
}

func wayIn(routes caddyhttp.RouteList, cut string, to caddyhttp.MiddlewareHandler) *Way {
	for i := range routes {
		here := cut
		for j, handler := range routes[i].Handlers {
			var w *Way
			switch h := handler.(type) {
			case *rewrite.Rewrite:
				here += strings.TrimSuffix(h.StripPathPrefix, "/")
			case *caddyhttp.Subroute:
				w = wayIn(h.Routes, here, to)
			}
			if handler == to {
				w = &Way{Cut: here}
			}
			if w == nil {
				continue
			}
			w.Site = &routes[i]
			if w.Cut == here {
				rest := caddyhttp.Route{Handlers: routes[i].Handlers[j+1:]}
				w.after = slices.Concat(w.after, caddyhttp.RouteList{rest}, routes[i+1:])
			}
			return w
		}
		if len(routes[i].MatcherSets) == 0 {
			cut = here // the routes that follow get the request, too
		}
	}
	return nil
}

// IsLast reports whether no handler may answer a request in place of the one at the end of the way that comes after it
// and gets the path as it does.
func (w *Way) IsLast(r *http.Request) bool { return !mayAnswer(w.after, r) }

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

// Hides reports whether no request gets past a handler to a later one: of blocks handle that exclude each other, the
// first one takes the request, and where nothing else lies between them, takes says whether the first one takes what is
// meant for the later one. It is false where that is not certain, such as between routes with different matchers.
func (p Place) Hides(later Place, takes func(first, later caddyhttp.MiddlewareHandler) bool) bool {
	shared := 0
	for shared < len(p.through) && shared < len(later.through) && p.through[shared] == later.through[shared] {
		shared++
	}
	way, other := p.through[shared:], later.through[shared:]
	if len(way) > 0 && len(way[0].MatcherSets) > 0 &&
		(len(other) == 0 || !reflect.DeepEqual(way[0].MatcherSets, other[0].MatcherSets)) {
		return false
	}
	if len(way) > 0 && way[0].Group != "" {
		return len(other) > 0 && other[0].Group == way[0].Group
	}
	certain := !slices.ContainsFunc(way[min(1, len(way)):], func(r *caddyhttp.Route) bool {
		return len(r.MatcherSets) > 0 || r.Group != ""
	})
	return certain && takes(p.Handler, later.Handler)
}

// Answers reports whether routes answer every request. A handler of another module may.
func Answers(routes caddyhttp.RouteList) bool {
	return slices.ContainsFunc(routes, func(r caddyhttp.Route) bool {
		return len(r.MatcherSets) == 0 && AnswersAll(&r)
	})
}

// AnswersAll reports whether a route answers every request that it takes, whatever its path.
func AnswersAll(r *caddyhttp.Route) bool {
	return slices.ContainsFunc(r.Handlers, func(h caddyhttp.MiddlewareHandler) bool {
		switch h := h.(type) {
		case *caddyhttp.Subroute:
			return Answers(h.Routes)
		case PartnerHandler:
			return h.Mount() == ""
		}
		return !passesOn(h)
	})
}
