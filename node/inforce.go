// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"sync"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// inForce are the configurations between Start and Stop, oldest first. The last one is in force. If it stops before an
// older one, because another part of its host could not start, the older one is in force again.
type inForce struct {
	sync.Mutex

	configurations []*Configuration
}

// comeInForce puts a configuration in force.
func (c *Configuration) comeInForce() {
	f := &c.process.inForce
	f.Lock()
	defer f.Unlock()
	f.configurations = append(f.configurations, c)
	c.present()
}

// leaveForce takes a configuration out of force. It does nothing for one that never was in force.
func (c *Configuration) leaveForce() {
	f := &c.process.inForce
	f.Lock()
	defer f.Unlock()
	i := slices.Index(f.configurations, c)
	if i < 0 {
		return
	}
	f.configurations = slices.Delete(f.configurations, i, i+1)
	if i > 0 && i == len(f.configurations) {
		f.configurations[i-1].present()
	}
}

// present makes a configuration the newest, and has the process show its agents. It takes no lock of it, and uses
// the results of Start alone.
func (c *Configuration) present() {
	p, s := c.process, &c.settings
	p.newest.Store(c)
	p.Agents.Set(s.agents)
	if s.AUN != nil {
		p.Directory.Set(s.AUN.Identity)
		s.AUN.box.Set(s.AUN.agents)
	}
	p.Clients.Serve(c.Front)
}

// Newest returns the last configuration in force; nil before the first one. It stays when the host stops, for the last
// export.
func (p *Process) Newest() *Configuration { return p.newest.Load() }

// Gateways returns the gateways of a Partner in the newest configuration.
func (p *Process) Gateways(partner string) (all []*gateway.Gateway) {
	c := p.newest.Load()
	if c == nil {
		return nil
	}
	for _, of := range c.settings.Partners {
		if of.Name == partner {
			all = append(all, of.Gateway)
		}
	}
	return all
}

// configure adds a configuration. The newest one is in force. If it fails to start, that of the running one is in force
// again. c.mu is held.
func (n *Node) configure(c *Configuration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remove(c)
	n.configurations = append(n.configurations, c)
	n.apply()
}

// forget removes a configuration.
func (n *Node) forget(c *Configuration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remove(c)
	n.apply()
}

// remove removes a configuration. n.mu is held.
func (n *Node) remove(c *Configuration) {
	n.configurations = slices.DeleteFunc(n.configurations, func(o *Configuration) bool { return o == c })
}

// apply puts the settings of the newest configuration in force. n.mu is held.
func (n *Node) apply() {
	i := len(n.configurations) - 1
	if i < 0 {
		return
	}
	c := n.configurations[i]
	n.Storage.Configure(c.store.Settings())
	settings := c.settings.Notify
	settings.TracerProvider, settings.Stopped = n.tracer.provider(), c.settings.Partners.stopped(n.Leaders.Lost)
	n.Tasks.Configure(settings)
}

// InForce returns the node's configuration in force; nil if there is none.
func (n *Node) InForce() *Configuration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := len(n.configurations); i > 0 {
		return n.configurations[i-1]
	}
	return nil
}

// Configurations returns the number of the node's configurations between Start and Stop.
func (n *Node) Configurations() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.configurations)
}

// Partners returns the Partners of the configuration in force. The list is not to be changed.
func (n *Node) Partners() Partners {
	if c := n.InForce(); c != nil {
		return c.settings.Partners
	}
	return nil
}
