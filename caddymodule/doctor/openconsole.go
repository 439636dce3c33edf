// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
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

// somePolicies says how to close a Console that some connections reach without a certificate.
const somePolicies = "TLS asks only some of its connections for a certificate; give every site of its port the same " +
	"client_auth, or give its site a host of its own without a wildcard, without strict_sni_host insecure_off, and no " +
	"address at http_port, which has no TLS; or add basic_auth or forward_auth, without a matcher, to the site"

// Servers are those of Caddy.
type Servers map[*caddyhttp.Server]*noted

// noted is what is known of a server.
type noted struct {
	policies caddytls.ConnectionPolicies // as they stand in the configuration
	loose    bool                        // the host of a connection may be another than that of a request
	plain    bool                        // some of its addresses have no TLS, whatever its policies
	local    bool                        // only clients on this machine can connect to it
}

// ServersOf returns the servers of Caddy's app http. The first handler of the gateway that is provisioned asks for it:
// Caddy provisions the policies of a server after its routes, and then they no longer say which hosts they are for.
func ServersOf(app *caddyhttp.App) (Servers, error) {
	all := make(Servers)
	for _, s := range app.Servers {
		text, err := json.Marshal(s.TLSConnPolicies)
		if err != nil {
			return nil, err
		}
		n := &noted{loose: s.StrictSNIHost != nil && !*s.StrictSNIHost}
		if err := json.Unmarshal(text, &n.policies); err != nil {
			return nil, err
		}
		addresses, err := addressesOf(s)
		if err != nil {
			return nil, err
		}
		port := uint(cmp.Or(app.HTTPPort, caddyhttp.DefaultHTTPPort))
		n.plain = slices.ContainsFunc(addresses, func(at caddy.NetworkAddress) bool {
			return at.StartPort <= port && port <= at.EndPort
		})
		n.local = len(addresses) > 0 && !slices.ContainsFunc(addresses, func(at caddy.NetworkAddress) bool {
			ip, err := netip.ParseAddr(at.Host)
			return !at.IsUnixNetwork() && at.Host != "localhost" && (err != nil || !ip.IsLoopback())
		})
		all[s] = n
	}
	return all, nil
}

// addressesOf returns the addresses of a server, which may not be provisioned yet.
func addressesOf(s *caddyhttp.Server) (all []caddy.NetworkAddress, err error) {
	for _, written := range s.Listen {
		at, err := caddy.ParseNetworkAddress(caddy.NewReplacer().ReplaceAll(written, ""))
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
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
			leaders = append(leaders, trusted(n.reaching(p.hosts))...)
			if roots, some := p.HandedOn(); some {
				leaders = append(leaders, (&clientAuth{Files: roots}).trust())
			}
		}
	}
	for s, n := range all {
		for _, c := range ways[s].consoles {
			allow, public := c.Operators()
			policies := n.reaching(c.way.hosts)
			some := slices.ContainsFunc(policies, RequiresClients)
			byCertificate := some && !n.plain && !slices.ContainsFunc(policies, func(p *caddytls.ConnectionPolicy) bool {
				return !RequiresClients(p)
			})
			shown := max(c.way.all, c.way.console)
			one := Console{Handler: c.ConsoleHandler, Listen: s.Listen, Hosts: c.way.hosts, Allow: allow,
				Local: n.local && !byCertificate}
			one.AnyHost = shown < people && !byCertificate && len(c.way.hosts) == 0 && (n.local || !public)
			switch {
			case public, shown > anyone, one.Local && len(allow) == 0:
			case byCertificate:
				one.Why = sharedWith(trusted(policies), leaders)
			case n.local:
				one.Why = fmt.Sprintf("the console may %s, and %s; %s", strings.Join(allow, ", "), notProven,
					openConsoleAdvice)
			case some:
				one.Why = "the console shows all tasks, and " + somePolicies + orPublic
			default:
				one.Why = "the console shows all tasks, and " + notProven + "; " + openConsoleAdvice +
					"; or bind 127.0.0.1 in it" + orPublic
			}
			consoles = append(consoles, one)
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
