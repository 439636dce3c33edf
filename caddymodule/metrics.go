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
	for _, c := range a.collectors() {
		err := metrics.Register(c)
		if _, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); err != nil && !ok { // or loaded a second time
			return err
		}
	}
	return nil
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
