// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/authn"
	"github.com/aip-gateway/aip-gateway/identity"
)

// joined returns who calls, as the Leader that has all of its ids.
func joined(of *authn.Authenticator, ids *identity.Identities) func(*http.Request) (identity.Peer, error) {
	return func(r *http.Request) (identity.Peer, error) {
		peer, err := of.Authenticate(r)
		return ids.Of(peer), err
	}
}

// warnOfLoggedKeys warns of keys that access logs may show: Caddy hides the header Authorization alone.
func (g *Gateway) warnOfLoggedKeys() {
	if header := g.loggedKeys(); header != "" {
		g.log.Warn("callers send keys in a header that the access log of the site shows", "header", header,
			"advice", hideKeys(header))
	}
}

// loggedKeys returns the header in which callers send keys, if access logs of the site show it; empty if not.
func (g *Gateway) loggedKeys() string {
	k := g.Identity.Keys
	if k == nil || k.Header == "" || !g.logsAccess || slices.Contains(hiddenHeaders, strings.ToLower(k.Header)) {
		return ""
	}
	return k.Header
}

// hiddenHeaders are those whose values Caddy's access log does not show.
var hiddenHeaders = []string{"authorization", "cookie", "set-cookie", "proxy-authorization"}

// hideKeys says how keys in a header are kept out of access logs.
func hideKeys(header string) string {
	return "have callers send keys as Authorization: Bearer, which Caddy hides, or take the header out of the log: " +
		"format filter, with request>headers>" + header + " delete"
}
