// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// Handlers before a Partner, such as handle_path, may cut off the begin of a path. Callers have it in their URLs, so it
// belongs to the mount point in all that names one.

// mountURL returns the URL at which this machine reaches the mount, as far as the configuration says it; empty if it
// does not.
func (g *Gateway) mountURL() string {
	if g.PublicURL != "" {
		return g.publicURL()
	}
	if g.server == nil || len(g.server.Listen) == 0 {
		return ""
	}
	at, err := caddy.ParseNetworkAddress(g.server.Listen[0])
	if err != nil || at.IsUnixNetwork() || at.IsFdNetwork() {
		return ""
	}
	u := url.URL{Scheme: "http", Host: "localhost", Path: g.BasePath}
	if way := doctor.WayTo(g.server, g); way != nil {
		u.Path = way.Cut + g.BasePath
	}
	for _, host := range slices.Backward(g.hosts()) {
		if !strings.ContainsAny(host, "*{") {
			u.Host = host
		}
	}
	port := int(at.StartPort)
	if len(g.server.TLSConnPolicies) > 0 {
		u.Scheme = "https"
	}
	if port != map[string]int{"http": caddyhttp.DefaultHTTPPort, "https": caddyhttp.DefaultHTTPSPort}[u.Scheme] {
		u.Host += ":" + strconv.Itoa(port)
	}
	return u.String()
}

// isAlone reports whether a part of the path was cut off, and no handler may answer the request in the Partner's place
// that comes after it and stands, as it does, where the path is cut. What follows further out is meant for whole paths:
// the /health of a site is not that of a mount at /agents/one.
func (g *Gateway) isAlone(r *http.Request) bool {
	if stripped(r) == "" {
		return false
	}
	way := doctor.WayTo(g.server, g)
	return way != nil && way.Cut != "" && way.IsLast(r)
}

// stripped returns what handle_path, or another handler, has cut off the path of a request.
func stripped(r *http.Request) string {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok || len(original.URL.Path) <= len(r.URL.Path) {
		return ""
	}
	cut, is := strings.CutSuffix(original.URL.Path, r.URL.Path)
	if !is {
		return ""
	}
	return cut
}
