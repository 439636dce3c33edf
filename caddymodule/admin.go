// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

func init() { caddy.RegisterModule(new(Admin)) }

// Admin adds the routes of package adminapi to Caddy's admin API.
type Admin struct{}

// CaddyModule returns the Caddy module information.
func (*Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.aip", New: func() caddy.Module { return new(Admin) }}
}

// Routes implements caddy.AdminRouter.
func (*Admin) Routes() (list []caddy.AdminRoute) {
	handlers := adminHandlers()
	for _, route := range adminapi.Routes {
		list = append(list, caddy.AdminRoute{Pattern: route.Path, Handler: forCaddy(handlers[route.Path])})
	}
	return list
}

// forCaddy makes a handler of Caddy's admin API, which logs and writes errors.
func forCaddy(h operator.Handler) caddy.AdminHandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := h(w, r)
		if refused, ok := errors.AsType[*operator.Refusal](err); ok {
			return caddy.APIError{HTTPStatus: refused.Status, Err: refused}
		}
		return err
	}
}

// adminHandlers are the handlers of all routes, by path.
func adminHandlers() map[string]operator.Handler {
	all := operator.Handlers(runningAdmin)
	for path, handler := range all {
		all[path] = func(w http.ResponseWriter, r *http.Request) error {
			if err := handler(w, r); err != nil {
				return operator.Refused(err, doctor.Explained)
			}
			return nil
		}
	}
	all[adminapi.HealthLive], all[adminapi.HealthReady] = serveHealth, serveHealth // also where there is no store
	return all
}

// runningAdmin returns what answers operators about the running configuration.
func runningAdmin() (*operator.Admin, error) {
	if o := running(); o != nil {
		return o.admin, nil
	}
	return nil, &operator.Refusal{Status: http.StatusServiceUnavailable, Reason: "no aip_gateway is configured"}
}

// openAdmin has the gateway answer operators, and other gateways.
func openAdmin(n *node.Node) *operator.Admin {
	return operator.Open(n, operator.Config{Log: logOf("aip"),
		Of: func(c *node.Configuration) *operator.Configuration { return c.Host().(*App).operated }})
}

// forOperators returns what the configuration has for operators. partners are those of the members.
func (a *App) forOperators(partners node.Partners) *operator.Configuration {
	return &operator.Configuration{
		TraceLink: a.Traces.of, Servers: a.Discovery.Clients(), Keepers: a.Certificates.All,
		Settings: func(partner string) []adminapi.Setting {
			is := func(p *node.Partner) bool { return p.Name == partner }
			return a.members[slices.IndexFunc(partners, is)].settings()
		},
		Registrants: a.registrants(partners),
	}
}

// secretSettings are the settings of a Partner that hold secrets, by name, with those below them.
var secretSettings = []string{"agent.header_up", "group.token_key"}

// settings returns the settings of the Partner, for operators.
func (g *Gateway) settings() []adminapi.Setting { return operator.SettingsOf(g, secretSettings...) }

// registrants returns those of the Partners whose AIC the registry assigns: one for each URL.
func (a *App) registrants(partners node.Partners) (all []*operator.Registrant) {
	for i, g := range a.members {
		same := func(other *operator.Registrant) bool { return other.URL == g.registration() }
		if !g.registered || slices.ContainsFunc(all, same) {
			continue
		}
		all = append(all, &operator.Registrant{
			Partner: partners[i], URL: g.registration(), Account: a.account,
			Register: func(ctx context.Context, o *adminapi.RegistrationOrder) (*registry.Record, error) {
				record, err := g.register(ctx, o)
				if record == nil {
					err = doctor.Advised(err)
				}
				return record, err
			},
			HasAIC: strings.Contains(g.PublicURL, "{AIC}"), NamedBy: a.named,
		})
	}
	return all
}

// named returns where the configuration names an AIC.
func (a *App) named(aic string) (list []string) {
	if _, named := a.Identities[aic]; named {
		list = append(list, "its line in identities")
	}
	for _, g := range a.members {
		if slices.Contains(g.Allow, aic) {
			list = append(list, "the allow of "+g.title())
		}
	}
	return list
}

// Interface guards.
var _ caddy.AdminRouter = (*Admin)(nil)
