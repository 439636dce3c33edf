// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"

	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// HealthOf returns what the gateway knows of the agent of a Partner.
func HealthOf(p *node.Partner) adminapi.AgentHealth {
	now := p.Gateway.Health()
	h := adminapi.AgentHealth{Name: p.Title, URL: p.URL, Partner: p.Name, Agent: p.Agent,
		Dialect: now.Dialect, State: adminapi.AgentUnknown, Answered: now.Answered}
	if now.Failed != nil {
		h.Failed = now.Failed.At
	}
	switch {
	case now.Up():
		h.State = adminapi.AgentUp
	case now.Down():
		h.State, h.Reason = adminapi.AgentDown, now.Failed.Err.Error()
		if e, ok := errors.AsType[*task.Error](now.Failed.Err); ok && e.Detail != "" {
			h.Reason = e.Detail // without what the connection said, which may name addresses
		}
	}
	return h
}

// SourcesOf returns the state of the sources of revocation.
func SourcesOf(t *node.Trust) (all []adminapi.SourceHealth) {
	for _, s := range t.Sources() {
		h := adminapi.SourceHealth{Kind: string(s.Kind), Location: s.Location, Issuer: s.Issuer, Number: s.Number,
			Entries: s.Entries, ThisUpdate: s.ThisUpdate, NextUpdate: s.NextUpdate, Good: s.Good}
		if s.Err != nil {
			h.Reason = s.Err.Error()
		}
		all = append(all, h)
	}
	return all
}

// RootsOf returns the state of the files of roots.
func RootsOf(r *node.Roots) (all []adminapi.RootsHealth) {
	for _, h := range r.Health() {
		all = append(all, adminapi.RootsHealth(h))
	}
	return all
}
