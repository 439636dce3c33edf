// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"slices"
	"sync"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// inForce are the configurations that have started and not stopped, oldest first. The last one is in force. If it stops
// before an older one, because another app of it could not start, the older one is in force again.
var inForce struct {
	sync.Mutex

	apps []*App
}

// comeInForce puts a configuration in force that has what present needs.
func (a *App) comeInForce() {
	inForce.Lock()
	defer inForce.Unlock()
	inForce.apps = append(inForce.apps, a)
	a.present()
}

// leaveForce ends that a configuration is in force, or may be again. It does nothing for one that never was.
func (a *App) leaveForce() {
	inForce.Lock()
	defer inForce.Unlock()
	i := slices.Index(inForce.apps, a)
	if i < 0 {
		return
	}
	inForce.apps = slices.Delete(inForce.apps, i, i+1)
	if i > 0 && i == len(inForce.apps) {
		inForce.apps[i-1].present()
	}
}

// present has the process show the agents and the metrics of a configuration. It takes no lock of the App, and uses
// only what Start has set.
func (a *App) present() {
	newest.Store(a)
	process.Agents.Set(a.agents)
	if a.AUN != nil {
		process.Directory.Set(a.AUN.identity)
		a.messages.Set(a.addressed)
	}
	process.Clients.Serve(a.aunFront)
}

// gatewaysInForce returns the gateways that have a Partner in the configuration that is in force.
func gatewaysInForce(partner string) []*gateway.Gateway {
	if now := newest.Load(); now != nil {
		return now.gatewaysOf(partner)
	}
	return nil
}

// gatewaysOf returns the gateways of this configuration that have a Partner. It is called after Start.
func (a *App) gatewaysOf(partner string) (all []*gateway.Gateway) {
	for _, g := range a.mounts[partner] {
		all = append(all, g.gateway)
	}
	return all
}
