// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/google/go-cmp/cmp"
)

// handler is a handler with a name, and a console or a Partner of one.
type handler struct{ name string }

func (h *handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: caddy.ModuleID("http.handlers." + h.name)}
}

func (*handler) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error { return nil }

type fakeConsole struct {
	handler
	allow  []string
	public bool
}

func (c *fakeConsole) Operators() ([]string, bool) { return c.allow, c.public }

type fakePartner struct {
	handler
	mount string
}

func (p *fakePartner) Mount() string            { return p.mount }
func (*fakePartner) HandedOn() ([]string, bool) { return nil, false }

func newConsole() *fakeConsole { return &fakeConsole{handler: handler{"aip_console"}} }

func newPartner(mount string) *fakePartner { return &fakePartner{handler{"aip_gateway"}, mount} }

// on returns a route by which handlers get requests for some paths.
func on(paths []string, handlers ...caddyhttp.MiddlewareHandler) caddyhttp.Route {
	r := caddyhttp.Route{Handlers: handlers}
	if len(paths) > 0 {
		r.MatcherSets = caddyhttp.MatcherSets{{(*caddyhttp.MatchPath)(&paths)}}
	}
	return r
}

// within returns a route of a group, whose routes exclude each other.
func within(group string, r caddyhttp.Route) caddyhttp.Route {
	r.Group = group
	return r
}

func sub(routes ...caddyhttp.Route) *caddyhttp.Subroute { return &caddyhttp.Subroute{Routes: routes} }

// TestConsoleWays holds what is proven of the requests that get to a console, where routes are as no Caddyfile makes
// them.
func TestConsoleWays(t *testing.T) {
	auth := new(caddyauth.Authentication)
	for name, c := range map[string]struct {
		routes func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList
		want   bool // it is refused
	}{
		"alone": {func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
			return caddyhttp.RouteList{on(nil, c)}
		}, true},
		"behind a proof": {func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
			return caddyhttp.RouteList{on(nil, auth, c)}
		}, false},
		"a proof of its paths": {func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
			return caddyhttp.RouteList{on([]string{"/aip/*"}, auth), on(nil, c)}
		}, false},
		"a proof of its paths, and one that may change them": {
			func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
				return caddyhttp.RouteList{on([]string{"/aip/*"}, auth), on(nil, new(handler{"other"}), c)}
			}, true},
		"a proof in a route of a group": {func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
			return caddyhttp.RouteList{within("a", on(nil, auth)), within("a", on(nil, c))}
		}, true},
		"a proof in a route of another group": {func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
			return caddyhttp.RouteList{within("a", on(nil, auth)), within("b", on(nil, c))}
		}, true},
		"a proof beside another matcher": {func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
			r := on([]string{"/aip/*"}, auth)
			r.MatcherSets[0] = append(r.MatcherSets[0], new(caddyhttp.MatchMethod{"GET"}))
			return caddyhttp.RouteList{r, on(nil, c)}
		}, true},
		"two ways, one with a proof": {func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
			return caddyhttp.RouteList{on(nil, sub(on([]string{"/a"}, auth, c))), on(nil, c)}
		}, true},
		"a proof that errors pass by": {func(c caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
			failing := sub(on(nil, auth))
			failing.Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{on(nil)}}
			return caddyhttp.RouteList{on(nil, failing, c)}
		}, true},
	} {
		console := newConsole()
		s := &caddyhttp.Server{Listen: []string{":8080"}, Routes: c.routes(console)}
		refused := false
		for _, found := range consolesOf(t, s) {
			refused = refused || found.Refused() != nil
		}
		if refused != c.want {
			t.Errorf("%s: it is refused: %t, want %t", name, refused, c.want)
		}
	}
}

// consolesOf returns the ways to the consoles of a server.
func consolesOf(t *testing.T, s *caddyhttp.Server) []Console {
	t.Helper()
	all, err := ServersOf(&caddyhttp.App{HTTPPort: 8080, Servers: map[string]*caddyhttp.Server{"one": s}})
	if err != nil {
		t.Fatal(err)
	}
	return all.Consoles()
}

