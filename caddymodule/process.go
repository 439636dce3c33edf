// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"expvar"
	"sync"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/policy"
)

// process is the state that all configurations share.
var process gateway.Process

func init() {
	// Caddy's admin API serves it under /debug/vars.
	expvar.Publish("aip", expvar.Func(func() any {
		return map[string]int64{"memory": process.Memory.Total(), "streams": process.Streams.Total(),
			"streams_taken_over": takenOver.total()}
	}))
}

// policyMeters are those of all Partners, by their names. They are small and are kept.
var policyMeters sync.Map

// policyMeter returns what counts the decisions of a Partner's policies.
func policyMeter(partner string) *policy.Meter {
	m, _ := policyMeters.LoadOrStore(partner, new(policy.Meter))
	return m.(*policy.Meter)
}

// exiting is done when the process is about to exit. It ends calls that wait for a task, also those of configurations
// that were replaced, and the answers of the sample agent.
var exiting, exit = context.WithCancel(context.Background())
