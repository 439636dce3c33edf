// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"expvar"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/node"
)

// The state that all configurations share.
var (
	process    = node.NewProcess(node.Host{Log: logOf, Exiting: caddy.Exiting})
	processPKI = pki.NewProcess(process, logOf)
)

func init() {
	caddy.RegisterModule(processPKI.RootPool())
	process.Beside = openBeside
	// Caddy's admin API serves it under /debug/vars.
	expvar.Publish("aip", expvar.Func(func() any {
		return map[string]int64{"memory": process.Memory.Total(), "streams": process.Streams.Total(),
			"streams_taken_over": process.TakenOver.Total()}
	}))
}
