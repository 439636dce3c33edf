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
)

// Console is a handler aip_console, with what is known of those who can open it.
type Console struct {
	ID     int      // that the JSON gives it
	Listen []string // of its server
	Hosts  []string // of the site; none for any
	Allow  []string // what it may change

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

// Consoles returns the consoles of the servers of Caddy's app http, which are given as JSON, each once for each way to
// it.
func Consoles(text []byte) ([]Console, error) {
	var all servers
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	return all.consoles(), nil
}

// servers are those of a configuration, by their names.
type servers map[string]server

// consoles returns the consoles of all servers, and what is wrong with each: others than operators can open it, or it
// may change something, and every user of this machine can open it.
func (all servers) consoles() (consoles []Console) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		local := s.isLocal()
		for _, c := range s.consoles() {
			byCertificate := s.requiresClients(c.way.hosts)
			shown := max(c.way.all, c.way.console)
			one := Console{ID: c.ID, Listen: s.Listen, Hosts: c.way.hosts, Allow: c.Allow, Local: local && !byCertificate}
			one.AnyHost = shown < people && !byCertificate && len(c.way.hosts) == 0 && (local || !c.Public)
			switch {
			case c.Public, shown > anyone, one.Local && len(c.Allow) == 0:
			case byCertificate:
				one.Why = all.sharesClients(&s, c.way.hosts)
			case local:
				one.Why = fmt.Sprintf("the console may %s, and %s; %s", strings.Join(c.Allow, ", "), notProven,
					openConsoleAdvice)
			default:
				one.Why = "the console shows all tasks, and " + notProven + "; " + openConsoleAdvice +
					"; or bind 127.0.0.1 in it" + orPublic
			}
			consoles = append(consoles, one)
		}
	}
	return consoles
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

// examineConsoles says which consoles are open to others than operators.
func (c *configuration) examineConsoles() (found []Finding) {
	for _, open := range c.Apps.HTTP.Servers.consoles() {
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
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.Subject, b.Subject) })
	return found
}
