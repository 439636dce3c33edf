// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"log/slog"
	"net/http"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

// drain begins or ends that new tasks are refused, and answers with what is left.
func drain(o *openStore, r *http.Request) (any, error) {
	p, log := o.tasks.Process(), slog.New(processLog{name: "aip"})
	before := p.Draining()
	switch r.Method {
	case http.MethodPost:
		if p.Drain(); before.IsZero() {
			log.Info("new tasks are refused: the operator drains the gateway")
		}
	case http.MethodDelete:
		if p.EndDrain(); !before.IsZero() {
			log.Info("new tasks are accepted again: the operator has ended the drain")
		}
	}
	since, e := p.Draining(), o.tasks.Engines()
	return adminapi.DrainState{
		Draining: !since.IsZero(), Since: since, Running: e.Running(), Unfinished: e.Unfinished(),
	}, nil
}
