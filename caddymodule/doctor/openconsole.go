// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// ConsoleHandler is a handler aip_console of a configuration that is provisioned.
type ConsoleHandler interface {
	caddyhttp.MiddlewareHandler

	// Operators returns what its page may change, and whether everyone may open it.
	Operators() (allow []string, public bool)
}

// PartnerHandler is a handler aip_gateway of a configuration that is provisioned.
type PartnerHandler interface {
	caddyhttp.MiddlewareHandler

	// Mount returns the path under which the Partner is mounted; empty for all.
	Mount() string

	// HandedOn returns the files with the roots of certificates that a proxy hands on, and whether it takes any.
	HandedOn() (roots []string, some bool)
}

// Console is a way to a handler aip_console, with what is known of those who can take it.
type Console struct {
	Handler ConsoleHandler
	Listen  []string // of its server
	Hosts   []string // of the site; none for any
	Allow   []string // what it may change

	// Local: only clients on this machine can open it, and they do not prove who they are.
	Local bool

	// AnyHost: a page of a stranger reaches it by a browser that can connect to it. Nothing on the way to the console
	// says which host a request must name, or who has sent it.
	AnyHost bool

	// Why says who else than operators can open it, and what mends that. It is empty where that is in order, or public.
	Why string
}

// openConsoleAdvice says how to close a Console whose site does not authenticate its clients.
const openConsoleAdvice = `add client_auth with "mode require_and_verify" to the tls block of its site, ` +
	"or basic_auth or forward_auth, without a matcher, to the site"

// orPublic ends the advice about a Console that is refused.
const orPublic = "; or, if everyone may see all tasks, write public in aip_console"

// notProven says of a Console that its site may authenticate its clients.
const notProven = "it is not proven that its site authenticates all who open it"

// Servers are those of Caddy that have handlers of the gateway.
type Servers map[*caddyhttp.Server]*noted

// noted is what is kept of a server.
type noted struct {
	policies caddytls.ConnectionPolicies // as they stand in the configuration
	consoles []ConsoleHandler
}

// Note keeps a server, for each handler of the gateway that is provisioned, and the handler, if it is a console. Caddy
// provisions the policies of a server after its routes, and then they do not say any more which hosts they are for.
func (all Servers) Note(s *caddyhttp.Server, h caddyhttp.MiddlewareHandler) error {
	if all[s] == nil {
		text, err := json.Marshal(s.TLSConnPolicies)
		if err != nil {
			return err
		}
		all[s] = new(noted)
		if err := json.Unmarshal(text, &all[s].policies); err != nil {
			return err
		}
	}
	if c, ok := h.(ConsoleHandler); ok {
		all[s].consoles = append(all[s].consoles, c)
	}
	return nil
}

// Policies returns the policies of a server as they stand in the configuration; none for one that was not noted.
func (all Servers) Policies(s *caddyhttp.Server) caddytls.ConnectionPolicies {
	if all[s] == nil {
		return nil
	}
	return all[s].policies
}

// Consoles returns the ways to the consoles of all servers, and what is wrong with each: others than operators can take
// it, or it may change something, and every user of this machine can take it. What is not understood counts as open.
func (all Servers) Consoles() (consoles []Console) {
	ways := make(map[*caddyhttp.Server]*walker)
	var leaders []trust
	for s, n := range all {
		ways[s] = walkServer(s)
		for _, p := range ways[s].partners {
			leaders = append(leaders, trusted(n.policies, p.hosts)...)
			if roots, some := p.HandedOn(); some {
				leaders = append(leaders, (&clientAuth{Files: roots}).trust())
			}
		}
	}
	for s, n := range all {
		local := isLocal(s)
		for _, c := range ways[s].consoles {
			allow, public := c.Operators()
			byCertificate := requiresClients(s, n.policies, c.way.hosts)
			shown := max(c.way.all, c.way.console)
			one := Console{Handler: c.ConsoleHandler, Listen: s.Listen, Hosts: c.way.hosts, Allow: allow,
				Local: local && !byCertificate}
			one.AnyHost = shown < people && !byCertificate && len(c.way.hosts) == 0 && (local || !public)
			switch {
			case public, shown > anyone, one.Local && len(allow) == 0:
			case byCertificate:
				one.Why = sharedWith(trusted(n.policies, c.way.hosts), leaders)
			case local:
				one.Why = fmt.Sprintf("the console may %s, and %s; %s", strings.Join(allow, ", "), notProven,
					openConsoleAdvice)
			default:
				one.Why = "the console shows all tasks, and " + notProven + "; " + openConsoleAdvice +
					"; or bind 127.0.0.1 in it" + orPublic
			}
			consoles = append(consoles, one)
		}
		for _, c := range n.consoles {
			if _, public := c.Operators(); !public && !ways[s].meets(c) {
				consoles = append(consoles, Console{Handler: c, Listen: s.Listen, Why: "it stands in a handler of which it is " +
					"not known who gets to it; place it in the routes of the site" + orPublic})
			}
		}
	}
	slices.SortFunc(consoles, func(a, b Console) int { return strings.Compare(a.Site(), b.Site()) })
	return consoles
}

// Site returns the names and the addresses of its site.
func (c *Console) Site() string { return strings.Join(slices.Concat(c.Hosts, c.Listen), " ") }

// Refused returns why the configuration of a Console is refused; nil if it is not.
func (c *Console) Refused() error {
	if c.Why == "" || c.Local {
		return nil
	}
	return fmt.Errorf("aip_console at %s: %s", c.Site(), c.Why)
}

// isLocal reports whether only clients on this machine can connect to a server.
func isLocal(s *caddyhttp.Server) bool {
	return len(s.Listen) > 0 && !slices.ContainsFunc(s.Listen, func(address string) bool {
		at, err := caddy.ParseNetworkAddress(address)
		if err != nil {
			return true
		}
		ip, err := netip.ParseAddr(at.Host)
		return !at.IsUnixNetwork() && at.Host != "localhost" && (err != nil || !ip.IsLoopback())
	})
}

// consoleFindings says which consoles are open to others than operators.
func consoleFindings(consoles []Console) (found []Finding) {
	for _, open := range consoles {
		if open.Why == "" {
			continue
		}
		subject, status := "aip_console", Broken
		if len(open.Hosts) > 0 {
			subject = strings.Join(open.Hosts, " ")
		}
		if open.Local {
			status = Warning
		}
		found = append(found, Finding{CheckConsole, status, subject, open.Why})
	}
	return found
}
