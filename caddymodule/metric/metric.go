// SPDX-License-Identifier: Apache-2.0

// Package metric describes the metrics of a room, and samples them for Prometheus. Rooms count by atomics of their own,
// and a collector reads them at a scrape: so counters outlive the registry of a configuration.
package metric

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/internal/measure"
)

// Metric describes a counter or a gauge.
type Metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// Set has the metrics of a room. The zero value is ready for use.
type Set struct{ all []*prometheus.Desc }

// Counter describes a counter. Its name begins with aip_.
func (s *Set) Counter(name, help string, labels ...string) Metric {
	return Metric{s.Histogram(name, help, labels...), prometheus.CounterValue}
}

// Gauge describes a gauge.
func (s *Set) Gauge(name, help string, labels ...string) Metric {
	return Metric{s.Histogram(name, help, labels...), prometheus.GaugeValue}
}

// Histogram describes a histogram.
func (s *Set) Histogram(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("aip_"+name, help, labels, nil)
	s.all = append(s.all, d)
	return d
}

// Describe sends the descriptions of all.
func (s *Set) Describe(out chan<- *prometheus.Desc) {
	for _, d := range s.all {
		out <- d
	}
}

// Collector returns a prometheus.Collector of all, which has collect send their values.
func (s *Set) Collector(collect func(Samples)) prometheus.Collector { return collector{s, collect} }

type collector struct {
	*Set
	collect func(Samples)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) { c.collect(Samples{out}) }

// Samples are the values that a prometheus.Collector collects.
type Samples struct{ Out chan<- prometheus.Metric }

// Add adds a value.
func (s Samples) Add(m Metric, value float64, labels ...string) {
	s.Out <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

// Flag adds 1 or 0.
func (s Samples) Flag(m Metric, set bool, labels ...string) {
	value := 0.0
	if set {
		value = 1
	}
	s.Add(m, value, labels...)
}

// Durations adds a histogram of seconds.
func (s Samples) Durations(d *prometheus.Desc, h measure.Snapshot, labels ...string) {
	m := prometheus.MustNewConstHistogram(d, h.Count, h.Sum, h.Buckets, labels...)
	if len(h.Exemplars) > 0 {
		all := make([]prometheus.Exemplar, len(h.Exemplars))
		for i, e := range h.Exemplars {
			all[i] = prometheus.Exemplar{Value: e.Took, Timestamp: e.At,
				Labels: prometheus.Labels{"trace_id": e.TraceID, "span_id": e.SpanID}}
		}
		m = prometheus.MustNewMetricWithExemplars(m, all...)
	}
	s.Out <- m
}
