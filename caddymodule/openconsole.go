// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// note keeps the server of a handler that is provisioned.
func (a *App) note(s *caddyhttp.Server, h caddyhttp.MiddlewareHandler) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers == nil {
		a.servers = make(doctor.Servers)
	}
	return a.servers.Note(s, h)
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
