// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"sync"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// inForce is the configuration in force, and behind it those that have started and wait for its end.
type inForce struct {
	sync.Mutex

	configurations []*Configuration
}

// enter puts a configuration in force: at once if there is none, and else when those before it have left.
func (f *inForce) enter(c *Configuration) {
	f.Lock()
	f.configurations = append(f.configurations, c)
	first := len(f.configurations) == 1
	f.Unlock()
	if first {
		c.comeInForce()
	}
}

// leave makes room for the next configuration. It does nothing for one that has not entered.
func (f *inForce) leave(c *Configuration) {
	f.Lock()
	i := slices.Index(f.configurations, c)
	if i >= 0 {
		f.configurations = slices.Delete(f.configurations, i, i+1)
	}
	var next *Configuration
	if i == 0 && len(f.configurations) > 0 {
		next = f.configurations[0]
	}
	f.Unlock()
	if next != nil {
		next.comeInForce()
	}
}

// comeInForce puts the settings in force, in the order of doc.go.
func (c *Configuration) comeInForce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.node.Load()
	c.process.Roots.comeInForce()
	n.Leaders.Judge(context.Background(), c.Trust.keeps) // before their webhooks go on
	n.configure(c)
	for _, p := range c.settings.Partners {
		p.register(n)
	}
	c.present()
	c.startMonitoring(c.settings.Monitoring)
	c.held.Store(n)
	close(c.started)
}

// wasInForce reports whether the configuration is in force, or was.
func (c *Configuration) wasInForce() bool {
	select {
	case <-c.started:
		return true
	default:
		return false
	}
}

// present makes a configuration the newest, and has the process show its agents.
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

// configure adds a configuration, and puts its settings in force. c.mu is held.
func (n *Node) configure(c *Configuration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.configurations = append(n.configurations, c)
	n.Storage.Configure(c.store.Settings())
	settings := c.settings.Notify
	settings.TracerProvider, settings.Stopped = n.tracer.provider(), c.settings.Partners.stopped(n.Leaders.Lost)
	n.Tasks.Configure(settings)
}

// forget removes a configuration.
func (n *Node) forget(c *Configuration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.configurations = slices.DeleteFunc(n.configurations, func(o *Configuration) bool { return o == c })
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

// Configurations returns the number of the node's configurations that are in force, or about to stop.
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
