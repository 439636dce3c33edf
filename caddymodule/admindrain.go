// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"log/slog"
	"net/http"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

// drain begins or ends that new tasks are refused, and answers with what is left.
func drain(o *openStore, r *http.Request) (any, error) {
	e, log := o.tasks.Engine, slog.New(processLog{name: "aip"})
	before := e.Draining()
	switch r.Method {
	case http.MethodPost:
		if e.Drain(); before.IsZero() {
			log.Info("new tasks are refused: the operator drains the gateway")
		}
	case http.MethodDelete:
		if e.EndDrain(); !before.IsZero() {
			log.Info("new tasks are accepted again: the operator has ended the drain")
		}
	}
	since := e.Draining()
	return adminapi.DrainState{
		Draining: !since.IsZero(), Since: since, Running: e.Running(), Unfinished: e.Unfinished(),
	}, nil
}
