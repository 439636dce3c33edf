// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/identity"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("aip_healthz", goneHealthz)
	httpcaddyfile.RegisterDirectiveOrder("aip_healthz", httpcaddyfile.Before, "respond")
}

// goneHealthz says what is written in place of a directive that is gone.
func goneHealthz(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next()
	return nil, h.Err("aip_healthz is gone; write aip_health with the option public, which answers the same")
}

// servePublic answers /healthz, and what is below it.
func servePublic(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	aic, below := strings.CutPrefix(r.URL.Path, "/healthz/")
	if r.URL.Path != "/healthz" && !below {
		return next.ServeHTTP(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return caddyhttp.Error(http.StatusMethodNotAllowed, errors.New("use GET"))
	}
	status, text := http.StatusOK, "ok\n"
	up, known := true, true
	if below {
		up, known = partnerIsUp(aic)
	}
	switch {
	case !known:
		status, text = http.StatusNotFound, "unknown\n"
	case !up || len(unready(running())) > 0:
		status, text = http.StatusServiceUnavailable, "unavailable\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, err := io.WriteString(w, text)
	return err
}

// partnerIsUp reports whether a Partner takes calls, as far as is known, and whether there is one with the AIC.
func partnerIsUp(aic string) (up, known bool) {
	name, err := identity.ParseAIC(aic)
	o := running()
	if err != nil || o == nil {
		return false, false
	}
	g := o.member(string(name))
	if g == nil || g.AIC == "" {
		return false, false
	}
	return g.isUp(), true
}

// member returns the handler of a Partner in the configuration that is in force; nil if there is none.
func (o *openStore) member(name string) *Gateway {
	for _, g := range o.members() {
		if g.name() == name {
			return g
		}
	}
	return nil
}

// inactive returns an error if the registry has disabled the Partner.
func (g *Gateway) inactive() error { return g.app.active.Check(g.AIC) }

// isDown reports whether the agent has not answered the last request.
func (g *Gateway) isDown() bool {
	now := g.gateway.Health()
	return now.Down()
}

// isUp reports whether a Partner is active at its registry, as far as is known, and its agent not down.
func (g *Gateway) isUp() bool { return g.inactive() == nil && !g.isDown() }

// healthy reports whether new tasks of the Partner are accepted, as far as is known.
func (g *Gateway) healthy() bool { return g.isUp() && len(unready(running())) == 0 }
