// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// servers are those of Caddy that have handlers of the gateway, with their policies as they stand in the configuration.
type servers map[*caddyhttp.Server]json.RawMessage

// note keeps a server. Caddy provisions its policies after its routes, and then they do not say any more which hosts
// they are for.
func (a *App) note(s *caddyhttp.Server) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.servers[s]; ok {
		return nil
	}
	if a.servers == nil {
		a.servers = make(servers)
	}
	var err error
	a.servers[s], err = json.Marshal(s.TLSConnPolicies)
	return err
}

// judgeConsoles returns an error if others than operators can open a console that does not say it is public. It warns
// of each that may change something, and is for all users of this machine.
func (a *App) judgeConsoles() error {
	if len(a.consoles) == 0 {
		return nil
	}
	for i, c := range a.consoles {
		c.id = i
	}
	servers := make(map[string]any)
	for server, policies := range a.servers {
		servers[fmt.Sprintf("%p", server)] = writtenServer(server, policies)
	}
	text, err := json.Marshal(servers)
	var found []doctor.Console
	if err == nil {
		found, err = doctor.Consoles(text)
	}
	if err != nil {
		return fmt.Errorf("who may use aip_console is not known: %w", err)
	}
	for _, o := range found {
		c := a.consoles[o.ID]
		c.met, c.anyHost = true, c.anyHost || o.AnyHost
		site := strings.Join(append(o.Hosts, o.Listen...), " ")
		switch {
		case o.Why == "":
		case !o.Local:
			return fmt.Errorf("aip_console at %s: %s", site, o.Why)
		default:
			c.log.Warn("the console may change tasks, and its site does not authenticate its clients",
				"site", site, "allow", strings.Join(o.Allow, " "), "advice", o.Why)
		}
	}
	for _, c := range a.consoles {
		if !c.met && !c.Public {
			return fmt.Errorf("aip_console at %s stands in a handler of which it is not known who gets to it; place it in "+
				"the routes of the site; or, if everyone may see all tasks, write public in it",
				strings.Join(c.server.Listen, " "))
		}
	}
	return nil
}

// writtenServer returns a server that is provisioned as it stands in a configuration, with its policies, as far as it
// says who gets where.
func writtenServer(s *caddyhttp.Server, policies json.RawMessage) map[string]any {
	named := make(map[string]caddyhttp.Route)
	for name, r := range s.NamedRoutes {
		named[name] = written(caddyhttp.RouteList{*r})[0]
	}
	return map[string]any{"listen": s.Listen, "tls_connection_policies": policies, "strict_sni_host": s.StrictSNIHost,
		"routes": written(s.Routes), "named_routes": named, "errors": writtenErrors(s.Errors)}
}

func writtenErrors(on *caddyhttp.HTTPErrorConfig) (out caddyhttp.HTTPErrorConfig) {
	if on != nil {
		out.Routes = written(on.Routes)
	}
	return out
}

// written returns routes that are provisioned as they stand in a configuration, as far as it says who gets where.
func written(routes caddyhttp.RouteList) (out []caddyhttp.Route) {
	for _, r := range routes {
		w := caddyhttp.Route{Group: r.Group, Terminal: r.Terminal}
		for _, set := range r.MatcherSets {
			raw := caddy.ModuleMap{}
			for _, m := range set {
				switch m := m.(type) {
				case *caddyhttp.MatchPath, *caddyhttp.MatchHost, *caddyhttp.MatchRemoteIP, *caddyhttp.MatchClientIP:
					raw[m.(caddy.Module).CaddyModule().ID.Name()] = caddyconfig.JSON(m, nil)
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
		return map[string]any{"routes": written(h.Routes), "errors": writtenErrors(h.Errors)}
	case *caddyhttp.Invoke:
		return map[string]any{"name": h.Name}
	case *reverseproxy.Handler:
		responses := slices.Clone(h.HandleResponse)
		for i := range responses {
			responses[i].Routes = written(responses[i].Routes)
		}
		return map[string]any{"handle_response": responses}
	case *Gateway:
		return map[string]any{"identity": Identity{ClientCertHeader: h.Identity.ClientCertHeader}}
	case *Console:
		return map[string]any{"allow": h.Allow, "public": h.Public, "id": h.id}
	}
	return make(map[string]any)
}
