// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
)

func init() {
	caddy.RegisterModule(new(SampleAgent))
	httpcaddyfile.RegisterHandlerDirective("aip_sample_agent", parseSampleAgent)
	httpcaddyfile.RegisterDirectiveOrder("aip_sample_agent", httpcaddyfile.Before, "respond")
}

// SampleAgent is an agent to try the gateway with. It speaks legacy A2A, and can stream, ask for input and fail: the
// first word of a message is its command, as in caddy aip sample-agent. It keeps its tasks in memory until the next
// reload.
type SampleAgent struct {
	agent *legacyagent.Agent
}

// CaddyModule returns the Caddy module information.
func (*SampleAgent) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_sample_agent", New: func() caddy.Module { return new(SampleAgent) }}
}

// Provision sets up the agent.
func (a *SampleAgent) Provision(caddy.Context) error {
	a.agent = legacyagent.New(legacyagent.Options{})
	return nil
}

// Cleanup stops the agent's turns.
func (a *SampleAgent) Cleanup() error {
	if a.agent != nil {
		a.agent.Close()
	}
	return nil
}

func parseSampleAgent(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	a := new(SampleAgent)
	return a, a.UnmarshalCaddyfile(h.Dispenser)
}

// UnmarshalCaddyfile sets up the handler from a Caddyfile. Syntax:
//
//	aip_sample_agent [<matcher>]
func (a *SampleAgent) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() || d.NextBlock(0) {
		return d.Err("aip_sample_agent takes no settings")
	}
	return nil
}

// ServeHTTP lets the agent answer.
func (a *SampleAgent) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	a.agent.ServeHTTP(w, r)
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*SampleAgent)(nil)
	_ caddy.CleanerUpper          = (*SampleAgent)(nil)
	_ caddyfile.Unmarshaler       = (*SampleAgent)(nil)
	_ caddyhttp.MiddlewareHandler = (*SampleAgent)(nil)
)
