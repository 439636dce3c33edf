// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

func init() {
	caddy.RegisterModule(new(Health))
	httpcaddyfile.RegisterHandlerDirective("aip_health", conf.Handler[Health])
	httpcaddyfile.RegisterDirectiveOrder("aip_health", httpcaddyfile.Before, "respond")
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

// Interface guards.
var (
	_ caddyhttp.MiddlewareHandler = (*Health)(nil)
	_ caddyfile.Unmarshaler       = (*Health)(nil)
)
