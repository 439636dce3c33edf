// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

func init() {
	caddy.RegisterModule(new(Health))
	httpcaddyfile.RegisterHandlerDirective("aip_health", conf.Handler[Health])
	httpcaddyfile.RegisterDirectiveOrder("aip_health", httpcaddyfile.Before, "respond")
	httpcaddyfile.RegisterHandlerDirective("aip_healthz", goneHealthz)
	httpcaddyfile.RegisterDirectiveOrder("aip_healthz", httpcaddyfile.Before, "respond")
}

// Health answers /aip/health/live and /aip/health/ready of the admin API on a site for an orchestrator. All other
// requests go to the next handler. The answers name agents and the store's directory: without public, the site must not
// be public.
type Health struct {
	// Answers pollers without a certificate, and names nothing, at /healthz in place of /aip/health: 200 and ok, or 503
	// while no new tasks are accepted; /healthz/<aic> is about one Partner, and 503 also while its agent is down or its
	// registry has it disabled. Default: false.
	Public bool `json:"public,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*Health) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_health", New: func() caddy.Module { return new(Health) }}
}

// ServeHTTP answers the health routes.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.Public {
		return servePublic(w, r, next)
	}
	if r.URL.Path != adminapi.HealthLive && r.URL.Path != adminapi.HealthReady {
		return next.ServeHTTP(w, r)
	}
	if bad, ok := errors.AsType[*operator.Refusal](serveHealth(w, r)); ok {
		return caddyhttp.Error(bad.Status, bad)
	}
	return nil
}

// UnmarshalCaddyfile reads the directive. Syntax:
//
//	aip_health {
//		public
//	}
func (h *Health) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return conf.ReadOptions(d, h, func(p *conf.Parser, h *Health) conf.Options {
		return conf.Options{"public": p.Flag(&h.Public)}
	}, func(*Health) error { return nil })
}

// serveHealth answers a health route.
func serveHealth(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return &operator.Refusal{Status: http.StatusMethodNotAllowed, Reason: "use GET"}
	}
	health := adminapi.Health{Status: adminapi.Live}
	if r.URL.Path == adminapi.HealthReady {
		health = readiness()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if health.Status == adminapi.Unready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	return json.NewEncoder(w).Encode(health)
}

// readiness returns whether the running configuration accepts new tasks, and what it knows of its agents.
func readiness() adminapi.Health {
	h := adminapi.Health{Status: adminapi.Ready}
	o := running()
	if app := newestApp(o); app != nil {
		h.Store = &adminapi.StoreHealth{Driver: o.Store.Name, Writable: true}
		if err := o.Storage.Writable(); err != nil {
			h.Store.Writable, h.Store.Reason = false, err.Error()
		}
		for p := range app.configuration.Partners().Each() {
			h.Agents = append(h.Agents, operator.HealthOf(p))
		}
		h.Streams = process.Streams.Total()
		h.Revocation, h.Roots = operator.SourcesOf(&app.configuration.Trust), operator.RootsOf(&process.Roots)
	}
	if h.Reasons = unready(o); len(h.Reasons) > 0 {
		h.Status = adminapi.Unready
	}
	return h
}

// newestApp returns the newest configuration of the running one's store; nil for none.
func newestApp(o *openStore) *App {
	if o == nil {
		return nil
	}
	return o.newest()
}

// unready returns why the running configuration accepts no new tasks. It asks nothing.
func unready(o *openStore) (reasons []string) {
	if newestApp(o) == nil {
		reasons = append(reasons, "no aip_gateway is configured, or it is starting")
	} else {
		// Caddy starts its apps in any order, and makes a configuration the active one when all have started. A reload
		// keeps the former one until then, whose sites listen.
		if _, err := caddy.ActiveContext().AppIfConfigured("aip"); err != nil && !caddy.Exiting() {
			reasons = append(reasons, "Caddy is starting: its sites may not listen yet")
		}
		if err := o.Storage.Writable(); err != nil {
			reasons = append(reasons, fmt.Sprintf("the store accepts no new tasks: %v", err))
		}
		if since := o.Tasks.Process().Draining(); !since.IsZero() {
			reasons = append(reasons, "the operator drains the gateway since "+since.Format(time.RFC3339))
		}
	}
	if caddy.Exiting() {
		reasons = append(reasons, "Caddy is stopping")
	}
	return reasons
}

// goneHealthz says what is written in place of a directive that is gone.
func goneHealthz(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next()
	return nil, h.Err("aip_healthz is gone; write aip_health with the option public, which answers the same")
}

// servePublic answers /healthz, and what is below it.
func servePublic(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	aic, below := strings.CutPrefix(r.URL.Path, "/healthz/")
	if r.URL.Path != "/healthz" && !below {
		return next.ServeHTTP(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return caddyhttp.Error(http.StatusMethodNotAllowed, errors.New("use GET"))
	}
	status, text := http.StatusOK, "ok\n"
	up, known := true, true
	if below {
		up, known = partnerIsUp(aic)
	}
	switch {
	case !known:
		status, text = http.StatusNotFound, "unknown\n"
	case !up || len(unready(running())) > 0:
		status, text = http.StatusServiceUnavailable, "unavailable\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, err := io.WriteString(w, text)
	return err
}

// partnerIsUp reports whether a Partner takes calls, as far as is known, and whether there is one with the AIC.
func partnerIsUp(aic string) (up, known bool) {
	name, err := identity.ParseAIC(aic)
	o := running()
	if err != nil || o == nil {
		return false, false
	}
	g := o.member(string(name))
	if g == nil || g.AIC == "" {
		return false, false
	}
	return g.isUp(), true
}

// member returns the handler of a Partner in the configuration that is in force; nil if there is none.
func (o *openStore) member(name string) *Gateway {
	for _, g := range o.members() {
		if g.name() == name {
			return g
		}
	}
	return nil
}

// inactive returns an error if the registry has disabled the Partner.
func (g *Gateway) inactive() error { return g.app.active.Check(g.AIC) }

// isDown reports whether the agent has not answered the last request.
func (g *Gateway) isDown() bool {
	now := g.gateway.Health()
	return now.Down()
}

// isUp reports whether a Partner is active at its registry, as far as is known, and its agent not down.
func (g *Gateway) isUp() bool { return g.inactive() == nil && !g.isDown() }

// healthy reports whether new tasks of the Partner are accepted, as far as is known.
func (g *Gateway) healthy() bool { return g.isUp() && len(unready(running())) == 0 }

// Interface guards.
var (
	_ caddyhttp.MiddlewareHandler = (*Health)(nil)
	_ caddyfile.Unmarshaler       = (*Health)(nil)
)
