// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// TestForwardAuth: a reverse_proxy proves who opens a console only as forward_auth does, which asks by a GET and lets
// requests past for answers of success alone.
func TestForwardAuth(t *testing.T) {
	asks := func(method string, all ...caddyhttp.ResponseHandler) *reverseproxy.Handler {
		return &reverseproxy.Handler{Rewrite: &rewrite.Rewrite{Method: method}, HandleResponse: all}
	}
	of := func(statuses ...int) caddyhttp.ResponseHandler {
		return caddyhttp.ResponseHandler{Match: &caddyhttp.ResponseMatcher{StatusCode: statuses},
			Routes: caddyhttp.RouteList{on(nil, new(headers.Handler))}}
	}
	other := func(handler string, paths ...string) caddyhttp.ResponseHandler {
		return caddyhttp.ResponseHandler{Routes: caddyhttp.RouteList{on(paths, newHandler(handler))}}
	}
	replaced := of(404)
	replaced.StatusCode = "200"
	for name, tc := range map[string]struct {
		proxy *reverseproxy.Handler
		want  bool // the console is refused
	}{
		"as forward_auth":                  {asks("GET", of(2)), false},
		"for some answers of success":      {asks("GET", of(200, 204)), false},
		"by another method":                {asks("POST", of(2)), true},
		"for whatever is answered":         {asks("GET"), true},
		"for redirects, too":               {asks("GET", of(2, 3)), true},
		"for no status":                    {asks("GET", of()), true},
		"for errors, too":                  {asks("GET", of(2), of(4)), true},
		"with an answer to errors":         {asks("GET", of(2), other("copy_response")), false},
		"with an answer to some errors":    {asks("GET", of(2), other("copy_response", "/a")), true},
		"with an answer that is not known": {asks("GET", of(2), other("vars")), true},
		"with another status":              {asks("GET", of(2), replaced), false},
		"with a request that is handed on": {&reverseproxy.Handler{HandleResponse: asks("GET", of(2)).HandleResponse}, true},
	} {
		s := &caddyhttp.Server{Listen: []string{":8080"}, Routes: caddyhttp.RouteList{on(nil, tc.proxy, newConsole())}}
		found := consolesOf(t, s)
		if len(found) != 1 || (found[0].Refused() != nil) != tc.want {
			t.Errorf("%s: %+v, want it refused: %t", name, found, tc.want)
		}
	}
}

// newHandler returns a handler with a name.
func newHandler(name string) *handler { return &handler{name} }

// TestAddressedConsoles: a console for clients at some addresses is closed, and one for all addresses is open.
func TestAddressedConsoles(t *testing.T) {
	from := func(ranges ...string) any { return &caddyhttp.MatchRemoteIP{Ranges: ranges} }
	behind := func(ranges ...string) any { return &caddyhttp.MatchClientIP{Ranges: ranges} }
	for name, tc := range map[string]struct {
		sets []caddyhttp.MatcherSet
		want bool // the console is refused
	}{
		"a network":                     {[]caddyhttp.MatcherSet{{from("10.0.0.0/8", "::1")}}, false},
		"a network, behind a proxy":     {[]caddyhttp.MatcherSet{{behind("10.0.0.0/8")}}, false},
		"all addresses":                 {[]caddyhttp.MatcherSet{{from("10.0.0.0/8", "::/0")}}, true},
		"a placeholder without a value": {[]caddyhttp.MatcherSet{{from("{env.NO_SUCH_RANGE}")}}, true},
		"one of two networks":           {[]caddyhttp.MatcherSet{{from("10.0.0.0/8")}, {behind("192.0.2.1")}}, false},
		"a network, or a method":        {[]caddyhttp.MatcherSet{{from("10.0.0.0/8")}, {new(caddyhttp.MatchMethod)}}, true},
	} {
		r := on(nil, newConsole())
		for _, set := range tc.sets {
			r.MatcherSets = append(r.MatcherSets, set)
		}
		found := consolesOf(t, &caddyhttp.Server{Listen: []string{":8080"}, Routes: caddyhttp.RouteList{r}})
		if len(found) != 1 || (found[0].Refused() != nil) != tc.want {
			t.Errorf("%s: %+v, want it refused: %t", name, found, tc.want)
		}
	}
}
