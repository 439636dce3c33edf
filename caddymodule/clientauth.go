// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
)

// warnWithoutClientAuth warns of a handler that requires certificates of Leaders, on a server that asks none for them.
// It cannot know which of the server's sites the handler belongs to, so it is silent if any of them asks.
func (g *Gateway) warnWithoutClientAuth(ctx caddy.Context, mode identity.Mode) {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	needed := slices.ContainsFunc(g.Callers, func(dialect string) bool { return dialect != gateway.AUN })
	if !ok || mode != identity.Required || !needed || g.Identity.Others() ||
		slices.ContainsFunc(server.TLSConnPolicies, doctor.VerifiesClients) {
		return
	}
	// What to do: add the lines in `advice`.
	g.log.Warn("identity is required, but the site verifies no client certificates: every call is refused",
		"listen", strings.Join(server.Listen, " "), "advice", doctor.NeedsClientAuth)
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

// warnOfSharedTasks warns of each Partner that has a mount whose callers are believed, beside one where they prove who
// they are: the tasks are the same.
func (a *App) warnOfSharedTasks() {
	doors := make([]doctor.Door, len(a.members))
	for i, g := range a.members {
		doors[i] = g.door()
	}
	for i, other := range doctor.SharedTasks(doors) {
		a.members[i].log.Warn("identity is off, and a mount of the same Partner, where it is not, has the same tasks",
			"mount", other.Path+"/", "identity", other.Mode, "advice", doctor.SeparateTasks)
	}
}
