// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
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
}

// consoleSettings is what is read of a handler aip_console.
type consoleSettings struct {
	Allow  []string `json:"allow"`
	Public bool     `json:"public"`
	ID     int      `json:"id"` // of the host's, where it asks
}

// foundConsole is a console in the routes, with what is proven of the requests that get to it.
type foundConsole struct {
	consoleSettings
	way way
}

// response is what is read of a handle_response.
type response struct {
	Match *struct {
		Status []int `json:"status_code"`
	} `json:"match"`
	Status json.RawMessage `json:"status_code"`
	Routes []route         `json:"routes"`
}

// consoles returns the consoles of a server, each once for each way to it.
func (s *server) consoles() (found []foundConsole) {
	add := func(c consoleSettings, w way) { found = append(found, foundConsole{c, w}) }
	s.walk(s.Routes, way{}, add)
	s.walk(s.Errors.Routes, way{}, add)
	for name := range s.NamedRoutes { // a console in a route that no handler invokes is found, and gets no request
		routes, rest := s.invoked(name)
		rest.walk(routes, way{all: people, console: people}, add)
	}
	return found
}

// walk follows requests through routes. It returns what is proven of those that get past them.
func (s *server) walk(routes []route, w way, found func(consoleSettings, way)) way {
	var group string
	var entered way
	for _, r := range routes {
		in := w
		if r.Group != "" && r.Group == group { // the routes of a group exclude each other
			in = entered
		}
		group, entered = r.Group, in
		w = r.after(w, s.through(&r, in.into(&r), found))
	}
	return w
}

// into returns what is proven of the requests that a route takes.
func (w way) into(r *route) way {
	if len(r.Match) == 0 {
		return w
	}
	if !slices.ContainsFunc(r.Match, func(m matcherSet) bool { return !m.selectsAddresses() }) {
		w.all, w.console = max(w.all, addressed), max(w.console, addressed)
	}
	if hosts := r.hosts(); len(hosts) > 0 {
		w.hosts = hosts
	}
	return w
}

// after returns what is proven of the requests that come after a route, of those before it and of those that get
// through its handlers.
func (r *route) after(before, through way) way {
	switch {
	case r.Terminal:
	case r.Group == "" && len(r.Match) == 0:
		before.all, before.console = through.all, through.console
	case r.Group == "" && r.takesConsole():
		before.console = through.console
	default:
		before.console = min(before.console, through.console)
	}
	return before
}

// through follows requests through the handlers of a route.
func (s *server) through(r *route, w way, found func(consoleSettings, way)) way {
	for _, raw := range r.Handle {
		var h struct {
			consoleSettings

			Handler string  `json:"handler"`
			Name    string  `json:"name"`
			Routes  []route `json:"routes"`
			Errors  struct {
				Routes []route `json:"routes"`
			} `json:"errors"`
			Responses []response `json:"handle_response"`
		}
		if json.Unmarshal(raw, &h) != nil { // Caddy knows better what it does
			w.console = w.all
			continue
		}
		switch h.Handler {
		case "authentication":
			w.all, w.console = people, people
		case "aip_console":
			found(h.consoleSettings, w)
		case "subroute":
			inner := s.walk(h.Routes, w, found)
			failed := s.walk(h.Errors.Routes, way{all: w.all, console: w.all, hosts: w.hosts}, found)
			if len(h.Errors.Routes) > 0 {
				inner.all, inner.console = min(inner.all, failed.all), min(inner.console, failed.console)
			}
			w = inner
		case "invoke":
			routes, rest := s.invoked(h.Name)
			w = rest.walk(routes, w, found)
		case "reverse_proxy":
			w = s.answered(h.Responses, w, found)
		default:
			if !keepsPath(h.Handler) {
				w.console = w.all
			}
		}
	}
	return w
}

// answered follows requests through a reverse_proxy, which lets some past it by its handle_response alone. It proves
// who they are if it does so for answers of success only, as forward_auth.
func (s *server) answered(responses []response, w way, found func(consoleSettings, way)) way {
	proves, out := len(responses) > 0, w
	for i := range responses {
		r := &responses[i]
		through := s.walk(r.Routes, w, found)
		out.console = min(out.console, through.console)
		proves = proves && (r.isSuccess() || len(r.Status) > 0 || ends(r.Routes))
	}
	if proves {
		out.all, out.console = people, people
	}
	return out
}

// isSuccess reports whether a handle_response is for answers of success only.
func (r *response) isSuccess() bool {
	return r.Match != nil && len(r.Match.Status) > 0 &&
		!slices.ContainsFunc(r.Match.Status, func(status int) bool { return status != 2 && status/100 != 2 })
}

// ends reports whether no request gets past routes, because one of them answers it.
func ends(routes []route) bool {
	return slices.ContainsFunc(routes, func(r route) bool {
		return len(r.Match) == 0 && r.Group == "" && slices.ContainsFunc(r.Handle, func(raw json.RawMessage) bool {
			var h struct {
				Handler string `json:"handler"`
			}
			return json.Unmarshal(raw, &h) == nil &&
				slices.Contains([]string{"copy_response", "error", "static_response"}, h.Handler)
		})
	})
}

// keepsPath reports whether a handler is known to leave the path of requests as it is.
func keepsPath(handler string) bool {
	return strings.HasPrefix(handler, "aip_") || slices.Contains([]string{"copy_response_headers", "encode", "error",
		"headers", "log_append", "map", "metrics", "request_body", "static_response", "tracing", "vars"}, handler)
}

// invoked returns the routes of a handler invoke, and the server without them: what invokes itself has nothing more.
func (s *server) invoked(name string) ([]route, *server) {
	rest := *s
	rest.NamedRoutes = maps.Clone(s.NamedRoutes)
	delete(rest.NamedRoutes, name)
	return []route{s.NamedRoutes[name]}, &rest
}

// hosts returns the hosts that a route is for; none for any.
func (r *route) hosts() (hosts []string) {
	for _, set := range r.Match {
		named := set.list("host")
		if len(named) == 0 {
			return nil
		}
		hosts = append(hosts, named...)
	}
	return hosts
}

// takesConsole reports whether a route surely takes all requests of the console: a matcher set says so by their path,
// and says nothing else.
func (r *route) takesConsole() bool {
	return slices.ContainsFunc(r.Match, func(set matcherSet) bool {
		return len(set) == 0 || len(set) == 1 && slices.ContainsFunc(set.list("path"), func(pattern string) bool {
			begin, open := strings.CutSuffix(pattern, "*")
			return open && strings.HasPrefix("/aip/", strings.ToLower(begin))
		})
	})
}

// selectsAddresses reports whether a matcher set takes the requests of clients at some addresses only.
func (m matcherSet) selectsAddresses() bool {
	return slices.ContainsFunc([]string{"remote_ip", "client_ip"}, func(name string) bool {
		var at struct {
			Ranges []string `json:"ranges"`
		}
		if raw, ok := m[name]; !ok || json.Unmarshal(raw, &at) != nil {
			return false
		}
		return !slices.ContainsFunc(at.Ranges, func(written string) bool {
			all := caddy.NewReplacer().ReplaceAll(written, "")
			return all == "" || strings.HasSuffix(all, "/0")
		})
	})
}
