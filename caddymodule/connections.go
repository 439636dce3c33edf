// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/front/httpfront"
)

// Connections are how the connections of callers are served.
type Connections struct {
	// Whether the gateway itself reads the calls that follow on a connection of HTTP/1.1, from the third one on, and hands
	// them to Caddy: on or off. It takes less time than Caddy's server (net/http). Default: on.
	Loop string `json:"loop,omitempty"`
}

func (c *Connections) provision() { conf.OrDefault(&c.Loop, switchOn) }

func (c *Connections) validate() error {
	if c.Loop != switchOn && c.Loop != switchOff {
		return fmt.Errorf("connections: loop is %q, but must be on or off", c.Loop)
	}
	return nil
}

// passes is what httpfront.Config.Loop is.
func (c *Connections) passes() func(http.ResponseWriter) bool {
	if c.Loop == switchOff {
		return nil
	}
	return passes
}

// waitForLoops waits, when the process ends, for the calls in loops, as Caddy does for all others.
func waitForLoops(ctx context.Context) error {
	if !caddy.Exiting() {
		return nil
	}
	return httpfront.WaitForLoops(ctx)
}
