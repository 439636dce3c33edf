// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// warnOfOpenConsoles warns of each console that may change something, on a site that does not authenticate its
// clients.
func (a *App) warnOfOpenConsoles() {
	warned := make(map[*caddyhttp.Server]bool)
	for _, c := range a.consoles {
		if warned[c.server] {
			continue
		}
		warned[c.server] = true
		text, err := json.Marshal(map[string]any{
			"tls_connection_policies": c.policies, "routes": written(c.server.Routes),
		})
		var open []doctor.OpenConsole
		if err == nil {
			open, err = doctor.OpenConsoles(text)
		}
		if err != nil {
			c.log.Warn("who may use the console is not known", "error", err)
			continue
		}
		for _, o := range open {
			c.log.Warn("the console may change tasks, and its site does not authenticate its clients",
				"site", strings.Join(append(o.Hosts, c.server.Listen...), " "), "allow", strings.Join(o.Allow, " "),
				"advice", doctor.OpenConsoleAdvice)
		}
	}
}

// written returns routes that are provisioned as they stand in a configuration, as far as it says who gets where.
func written(routes caddyhttp.RouteList) (out []caddyhttp.Route) {
	for _, r := range routes {
		w := caddyhttp.Route{Group: r.Group, Terminal: r.Terminal}
		for _, set := range r.MatcherSets {
			raw := caddy.ModuleMap{}
			for _, m := range set {
				switch m := m.(type) {
				case *caddyhttp.MatchPath:
					raw["path"] = caddyconfig.JSON(m, nil)
				case *caddyhttp.MatchHost:
					raw["host"] = caddyconfig.JSON(m, nil)
				}
			}
			w.MatcherSetsRaw = append(w.MatcherSetsRaw, raw)
		}
		for _, h := range r.Handlers {
			if m, ok := h.(caddy.Module); ok {
				w.HandlersRaw = append(w.HandlersRaw,
					caddyconfig.JSONModuleObject(said(h), "handler", m.CaddyModule().ID.Name(), nil))
			}
		}
		out = append(out, w)
	}
	return out
}

// said returns what a handler says about who gets past it.
func said(h caddyhttp.MiddlewareHandler) map[string]any {
	switch h := h.(type) {
	case *caddyhttp.Subroute:
		return map[string]any{"routes": written(h.Routes)}
	case *reverseproxy.Handler:
		return map[string]any{"handle_response": make([]struct{}, len(h.HandleResponse))}
	case *Console:
		return map[string]any{"allow": h.Allow}
	}
	return make(map[string]any)
}
