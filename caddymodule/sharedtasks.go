// SPDX-License-Identifier: Apache-2.0

package caddymodule

import "github.com/aip-gateway/aip-gateway/identity"

// separateTasks is what gives a mount with identity off tasks of its own.
const separateTasks = "set its identity to that of the other mount, or give this one another aic, " +
	"so that it has tasks of its own"

// sharesTasks returns a mount of the same Partner, whose tasks a mount shares though its callers are believed and those
// of the other one prove who they are; nil for none.
func (a *App) sharesTasks(g *Gateway) *Gateway {
	if g.Identity.Mode != string(identity.Off) {
		return nil
	}
	for _, other := range a.members {
		if other.name() == g.name() && other.Identity.Mode != g.Identity.Mode {
			return other
		}
	}
	return nil
}

// warnOfSharedTasks warns of each Partner that has a mount whose callers are believed, beside one where they prove who
// they are: the tasks are the same.
func (a *App) warnOfSharedTasks() {
	for _, g := range a.members {
		if other := a.sharesTasks(g); other != nil {
			g.log.Warn("identity is off, and a mount of the same Partner, where it is not, has the same tasks",
				"mount", other.BasePath+"/", "identity", other.Identity.Mode, "advice", separateTasks)
		}
	}
}
