// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// OpenConsole is a handler aip_console that others than operators can open, and that does not say it is public.
type OpenConsole struct {
	Hosts []string // of the site; none for any
	Allow []string // what it may change
	Local bool     // only others on this machine can
	Why   string   // others can open it, and what mends that
}

// openConsoleAdvice says how to close an OpenConsole whose site does not authenticate its clients.
const openConsoleAdvice = `add client_auth with "mode require_and_verify" to the tls block of its site, ` +
	"or basic_auth or forward_auth to the site"

// orPublic ends the advice about an OpenConsole that is refused.
const orPublic = "; or, if everyone may see all tasks, write public in aip_console"

// OpenConsoles returns the open consoles of a server of Caddy's app http, which is given as JSON.
func OpenConsoles(text []byte) ([]OpenConsole, error) {
	var s server
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return s.openConsoles(), nil
}

// openConsoles returns the consoles that the gateway refuses, and those of which it warns: that may change something,
// and that every user of this machine can open.
func (s *server) openConsoles() (open []OpenConsole) {
	local := s.isLocal()
	for _, r := range s.allRoutes() {
		found, _ := s.consolesIn([]route{r})
		hosts := r.hosts()
		byCertificate := s.requiresClients(hosts)
		for _, c := range found {
			one := OpenConsole{Hosts: hosts, Allow: c.Allow, Local: local && !byCertificate}
			switch {
			case c.Public, one.Local && len(c.Allow) == 0, byCertificate && !s.sharesClients(hosts):
				continue
			case byCertificate:
				one.Why = "each certificate that opens an aip_gateway on this server opens the console, and it shows all " +
					"tasks; give its site another trust_pool, or add basic_auth or forward_auth to the site" + orPublic
			case local:
				one.Why = fmt.Sprintf("the console may %s, and its site does not authenticate its clients; %s",
					strings.Join(c.Allow, ", "), openConsoleAdvice)
			default:
				one.Why = "the console shows all tasks, and its site does not authenticate its clients; " +
					openConsoleAdvice + "; or bind 127.0.0.1 in it" + orPublic
			}
			open = append(open, one)
		}
	}
	return open
}

// isLocal reports whether only clients on this machine can connect to the server.
func (s *server) isLocal() bool {
	return len(s.Listen) > 0 && !slices.ContainsFunc(s.Listen, func(address string) bool {
		at, err := caddy.ParseNetworkAddress(address)
		if err != nil {
			return true
		}
		ip, err := netip.ParseAddr(at.Host)
		return !at.IsUnixNetwork() && at.Host != "localhost" && (err != nil || !ip.IsLoopback())
	})
}

// sharesClients reports whether a Partner of the server takes certificates of the CAs that the console of a host does.
func (s *server) sharesClients(hosts []string) bool {
	trusts := func(hosts []string) (all []string) {
		if len(hosts) == 0 {
			hosts = []string{""}
		}
		for _, host := range hosts {
			i := slices.IndexFunc(s.Policies, func(p *caddytls.ConnectionPolicy) bool { return isFor(p, host) })
			if i < 0 || s.Policies[i].ClientAuthentication == nil {
				continue
			}
			c := *s.Policies[i].ClientAuthentication
			c.Mode = ""
			if text, err := json.Marshal(&c); err == nil {
				all = append(all, string(text))
			}
		}
		return all
	}
	of := trusts(hosts)
	return slices.ContainsFunc(s.allRoutes(), func(r route) bool {
		return s.leadsTo(&r, "aip_gateway") &&
			slices.ContainsFunc(trusts(r.hosts()), func(trust string) bool { return slices.Contains(of, trust) })
	})
}

// hosts returns the hosts that a route is for; none for any.
func (r *route) hosts() (hosts []string) {
	for _, set := range r.Match {
		hosts = append(hosts, set.Host...)
	}
	return hosts
}

// allRoutes returns the routes by which requests come in, and those that answer errors.
func (s *server) allRoutes() []route { return slices.Concat(s.Routes, s.Errors.Routes) }

// invoked returns the routes of a handler invoke, and the server without them: what invokes itself has nothing more.
func (s *server) invoked(name string) ([]route, *server) {
	rest := *s
	rest.NamedRoutes = maps.Clone(s.NamedRoutes)
	delete(rest.NamedRoutes, name)
	return []route{s.NamedRoutes[name]}, &rest
}

// leadsTo reports whether a route has a handler of a kind, at any depth.
func (s *server) leadsTo(r *route, kind string) bool {
	return slices.ContainsFunc(r.Handle, func(raw json.RawMessage) bool {
		var h struct {
			Handler string  `json:"handler"`
			Name    string  `json:"name"`
			Routes  []route `json:"routes"`
		}
		if json.Unmarshal(raw, &h) != nil {
			return false
		}
		in := s
		if h.Handler == "invoke" {
			h.Routes, in = s.invoked(h.Name)
		}
		return h.Handler == kind || slices.ContainsFunc(h.Routes, func(r route) bool { return in.leadsTo(&r, kind) })
	})
}

