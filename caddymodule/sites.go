// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
)

// warnOfUnrouted warns of each site that mounts Partners at paths, and leaves others to nothing: Caddy answers those
// with 200 and no body, which a Leader with a wrong URL takes for success. That is Caddy's rule for every site, so the
// operator decides, and not a handler that is there for its mount point only.
func (a *App) warnOfUnrouted() {
	warned := make(map[*caddyhttp.Route]bool)
	for _, g := range a.members {
		way := doctor.WayTo(g.server, g)
		if way == nil || warned[way.Site] || doctor.Answers(g.server.Routes) || doctor.AnswersAll(way.Site) {
			continue
		}
		warned[way.Site] = true
		// What to do: add the line in `advice`.
		g.log.Warn("requests that no route of the site takes are answered with 200 and no body",
			"listen", strings.Join(g.server.Listen, " "), "advice",
			`add to the site: respond "nothing is served at this path" 404`)
	}
}

// warnOfUnreachable warns of each handler that no request gets to, because another one before it takes them all.
func (a *App) warnOfUnreachable(log *slog.Logger) {
	for server := range a.servers {
		all := doctor.Places(server.Routes)
		for i, later := range all {
			j := slices.IndexFunc(all[:i], func(first doctor.Place) bool {
				return first.Hides(later, takes)
			})
			if j < 0 {
				continue
			}
			// What to do: give them different paths.
			log.Warn("no request gets to a handler, since one before it takes them all",
				"handler", directiveOf(later.Handler), "before", directiveOf(all[j].Handler),
				"listen", strings.Join(server.Listen, " "))
		}
	}
}

// directiveOf returns a handler's directive, and the Partner's name.
func directiveOf(h caddyhttp.MiddlewareHandler) string {
	name := h.(caddy.Module).CaddyModule().ID.Name()
	if g, ok := h.(*Gateway); ok {
		name += " " + g.title()
	}
	return name
}

// takes reports whether a handler answers what is meant for a later one, as one with the same settings would.
func takes(first, later caddyhttp.MiddlewareHandler) bool {
	switch h := first.(type) {
	case *SampleAgent, *Callback:
		return true
	case *Health: // which has other paths where it is public
		other, ok := later.(*Health)
		return ok && other.Public == h.Public
	case *Gateway: // which passes on what its callers do not ask for
		g, ok := later.(*Gateway)
		return ok && g.BasePath == h.BasePath &&
			!slices.ContainsFunc(g.Callers, func(dialect string) bool { return !slices.Contains(h.Callers, dialect) })
	}
	return reflect.TypeOf(first) == reflect.TypeOf(later)
}

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

// door returns where callers get to the Partner.
func (g *Gateway) door() doctor.Door {
	return doctor.Door{Partner: g.name(), Path: g.BasePath, Mode: g.Identity.Mode}
}
