// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/identity"
)

func init() {
	caddy.RegisterModule(new(Challenge))
	httpcaddyfile.RegisterHandlerDirective("aip_challenge", conf.Handler[Challenge])
	httpcaddyfile.RegisterDirectiveOrder("aip_challenge", httpcaddyfile.Before, "respond")
}

// Challenge shows the files for authorities of ACPs v01.00, at <AIC>/<token> below the path of ca_challenge_url.
type Challenge struct{ storage agentca.Storage }

// CaddyModule returns the Caddy module information.
func (*Challenge) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_challenge", New: func() caddy.Module { return new(Challenge) }}
}

// Provision finds the storage.
func (c *Challenge) Provision(ctx caddy.Context) error {
	c.storage = ctx.Storage()
	return nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (c *Challenge) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) < 2 || r.Method != http.MethodGet {
		return caddyhttp.Error(http.StatusNotFound, nil)
	}
	aic, err := identity.ParseAIC(parts[len(parts)-2])
	token := parts[len(parts)-1]
	if err != nil || !agentca.IsToken(token) {
		return caddyhttp.Error(http.StatusNotFound, nil)
	}
	text, err := agentca.Challenge(r.Context(), c.storage, string(aic), token)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return caddyhttp.Error(http.StatusNotFound, nil)
	case err != nil:
		return caddyhttp.Error(http.StatusServiceUnavailable, err)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err = w.Write(text)
	return err
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Challenge)(nil)
	_ caddyhttp.MiddlewareHandler = (*Challenge)(nil)
	_ caddyfile.Unmarshaler       = (*Challenge)(nil)
)

// UnmarshalCaddyfile reads the directive. Syntax:
//
//	aip_challenge [<matcher>]
func (*Challenge) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { return conf.ReadDirective(d) }
