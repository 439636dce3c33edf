// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/identity"
)

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
