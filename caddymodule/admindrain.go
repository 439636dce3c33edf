// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"net/http"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// drain begins or ends a drain, and answers with what is left. One of several gateways hands its shards over, and the
// others start the new tasks. Where there is no other one, new tasks are refused.
func drain(o *openStore, r *http.Request) (any, error) {
	p, log := o.Tasks.Process(), logOf("aip")
	before, others := p.Draining(), false
	if o.Shared != nil && r.Method != http.MethodGet {
		err := o.drainOne(r, new(adminapi.NodeName))
		if err == nil {
			_, others, err = o.drainsIn(r.Context())
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case r.Method == http.MethodPost && !others:
		if p.Drain(); before.IsZero() {
			log.Info("new tasks are refused: the operator drains the gateway")
		}
	case r.Method == http.MethodDelete:
		if p.EndDrain(); !before.IsZero() {
			log.Info("new tasks are accepted again: the operator has ended the drain")
		}
	}
	since, e := p.Draining(), o.Tasks.Engines()
	state := adminapi.DrainState{Draining: !since.IsZero(), Since: since, Running: e.Running(), Unfinished: e.Unfinished()}
	if o.Shared == nil {
		return state, nil
	}
	var err error
	state.HandsOver, _, err = o.drainsIn(r.Context())
	state.Draining = state.Draining || state.HandsOver
	return state, err
}

// drainsIn reports whether this gateway is one that hands its shards over, and whether there are others to have them.
func (o *openStore) drainsIn(ctx context.Context) (drains, others bool, err error) {
	report, err := o.Shared.(reportedStore).Report(ctx, true)
	if err != nil {
		return false, false, err
	}
	for _, n := range report.Nodes {
		if n.Name == report.Node {
			drains = n.State == adminapi.NodeDraining
		} else {
			others = others || n.State == adminapi.NodeUp
		}
	}
	return drains, others, nil
}
