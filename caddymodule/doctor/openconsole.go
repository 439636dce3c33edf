// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// OpenConsole is a handler aip_console that may change something, on a site that does not authenticate its
// clients.
type OpenConsole struct {
	Hosts []string // of the site; none for any
	Allow []string
}

// OpenConsoleAdvice is what closes an OpenConsole.
const OpenConsoleAdvice = `add client_auth with "mode require_and_verify" to the tls block of its site, ` +
	"or basic_auth or forward_auth to the site"

// OpenConsoles returns the open consoles of a server of Caddy's app http, which is given as JSON.
func OpenConsoles(text []byte) ([]OpenConsole, error) {
	var s server
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return s.openConsoles(), nil
}

func (s *server) openConsoles() (open []OpenConsole) {
	for _, r := range s.Routes {
		var hosts []string
		for _, set := range r.Match {
			hosts = append(hosts, set.Host...)
		}
		if s.requiresClients(hosts) {
			continue
		}
		found, _ := openIn([]route{r})
		for _, allow := range found {
			open = append(open, OpenConsole{hosts, allow})
		}
	}
	return open
}

// examineConsoles says which consoles are open to everyone.
func (c *configuration) examineConsoles() (found []Finding) {
	for _, s := range c.Apps.HTTP.Servers {
		for _, open := range s.openConsoles() {
			subject := "aip_console"
			if len(open.Hosts) > 0 {
				subject = strings.Join(open.Hosts, " ")
			}
			found = append(found, Finding{CheckConsole, Warning, subject, fmt.Sprintf("the console may %s, and its site "+
				"does not authenticate its clients; %s", strings.Join(open.Allow, ", "), OpenConsoleAdvice)})
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

// openIn returns the permissions of the consoles in routes that may change something, and before which no
// handler authenticates the client. authenticated says whether a request that gets past these routes is authenticated.
func openIn(routes []route) (open [][]string, authenticated bool) {
	for _, r := range routes {
		for _, raw := range r.Handle {
			var h struct {
				Handler        string            `json:"handler"`
				Routes         []route           `json:"routes"`
				HandleResponse []json.RawMessage `json:"handle_response"`
				Allow          []string          `json:"allow"`
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
			case "subroute":
				var more [][]string
				more, authenticates = openIn(h.Routes)
				open = append(open, more...)
			case "aip_console":
				if len(h.Allow) > 0 {
					open = append(open, h.Allow)
				}
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
