// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/http"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// drain begins or ends a drain, and answers with what is left. One of several gateways hands its shards over, and the
// others start the new tasks. Where there is no other one, new tasks are refused.
func drain(a *Admin, r *http.Request) (any, error) {
	p, log := a.Tasks.Process(), a.log
	before, others := p.Draining(), false
	if a.Shared != nil && r.Method != http.MethodGet {
		err := a.drainOne(r, new(adminapi.NodeName))
		if err == nil {
			_, others, err = a.drainsIn(r.Context())
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
	since, e := p.Draining(), a.Tasks.Engines()
	state := adminapi.DrainState{Draining: !since.IsZero(), Since: since, Running: e.Running(), Unfinished: e.Unfinished()}
	if a.Shared == nil {
		return state, nil
	}
	var err error
	state.HandsOver, _, err = a.drainsIn(r.Context())
	state.Draining = state.Draining || state.HandsOver
	return state, err
}

// drainsIn reports whether this gateway is one that hands its shards over, and whether there are others to have them.
func (a *Admin) drainsIn(ctx context.Context) (drains, others bool, err error) {
	report, err := a.Shared.(Reporter).Report(ctx, true)
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
