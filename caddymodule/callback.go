// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/upstream/callback"
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

// redacted is what stands in a log in place of a secret, as Caddy writes it.
const redacted = "REDACTED"

// masksPush has the access log of the site show a push without its secrets: who knows the address and the token of a
// turn can push in place of its agent. Caddy has noted the request before any handler, and shows it as it came. So its
// line is left out, and write writes another one when answer has the answer.
func masksPush(w http.ResponseWriter, r *http.Request) (answer http.ResponseWriter, write func()) {
	app := newest()
	if app == nil {
		return w, func() {}
	}
	log := app.access.Of(r)
	if log == nil {
		return w, func() {}
	}
	caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true)
	began, rec := time.Now(), caddyhttp.NewResponseRecorder(w, nil, nil)
	return rec, func() {
		level := slog.LevelInfo
		if rec.Status() >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		log.LogAttrs(context.WithoutCancel(r.Context()), level, "handled request",
			slog.Any("request", caddyhttp.LoggableHTTPRequest{Request: maskedPush(r)}),
			slog.Duration("duration", time.Since(began)), slog.Int("size", rec.Size()), slog.Int("status", rec.Status()))
	}
}

// maskedPush returns a push as a log may show it. Caddy masks Authorization.
func maskedPush(r *http.Request) *http.Request {
	shown := r.Clone(r.Context())
	for _, name := range callback.TokenFields {
		if shown.Header.Get(name) != "" {
			shown.Header.Set(name, redacted)
		}
	}
	shown.RequestURI = r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')+1] + redacted
	return shown
}

// Interface guards.
var (
	_ caddyhttp.MiddlewareHandler = (*Callback)(nil)
	_ caddyfile.Unmarshaler       = (*Callback)(nil)
)