// examineConsoles says which consoles are open to others than operators.
func (c *configuration) examineConsoles() (found []Finding) {
	for _, s := range c.Apps.HTTP.Servers {
		for _, open := range s.openConsoles() {
			subject, status := "aip_console", Broken
			if len(open.Hosts) > 0 {
				subject = strings.Join(open.Hosts, " ")
			}
			if open.Local {
				status = Warning
			}
			found = append(found, Finding{CheckConsole, status, subject, open.Why})
		}
	}
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.Subject, b.Subject) })
	return found
}

// requiresClients reports whether TLS requires certificates of the clients of all hosts. No hosts stand for any.
func (s *server) requiresClients(hosts []string) bool {
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	return !slices.ContainsFunc(hosts, func(host string) bool {
		i := slices.IndexFunc(s.Policies, func(p *caddytls.ConnectionPolicy) bool { return isFor(p, host) })
		return i < 0 || !RequiresClients(s.Policies[i])
	})
}

// isFor reports whether a policy, which is not provisioned yet, is for connections to a host, whatever the client's
// address. Those for clients of some addresses are for none.
func isFor(p *caddytls.ConnectionPolicy, host string) bool {
	if len(p.MatchersRaw) == 0 {
		return true
	}
	var names caddytls.MatchServerName
	raw, ok := p.MatchersRaw["sni"]
	return ok && len(p.MatchersRaw) == 1 && json.Unmarshal(raw, &names) == nil &&
		slices.ContainsFunc(names, func(name string) bool {
			label, domain, _ := strings.Cut(host, ".")
			return strings.EqualFold(name, host) || label != "" && strings.EqualFold(name, "*."+domain)
		})
}

// RequiresClients reports whether a policy, which may not be provisioned yet, accepts verified clients only.
func RequiresClients(p *caddytls.ConnectionPolicy) bool {
	if p.ClientAuthentication == nil {
		return false
	}
	switch c := p.ClientAuthentication; c.Mode {
	case "require_and_verify":
		return true
	case "": // the mode is require_and_verify if there is something to verify with
		return c.Active()
	}
	return false
}

// consoleSettings is what is read of a handler aip_console.
type consoleSettings struct {
	Allow  []string `json:"allow"`
	Public bool     `json:"public"`
}

// consolesIn returns the consoles in routes before which nothing says which clients get to them: no handler that
// authenticates, and no matcher. authenticated says whether a request that gets past these routes is authenticated.
func (s *server) consolesIn(routes []route) (open []consoleSettings, authenticated bool) {
	for _, r := range routes {
		if r.selectsClients() {
			continue
		}
		for _, raw := range r.Handle {
			var h struct {
				consoleSettings

				Handler        string            `json:"handler"`
				Name           string            `json:"name"`
				Routes         []route           `json:"routes"`
				HandleResponse []json.RawMessage `json:"handle_response"`
			}
			if json.Unmarshal(raw, &h) != nil {
				continue // Caddy refuses it
			}
			authenticates := false
			switch h.Handler {
			case "authentication":
				authenticates = true
			case "reverse_proxy":
				authenticates = len(h.HandleResponse) > 0 // forward_auth: some answers let the request pass
			case "subroute", "invoke":
				in := s
				if h.Handler == "invoke" {
					h.Routes, in = s.invoked(h.Name)
				}
				var more []consoleSettings
				more, authenticates = in.consolesIn(h.Routes)
				open = append(open, more...)
			case "aip_console":
				open = append(open, h.consoleSettings)
			}
			if !authenticates {
				continue
			}
			if r.Group == "" && !r.Terminal && r.takesConsole() {
				return open, true
			}
			break // what follows in this route is behind it
		}
	}
	return open, false
}

// selectsClients reports whether a route takes the requests of some clients only.
func (r *route) selectsClients() bool {
	for _, set := range r.Match {
		if len(set.RemoteIP)+len(set.ClientIP)+len(set.Expression)+len(set.Vars)+len(set.VarsRegexp) == 0 {
			return false
		}
	}
	return len(r.Match) > 0
}

// takesConsole reports whether a route takes the requests of the console, as far as their path is known.
func (r *route) takesConsole() bool {
	if len(r.Match) == 0 {
		return true
	}
	for _, set := range r.Match {
		if len(set.Path) == 0 || slices.ContainsFunc(set.Path, func(pattern string) bool {
			begin, open := strings.CutSuffix(pattern, "*")
			return open && strings.HasPrefix("/aip/", strings.ToLower(begin))
		}) {
			return true
		}
	}
	return false
}
