// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"expvar"
	"time"

	"github.com/aip-gateway/aip-gateway/node"
)

// process is the state that all configurations share.
var process = node.NewProcess()

func init() {
	// Caddy's admin API serves it under /debug/vars.
	expvar.Publish("aip", expvar.Func(func() any {
		return map[string]int64{"memory": process.Memory.Total(), "streams": process.Streams.Total(),
			"streams_taken_over": process.TakenOver.Total()}
	}))
}

// detachedGrace is how much longer than to drain them Stop waits for streams that have outlived their requests.
const detachedGrace = 5 * time.Second

// takeOver is detach for a stream that has taken its connection over.
func (a *App) takeOver() (end func()) {
	left := a.detach()
	process.TakenOver.Add(1)
	return func() {
		process.TakenOver.Add(-1)
		left()
	}
}

// detach keeps what a stream of this configuration needs, the store, until end is called.
func (a *App) detach() (end func()) {
	a.enter()
	process.Detached.Add(1)
	return func() {
		a.leave()
		process.Detached.Add(-1)
	}
}
