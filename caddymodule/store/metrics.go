// SPDX-License-Identifier: Apache-2.0

package store

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/node"
)

var metrics metric.Set

var metricWritable = metrics.Gauge("store_writable", "Whether the store accepts new tasks: 1 or 0.")

// Measured is a driver with metrics, which Describe describes. Its open stores are prometheus.Collectors.
type Measured interface {
	Describe(out chan<- *prometheus.Desc)
}

// collector collects the metrics of all drivers.
type collector struct{ of *node.Configuration }

// NewCollector returns a collector of the metrics of a configuration's store, while the configuration keeps it open. It
// describes those of all drivers.
func NewCollector(of *node.Configuration) prometheus.Collector { return collector{of} }

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	metrics.Describe(out)
	for _, m := range caddy.GetModules(Namespace) {
		if driver, ok := m.New().(Measured); ok {
			driver.Describe(out)
		}
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	n := c.of.Held()
	if n == nil {
		return
	}
	metric.Samples{Out: out}.Flag(metricWritable, n.Storage.Writable() == nil)
	if measured, ok := n.Storage.(prometheus.Collector); ok {
		measured.Collect(out)
	}
}
