// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
)

// warnWithoutClientAuth warns of a handler that requires certificates of Leaders, on a server that asks none for them.
// It cannot know which of the server's sites the handler belongs to, so it is silent if any of them asks.
func (g *Gateway) warnWithoutClientAuth(ctx caddy.Context, mode identity.Mode) {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	needed := slices.ContainsFunc(g.Callers, func(dialect string) bool { return dialect != gateway.AUN })
	if !ok || mode != identity.Required || !needed || g.Identity.others() ||
		slices.ContainsFunc(server.TLSConnPolicies, verifiesClients) {
		return
	}
	// What to do: add the lines in `advice`.
	g.log.Warn("identity is required, but the site verifies no client certificates: every call is refused",
		"listen", strings.Join(server.Listen, " "), "advice", doctor.NeedsClientAuth)
}

// verifiesClients reports whether a policy, which may not be provisioned yet, has certificates of clients verified.
func verifiesClients(p *caddytls.ConnectionPolicy) bool {
	return p != nil && (doctor.RequiresClients(p) ||
		p.ClientAuthentication != nil && p.ClientAuthentication.Mode == "verify_if_given")
}

// warnOfAddresses warns of each site of Partners that has an IP address for a name, and client_auth: Caddy refuses
// every request there.
func (a *App) warnOfAddresses() {
	warned := make(map[string]bool)
	for _, g := range a.members {
		if g.server == nil || g.server.StrictSNIHost == nil || !*g.server.StrictSNIHost {
			continue
		}
		for _, host := range g.hosts() {
			if net.ParseIP(host) != nil && !warned[host] {
				warned[host] = true
				g.log.Warn("the name of the site is an IP address, so that Caddy answers every request with 421",
					"host", host, "listen", strings.Join(g.server.Listen, " "), "advice", doctor.AddressAdvice(host))
			}
		}
	}
}
