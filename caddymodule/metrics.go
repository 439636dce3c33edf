// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/aip-gateway/aip-gateway/caddymodule/nodemetrics"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
)

func init() { nodemetrics.ExportFrom(prometheus.GathererFunc(gatherNewest)) }

// register adds the metrics to those of a configuration.
func (a *App) register(metrics *prometheus.Registry) error {
	err := metrics.Register(collector{a})
	if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok { // it is loaded a second time
		return nil
	}
	return err
}

// collector collects the metrics of a configuration. While that has no store, it collects those of the one in force:
// after a configuration has failed, Caddy's admin API goes on to show the metrics of that.
type collector struct{ of *App }

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, room := range c.of.collectors() {
		room.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	of := c.of
	if now := newest(); now != nil && of.configuration.Held() == nil {
		of = now
	}
	for _, room := range of.collectors() {
		room.Collect(out)
	}
}

// collectors returns those of all rooms.
func (a *App) collectors() []prometheus.Collector {
	var records []string
	if a.AMP != nil {
		records = a.AMP.Records
	}
	return append(nodemetrics.Collectors(process, a.configuration, records), &a.pki, store.NewCollector(a.configuration))
}

// gatherNewest gathers the metrics of the newest configuration. An exporter outlives configurations, while each of them
// has a registry of its own.
func gatherNewest() ([]*dto.MetricFamily, error) {
	if a := newest(); a != nil {
		return a.metrics.Gather()
	}
	return nil, nil
}
