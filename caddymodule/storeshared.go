// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// SharedDriver is a StoreDriver whose stores several processes share. Its Open is not called.
type SharedDriver interface {
	StoreDriver
	node.SharedDriver

	// LeastResend returns for how long an agent must be asked for a message before the message is sent again: until then a
	// process that owned the task before may still send it.
	LeastResend() time.Duration
}

// joinedStore is a store of a clusterMember.
type joinedStore struct{ *node.Joining }

// Report implements operator.Reporter.
func (s joinedStore) Report(ctx context.Context, brief bool) (*adminapi.ClusterReport, error) {
	m, err := s.Member()
	if err != nil {
		return nil, err
	}
	return m.(*clusterMember).Report(ctx, brief)
}

// sample implements sampledStore.
func (s joinedStore) sample(out samples) {
	if m, err := s.Member(); err == nil {
		m.(*clusterMember).sample(out)
	}
}

// checkShared returns an error for a handler that does not go with a store that several processes share.
func (a *App) checkShared(g *Gateway) error {
	d, ok := a.store.(SharedDriver)
	if !ok || g.Agent.Resend.Never {
		return nil
	}
	if after, least := time.Duration(*g.Agent.Resend.After), d.LeastResend(); after < least {
		return fmt.Errorf("agent: resend after is %s, but must be at least %s, twice the lease of the store: until then the "+
			"gateway that owned the task before may still send the message", after, least)
	}
	return nil
}

// Interface guards.
var (
	_ node.SharedStore  = joinedStore{}
	_ operator.Reporter = joinedStore{}
	_ sampledStore      = joinedStore{}
)
