// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
)

// followRegistry has the certificates of an agent looked after at once when the registry has disabled it, which revokes
// them, and when it has enabled it again.
func (c *Certificates) followRegistry(ctx context.Context, keepers map[string]*agentca.Keeper) {
	active := make(map[string]bool)
	for {
		changed := c.feed.Changed()
		for aic, k := range keepers {
			now := c.feed.Agent(aic)
			if was, is := active[aic]; now.Known && is && was != now.Active {
				k.Wake()
			}
			if now.Known {
				active[aic] = now.Active
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
