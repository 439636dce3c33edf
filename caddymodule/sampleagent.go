// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
)

func init() {
	caddy.RegisterModule(new(SampleAgent))
	httpcaddyfile.RegisterHandlerDirective("aip_sample_agent", conf.Handler[SampleAgent])
	httpcaddyfile.RegisterDirectiveOrder("aip_sample_agent", httpcaddyfile.Before, "respond")
}

// SampleAgent is an agent of a2a/legacy to try the gateway with. All sites share one; it keeps its tasks over reloads,
// until no configuration has it.
type SampleAgent struct {
	agent *legacyagent.Agent
}

// sampleAgents holds the agent of this process. A new configuration continues with that of the one before, so that a
// reload cancels no task.
var sampleAgents = caddy.NewUsagePool()

const sampleAgentKey = "sample"

// pooledAgent is an agent in sampleAgents.
type pooledAgent struct{ *legacyagent.Agent }

// Destruct implements caddy.Destructor.
func (a pooledAgent) Destruct() error { return a.Close() }

// CaddyModule returns the Caddy module information.
func (*SampleAgent) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_sample_agent", New: func() caddy.Module { return new(SampleAgent) }}
}

// Provision sets up the agent.
func (a *SampleAgent) Provision(ctx caddy.Context) error {
	events, err := ctx.App("events")
	if err != nil {
		return err
	}
	if err := events.(*caddyevents.App).On("stopping", a); err != nil {
		return err
	}
	v, _, err := sampleAgents.LoadOrNew(sampleAgentKey, func() (caddy.Destructor, error) {
		return pooledAgent{legacyagent.New(legacyagent.Options{})}, nil
	})
	if err != nil {
		return err
	}
	a.agent = v.(pooledAgent).Agent
	return nil
}

// Cleanup stops the agent's turns, unless another configuration has it.
func (a *SampleAgent) Cleanup() error {
	if a.agent == nil {
		return nil
	}
	_, err := sampleAgents.Delete(sampleAgentKey)
	return err
}

// Handle ends the agent's answers when the process is about to exit: Caddy waits for them, and the gateway in the same
// process waits for the agent. It implements caddyevents.Handler.
func (*SampleAgent) Handle(context.Context, caddy.Event) error {
	if caddy.Exiting() {
		process.Exit()
	}
	return nil
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
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(process.Exiting, cancel)()
	a.agent.ServeHTTP(w, r.WithContext(ctx))
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*SampleAgent)(nil)
	_ caddy.CleanerUpper          = (*SampleAgent)(nil)
	_ caddyfile.Unmarshaler       = (*SampleAgent)(nil)
	_ caddyhttp.MiddlewareHandler = (*SampleAgent)(nil)
	_ caddyevents.Handler         = (*SampleAgent)(nil)
)
