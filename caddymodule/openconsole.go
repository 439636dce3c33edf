// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// refuseOpenConsoles returns an error if others than operators can open a console that does not say it is public. It
// warns of each that may change something, and is for all users of this machine.
func (a *App) refuseOpenConsoles() error {
	examined := make(map[*caddyhttp.Server]bool)
	for _, c := range a.consoles {
		if examined[c.server] {
			continue
		}
		examined[c.server] = true
		named := make(map[string]caddyhttp.Route)
		for name, r := range c.server.NamedRoutes {
			named[name] = written(caddyhttp.RouteList{*r})[0]
		}
		var onErrors caddyhttp.HTTPErrorConfig
		if c.server.Errors != nil {
			onErrors.Routes = written(c.server.Errors.Routes)
		}
		text, err := json.Marshal(map[string]any{
			"listen": c.server.Listen, "tls_connection_policies": c.policies, "routes": written(c.server.Routes),
			"named_routes": named, "errors": onErrors,
		})
		var open []doctor.OpenConsole
		if err == nil {
			open, err = doctor.OpenConsoles(text)
		}
		if err != nil {
			return fmt.Errorf("who may use aip_console is not known: %w", err)
		}
		for _, o := range open {
			site := strings.Join(append(o.Hosts, c.server.Listen...), " ")
			if !o.Local {
				return fmt.Errorf("aip_console at %s: %s", site, o.Why)
			}
			c.log.Warn("the console may change tasks, and its site does not authenticate its clients",
				"site", site, "allow", strings.Join(o.Allow, " "), "advice", o.Why)
		}
	}
	return nil
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
				case caddy.Module: // that it is there is what counts
					raw[m.CaddyModule().ID.Name()] = json.RawMessage("true")
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
	case *caddyhttp.Invoke:
		return map[string]any{"name": h.Name}
	case *reverseproxy.Handler:
		return map[string]any{"handle_response": make([]struct{}, len(h.HandleResponse))}
	case *Console:
		return map[string]any{"allow": h.Allow, "public": h.Public}
	}
	return make(map[string]any)
}
