// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"path"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

func init() {
	caddy.RegisterModule(new(AUNSite))
	httpcaddyfile.RegisterHandlerDirective("aip_aun", conf.Handler[AUNSite])
	httpcaddyfile.RegisterDirectiveOrder("aip_aun", httpcaddyfile.Before, "respond")
}

// AUNSite takes WebSockets of AUN clients at paths with aun, ws or (peer mode) acp at their end, and serves
// /.well-known/aun-gateway, /health, /pki/ and, on the hosts of agents, /agent.md. All other requests go to the next
// handler.
type AUNSite struct {
	app *App
}

// CaddyModule returns the Caddy module information.
func (*AUNSite) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_aun", New: func() caddy.Module { return new(AUNSite) }}
}

// Provision sets up the handler.
func (s *AUNSite) Provision(ctx caddy.Context) error {
	app, err := ctx.App("aip")
	if err != nil {
		return err
	}
	s.app = app.(*App)
	return nil
}

// ServeHTTP serves AUN clients and passes other requests on.
func (s *AUNSite) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if s.app.AUN == nil {
		return next.ServeHTTP(w, r)
	}
	if err := s.app.configuration.Ready(r.Context()); err != nil {
		return caddyhttp.Error(http.StatusServiceUnavailable, err)
	}
	switch path.Base(r.URL.Path) {
	case "aun", "ws", "acp":
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			s.app.configuration.Front.ServeHTTP(w, r)
			return nil
		}
	}
	if h := s.app.configuration.Site.Find(r); h != nil {
		h.ServeHTTP(w, r)
		return nil
	}
	return next.ServeHTTP(w, r)
}

// UnmarshalCaddyfile reads the directive. Syntax:
//
//	aip_aun
func (*AUNSite) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return conf.ReadDirective(d)
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*AUNSite)(nil)
	_ caddyhttp.MiddlewareHandler = (*AUNSite)(nil)
	_ caddyfile.Unmarshaler       = (*AUNSite)(nil)
)
