// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

func init() {
	caddy.RegisterModule(new(Callback))
	httpcaddyfile.RegisterHandlerDirective("aip_callback", conf.Handler[Callback])
	httpcaddyfile.RegisterDirectiveOrder("aip_callback", httpcaddyfile.Before, "respond")
}

// Callback receives pushes of agents, at the URL of notify { callback }, on a site without client certificates: each
// turn has its own address and token, REDACTED in the access log. It answers every request, so give it a matcher. See
// docs/webhooks.md#agents-that-push.
type Callback struct{}

// CaddyModule returns the Caddy module information.
func (*Callback) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_callback", New: func() caddy.Module { return new(Callback) }}
}

// ServeHTTP receives a push notification.
func (*Callback) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	w, write := masksPush(w, r)
	defer write()
	if has, _ := process.Callbacks.Has(r.URL.Path, r.Header); !has {
		if o := running(); o != nil && o.Shards.Peers() != nil && o.Pushes.Forward(w, r) {
			return nil
		}
	}
	process.Callbacks.ServeHTTP(w, r)
	return nil
}

// UnmarshalCaddyfile reads the directive. Syntax:
//
//	aip_callback [<matcher>]
func (*Callback) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return conf.ReadDirective(d)
}

// Interface guards.
var (
	_ caddyhttp.MiddlewareHandler = (*Callback)(nil)
	_ caddyfile.Unmarshaler       = (*Callback)(nil)
)
