// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/front/httpfront"
)

// waitForLoops waits, when the process ends, for the calls in loops, as Caddy does for all others.
func waitForLoops(ctx context.Context) error {
	if !caddy.Exiting() {
		return nil
	}
	return httpfront.WaitForLoops(ctx)
}
