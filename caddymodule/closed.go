// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// closedPlaces returns where no Leader may have the gateway connect to, whatever networks are allowed: the admin API,
// the sites of this configuration, its agents and its decision points. All of them take who comes from the machine of
// the gateway, or with its credentials, for the gateway. a.mu is held.
func (a *App) closedPlaces() (all []egress.Place) {
	all = placesAt(a.admin.at, nil)
	for _, server := range a.allServers() {
		for _, site := range sitesOf(server) {
			for _, listen := range server.Listen {
				if at, err := caddy.ParseNetworkAddress(listen); err == nil {
					all = append(all, placesAt(at, site)...)
				}
			}
		}
	}
	add := func(raw string, byName bool) {
		if at, ok := placeOf(raw, byName); ok {
			all = append(all, at)
		}
	}
	for _, g := range a.members {
		add(g.PublicURL, true)
		add(g.Agent.URL, false)
		if g.Policy != nil && g.Policy.Decide != nil {
			add(g.Policy.Decide.URL, false)
		}
	}
	return all
}

// placesAt returns the places of a server that listens, with the names of a site; none for any.
func placesAt(at caddy.NetworkAddress, names []string) (all []egress.Place) {
	if at.Network == "" || at.IsUnixNetwork() || at.IsFdNetwork() {
		return nil
	}
	for port := at.StartPort; port <= at.EndPort && port > 0; port++ {
		all = append(all, egress.Place{Host: at.Host, Port: uint16(port), Names: names})
	}
	return all
}

// placeOf returns the place of a URL. byName says that its address may be that of a proxy, for others, too. So may that
// of a server with TLS, which shows for which name it is, unless the URL has no name but an address or localhost.
func placeOf(raw string, byName bool) (at egress.Place, ok bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return at, false
	}
	secure := u.Scheme == "https" || u.Scheme == "wss"
	at.Host = u.Hostname()
	name := strings.ToLower(strings.TrimSuffix(at.Host, "."))
	_, notAddress := netip.ParseAddr(name)
	if byName || secure && notAddress != nil && name != "localhost" {
		at.Names = []string{name}
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case err == nil:
		at.Port = uint16(port)
	case secure:
		at.Port = caddyhttp.DefaultHTTPSPort
	default:
		at.Port = caddyhttp.DefaultHTTPPort
	}
	return at, true
}

// serversOf returns the servers of Caddy's app http, if there is one.
func serversOf(ctx caddy.Context) (all []*caddyhttp.Server) {
	if app, err := ctx.AppIfConfigured("http"); err == nil {
		for _, server := range app.(*caddyhttp.App).Servers {
			all = append(all, server)
		}
	}
	return all
}

// sitesOf returns the names of each site of a server with a handler of the gateway; none for one that has any name.
// What agents push needs no more than its own token (aip_callback), and an agent may be another mount of the gateway.
func sitesOf(server *caddyhttp.Server) (all [][]string) {
	for _, named := range server.NamedRoutes {
		if isOwn(caddyhttp.RouteList{*named}) {
			return [][]string{nil} // any site may invoke it
		}
	}
	for i := range server.Routes {
		if isOwn(server.Routes[i : i+1]) {
			all = append(all, namesOf(&server.Routes[i]))
		}
	}
	return all
}

func isOwn(routes caddyhttp.RouteList) bool {
	return slices.ContainsFunc(doctor.Places(routes), func(p doctor.Place) bool {
		_, forAgents := p.Handler.(*Callback)
		return !forAgents
	})
}

// namesOf returns the names for which a route is; none where it may be for any.
func namesOf(route *caddyhttp.Route) (names []string) {
	for _, name := range doctor.HostsOf(route) {
		if strings.ContainsAny(name, "*{") {
			return nil
		}
		names = append(names, strings.ToLower(name))
	}
	return names
}
