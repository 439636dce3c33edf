// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/identity"
)

// stopped returns what reports whether nothing is sent to the webhooks of a Leader of a Partner now: it has lost its
// standing, or by this configuration it could not call. The webhooks of a Partner that is gone go on, as its tasks do.
// a.members is set.
func (a *App) stopped(lost func(leader string) bool) func(partner, leader string) bool {
	mounts := make(map[string][]*Gateway)
	for _, g := range a.members {
		mounts[g.name()] = append(mounts[g.name()], g)
	}
	return func(partner, leader string) bool {
		may := func(g *Gateway) bool { return g.permits(leader) }
		return lost(leader) || len(mounts[partner]) > 0 && !slices.ContainsFunc(mounts[partner], may)
	}
}

// issues reports whether a caller could prove an id of a kind by this configuration.
func (g *Gateway) issues(kind identity.Kind, id string) bool {
	return g.callers == nil || g.callers.Issues(kind, id)
}

// permits reports whether a Leader could call: the lists name it, and one of its names can be proven. Rules of a policy
// are about calls, and do not count here.
func (g *Gateway) permits(leader string) bool {
	if g.leaders == nil || g.callers == nil {
		return true
	}
	return g.leaders.Knows(leader) && slices.ContainsFunc(g.app.identities.Names(leader), func(name string) bool {
		return g.callers.Issues(identity.SplitLeader(name))
	})
}