// TestPlainAddress: certificates of clients are no proof at an address without TLS, and Caddy's http_port has none.
func TestPlainAddress(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := json.Marshal(map[string]any{"provider": "inline", "trusted_ca_certs": [][]byte{der}})
	if err != nil {
		t.Fatal(err)
	}
	for listen, want := range map[string]bool{":8443": false, ":8080": true, ":8000-8090": true, "127.0.0.1:8080": false,
		"{env.NONE}:8443": false} {
		s := &caddyhttp.Server{Listen: []string{"127.0.0.1:8444", listen}, Routes: caddyhttp.RouteList{on(nil, newConsole())},
			TLSConnPolicies: caddytls.ConnectionPolicies{{ClientAuthentication: &caddytls.ClientAuthentication{
				Mode: "require_and_verify", CARaw: ca}}}}
		found := consolesOf(t, s)
		if len(found) != 1 || (found[0].Refused() != nil) != want {
			t.Errorf("at %s: %+v, want it refused: %t", listen, found, want)
		}
	}
}

// TestOutermostHosts: the hosts of a console are those of the outermost route that names any, since a route in it takes
// no other hosts, whatever it names.
func TestOutermostHosts(t *testing.T) {
	host := func(name string, h caddyhttp.MiddlewareHandler) caddyhttp.Route {
		return caddyhttp.Route{MatcherSets: caddyhttp.MatcherSets{{new(caddyhttp.MatchHost{name})}},
			Handlers: []caddyhttp.MiddlewareHandler{h}}
	}
	console := newConsole()
	s := &caddyhttp.Server{Listen: []string{":443"},
		Routes: caddyhttp.RouteList{host("a.example", sub(host("*.example", console)))}}
	policy := func(name, mode string) *caddytls.ConnectionPolicy {
		return &caddytls.ConnectionPolicy{ClientAuthentication: &caddytls.ClientAuthentication{Mode: mode},
			MatchersRaw: caddy.ModuleMap{"sni": json.RawMessage(`["` + name + `"]`)}}
	}
	s.TLSConnPolicies = caddytls.ConnectionPolicies{policy("a.example", "request"),
		policy("*.example", "require_and_verify"), {}}
	found := consolesOf(t, s)
	if len(found) != 1 || found[0].Refused() == nil {
		t.Fatalf("%+v is accepted", found)
	}
	if diff := cmp.Diff("a.example :443", found[0].Site()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHides holds which handlers get no request because of one before them.
func TestHides(t *testing.T) {
	one, two := newPartner(""), newPartner("")
	at := func(first, later string) caddyhttp.RouteList {
		return caddyhttp.RouteList{on([]string{first}, one), on([]string{later}, two)}
	}
	grouped := func(first, later string) caddyhttp.RouteList {
		return caddyhttp.RouteList{within(first, on(nil, one)), within(later, on(nil, two))}
	}
	get := on(nil, one)
	get.MatcherSets = caddyhttp.MatcherSets{{new(caddyhttp.MatchMethod{"GET"})}}
	for name, c := range map[string]struct {
		routes      caddyhttp.RouteList
		takes, want bool
	}{
		"side by side":  {caddyhttp.RouteList{on(nil, one, two)}, true, true},
		"it takes less": {caddyhttp.RouteList{on(nil, one, two)}, false, false},
		"the same path": {at("/a", "/a"), true, true},
		"another path":  {at("/a", "/b"), true, false},
		"some methods":  {caddyhttp.RouteList{get, on(nil, two)}, true, false},
		"a part of it": {caddyhttp.RouteList{on(nil, sub(on([]string{"/a"}, one))), on(nil, two)},
			true, false},
		"in a group, though it takes less": {grouped("g", "g"), false, true},
		"of another group":                 {grouped("g", "h"), true, false},
	} {
		all := Places(c.routes)
		if len(all) != 2 {
			t.Fatalf("%s: there are %d handlers", name, len(all))
		}
		got := all[0].Hides(all[1], func(_, _ caddyhttp.MiddlewareHandler) bool { return c.takes })
		if got != c.want {
			t.Errorf("%s: the second one gets no request: %t, want %t", name, got, c.want)
		}
	}
}

// TestAnswers holds which routes answer every request.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		routes caddyhttp.RouteList
		want   bool
	}{
		"nothing":                     {nil, false},
		"a Partner at the root":       {caddyhttp.RouteList{on(nil, newPartner(""))}, true},
		"a Partner at a path":         {caddyhttp.RouteList{on(nil, newPartner("/a"))}, false},
		"some paths":                  {caddyhttp.RouteList{on([]string{"/a"}, newPartner(""))}, false},
		"headers":                     {caddyhttp.RouteList{on(nil, new(handler{"headers"}))}, false},
		"a handler that is not known": {caddyhttp.RouteList{on(nil, sub(on(nil, new(handler{"other"}))))}, true},
	} {
		if got := Answers(c.routes); got != c.want {
			t.Errorf("%s: every request is answered: %t, want %t", name, got, c.want)
		}
	}
}
