// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/node"
)

// Collectors returns the collectors for a configuration. records are the types of its records for a monitor.
func Collectors(p *node.Process, c *node.Configuration, records []string) []prometheus.Collector {
	// held collects what there is while the configuration keeps its node open.
	held := func(of *metric.Set, collect func(samples, *node.Node)) prometheus.Collector {
		return of.Collector(func(s metric.Samples) {
			if n := c.Held(); n != nil {
				collect(samples{s}, n)
			}
		})
	}
	return []prometheus.Collector{
		ofProcess.Collector(func(s metric.Samples) { samples{s}.process(p, records) }),
		held(&ofAgents, func(s samples, _ *node.Node) { s.agents(c.Partners()) }),
		held(&ofCallers, func(s samples, _ *node.Node) { s.callers(p, c.Partners()) }),
		held(&ofTasks, func(s samples, n *node.Node) { s.tasks(n.Tasks) }),
		held(&ofWebhooks, func(s samples, n *node.Node) { s.webhooks(n.Tasks.Webhooks().Counts()) }),
		held(&ofGroups, func(s samples, n *node.Node) { s.groups(c.Partners(), n.Groups.Counts()) }),
	}
}

// samples are the values that a collector sends.
type samples struct{ metric.Samples }
