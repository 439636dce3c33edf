// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/intercept"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/console"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

func init() {
	caddy.RegisterModule(new(Console))
	httpcaddyfile.RegisterHandlerDirective("aip_console", conf.Handler[Console])
	httpcaddyfile.RegisterDirectiveOrder("aip_console", httpcaddyfile.Before, "respond")
}

// Console serves the page for operators at /aip/console/, and its routes of the admin API. All other requests go to the
// next handler. It shows the contents of all tasks and identifies no one. See docs/operations.md#the-console.
//
// Without public, a configuration is refused, by caddy validate too, unless one of these is proven of everyone at the
// console:
//
//   - They connect from this machine: bind 127.0.0.1, or a Unix socket.
//   - They have client certificates (require_and_verify) of CAs for no aip_gateway, from the pools file, aip_file and
//     inline, or named one by one (trusted_leaf_cert, verifier leaf). Without a host of its own, the site has this from
//     all sites of its port. http_port has no TLS. A CA of an aip_gateway has the CAs above it beside it in trust_pool.
//   - basic_auth or forward_auth stands before it, without a matcher or with one by path for /aip/*.
//   - The handle or route around it has a matcher by remote_ip or client_ip.
//
// Other matchers prove nothing. With an address as its only protection, plain HTTP is answered for an IP address, for
// localhost, or for a name of the site, else with 421.
type Console struct {
	// Changes by the page: cancel (tasks), fail (tasks, whatever the agent answers), replay (dead letters), endpoints
	// (disable and enable webhooks), leave (groups), try (start tasks as the operator). Default: none; it reads.
	Allow []string `json:"allow,omitempty"`

	// Everyone at the site may open it. Default: false.
	Public bool `json:"public,omitempty"`

	handler console.Handler
	app     *App
	server  *caddyhttp.Server
	log     *slog.Logger

	// What the start of the app has found.
	anyHost bool // nothing before it looks at the host that a request names
}

// CaddyModule returns the Caddy module information.
func (*Console) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_console", New: func() caddy.Module { return new(Console) }}
}

// Provision sets up the handler.
func (c *Console) Provision(ctx caddy.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	c.handler.API = adminHandler()
	app, err := ctx.App("aip")
	if err != nil {
		return err
	}
	c.app, c.log = app.(*App), ctx.Slogger()
	var ok bool
	if c.server, ok = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); !ok {
		return errors.New("aip_console stands outside of a server of the app http; place it in the routes of a site")
	}
	return cmp.Or(c.checkPlace(ctx.Modules()), c.app.judgeServers(ctx))
}

// check checks the settings.
func (c *Console) check() (err error) {
	c.handler.Allow, err = console.ParsePermissions(c.Allow)
	return err
}

// adminHandler returns the gateway's routes of the admin API as a handler for a site.
func adminHandler() http.Handler {
	mux := http.NewServeMux()
	for path, handler := range adminHandlers() {
		mux.Handle(path, handler)
	}
	return mux
}

// ServeHTTP answers the requests for the page, and of the page.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !c.handler.Serves(r.URL.Path) {
		return next.ServeHTTP(w, r)
	}
	if err := c.app.configuration.Ready(r.Context()); err != nil { // a console that is refused answers nothing
		adminapi.Refuse(w, http.StatusServiceUnavailable, "the gateway is starting, or its configuration was replaced")
		return nil
	}
	if c.anyHost && strange(r) {
		adminapi.Refuse(w, http.StatusMisdirectedRequest, "open the console by an IP address or by localhost; or, to open "+
			"it by this name, write the name in the address of its site")
		return nil
	}
	c.handler.ServeHTTP(w, r)
	return nil
}

// strange reports whether a request may come from a page of a stranger, in a browser that the stranger's name of this
// address has led here: by no other way does such a page read what it asks for. Over TLS, the name needs a certificate;
// no browser connects to a Unix socket.
func strange(r *http.Request) bool {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); r.TLS != nil || ok && at.Network() == "unix" {
		return false
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(host)
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err != nil && host != "localhost" && !strings.HasSuffix(host, ".localhost")
}

// UnmarshalCaddyfile reads the directive. Syntax:
//
//	aip_console {
//		allow <permission>...
//		public
//	}
func (c *Console) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return conf.ReadOptions(d, c, func(p *conf.Parser, c *Console) conf.Options {
		return conf.Options{"allow": p.Words(&c.Allow), "public": p.Flag(&c.Public)}
	}, (*Console).check)
}

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

// Interface guards.
var (
	_ caddy.Provisioner           = (*Console)(nil)
	_ caddyhttp.MiddlewareHandler = (*Console)(nil)
	_ caddyfile.Unmarshaler       = (*Console)(nil)
	_ doctor.ConsoleHandler       = (*Console)(nil)
)
