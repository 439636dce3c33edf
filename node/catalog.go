// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/catalog"
	"github.com/aip-gateway/aip-gateway/task"
)

// acs returns the ACS of the mount at its public URL.
func (p *Partner) acs(ctx context.Context) ([]byte, error) {
	return p.Gateway.Document(".well-known/acs.json")(ctx, p.PublicURL, "")
}

// catalog returns the Partners as the catalogue has them.
func (all Partners) catalog() (agents []catalog.Agent) {
	at := make(map[string]int)
	for _, p := range all {
		i, known := at[p.Name]
		if !known {
			i = len(agents)
			at[p.Name] = i
			agents = append(agents, catalog.Agent{Name: p.Name, AIC: p.AIC, Card: p.Gateway.Card})
		}
		c := &agents[i]
		if p.AID != "" {
			c.AID, c.Card = p.AID, p.Gateway.Card
		}
		if c.ACS == nil && p.AIC != "" && p.PublicURL != "" {
			c.ACS = p.acs
		}
	}
	return agents
}

// discoverer returns the server for queries about the Partners of the configuration.
func (c *Configuration) discoverer() *adp.Server {
	return adp.NewServer(&c.process.Agents, adp.About{
		Alive: func(e *catalog.Entry) (bool, time.Time) {
			p := c.settings.Partners.Named(e.Name)
			if p == nil {
				return false, time.Time{}
			}
			return c.isAlive(p), p.Gateway.Health().Answered
		},
		Calls: func(e *catalog.Entry) uint64 {
			p := c.settings.Partners.Named(e.Name)
			if p == nil {
				return 0
			}
			return p.Gateway.Meter().Tasks.Entered(task.Accepted)
		},
	})
}

// isAlive reports whether a Partner takes new tasks, and its agent is not known to be down.
func (c *Configuration) isAlive(p *Partner) bool {
	if c.Ends() || c.settings.Active.Check(p.AIC) != nil {
		return false
	}
	if p.Assignee != "" {
		return c.process.Clients.Online(p.Assignee)
	}
	now := p.Gateway.Health()
	return !now.Down()
}

// checkAgents begins to ask agents whether they can be reached, and to compare ACS with the registered ones, until the
// configuration is drained.
func (c *Configuration) checkAgents() {
	checked := make(map[string]bool)
	for _, p := range c.settings.Partners {
		if p.Check > 0 && !checked[p.Name] {
			checked[p.Name] = true
			c.Go(func(ctx context.Context) { p.Gateway.CheckAgent(ctx, p.Check) })
		}
		if p.Compared {
			c.Go(p.Gateway.CheckACS)
		}
	}
}
