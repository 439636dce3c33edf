// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/intercept"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// judgeServers finds the servers of Caddy, and judges their consoles. Each handler calls it while it is provisioned,
// and the first one does it: what is provisioned later is judged as it is written.
func (a *App) judgeServers(ctx caddy.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers != nil {
		return nil
	}
	app, err := ctx.App("http")
	if err != nil {
		return err
	}
	if a.servers, err = doctor.ServersOf(app.(*caddyhttp.App)); err != nil {
		return err
	}
	for _, o := range a.Consoles() {
		if err := o.Refused(); err != nil {
			return err
		}
	}
	return nil
}

// checkPlace returns an error if a console that does not say it is public stands in a handler that is not known.
func (c *Console) checkPlace(within []caddy.Module) error {
	for _, m := range within {
		switch m.(type) {
		case *caddyhttp.App, *caddyhttp.Subroute, *reverseproxy.Handler, *intercept.Intercept, *Console:
		default:
			if !c.Public {
				return fmt.Errorf("it is not known who gets to aip_console in the handler %s; place it in the routes of the "+
					"site; or, if everyone may see all tasks, write public in aip_console", m.CaddyModule().ID.Name())
			}
		}
	}
	return nil
}

// Consoles implements doctor.Examiner.
func (a *App) Consoles() []doctor.Console { return a.servers.Consoles() }

// judgeConsoles returns an error if others than operators can open a console that does not say it is public. It warns
// of each that may change something, and is for all users of this machine.
func (a *App) judgeConsoles() error {
	for _, o := range a.Consoles() {
		if err := o.Refused(); err != nil {
			return err
		}
		c := o.Handler.(*Console)
		c.anyHost = c.anyHost || o.AnyHost
		if o.Why != "" {
			// What to do: see `advice`.
			c.log.Warn("the console may change tasks, and its site does not authenticate its clients",
				"site", o.Site(), "allow", strings.Join(o.Allow, " "), "advice", o.Why)
		}
	}
	return nil
}

// Operators implements doctor.ConsoleHandler.
func (c *Console) Operators() (allow []string, public bool) { return c.Allow, c.Public }

// Mount implements doctor.PartnerHandler.
func (g *Gateway) Mount() string { return g.BasePath }

// HandedOn implements doctor.PartnerHandler.
func (g *Gateway) HandedOn() (roots []string, some bool) {
	if h := g.Identity.ClientCertHeader; h != nil {
		return h.TrustPool, true
	}
	return nil, false
}

// Interface guards.
var (
	_ doctor.ConsoleHandler = (*Console)(nil)
	_ doctor.PartnerHandler = (*Gateway)(nil)
)
