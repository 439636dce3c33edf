// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// MayCall returns the reason why a peer may not start a task, in any of the served dialects; nil if it may, as far as
// known without a call: an external decision point is not asked, and no quota is counted.
func (g *Gateway) MayCall(ctx context.Context, peer identity.Peer) (err error) {
	if err = g.config.Inactive(); err != nil {
		return err
	}
	for _, dialect := range g.config.Callers {
		if err = g.mayCallIn(ctx, dialect.Name(), peer); err == nil {
			return nil
		}
	}
	return err
}

// Admits reports whether the guard lets a peer in, as its own Leader.
func (g *Gateway) Admits(dialect string, peer identity.Peer) bool {
	peer, err := g.config.Guard.CheckIn(dialect, peer)
	if err == nil {
		_, err = g.config.Guard.Anonymous(peer)
	}
	return err == nil
}

func (g *Gateway) mayCallIn(ctx context.Context, dialect string, peer identity.Peer) error {
	peer, err := g.accepts(peer, dialect, string(task.Start))
	if err != nil {
		return err
	}
	if r := g.config.Revocation; r != nil && len(peer.Chains) > 0 {
		return r.Check(ctx, peer.Chains, peer.Staple)
	}
	return nil
}
