// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/node"
)

var metrics metric.Set

// The metrics of revocation and of roots.
var (
	metricSourceUp = metrics.Gauge("revocation_source_up",
		"Whether a source of revocation has a list or an answer, and its last request or read went well: 1 or 0.",
		"kind", "location")
	metricSourceGood = metrics.Gauge("revocation_source_good_timestamp_seconds",
		"When a source has last given what is in use, as Unix time; 0 for never.", "kind", "location")
	metricSourceNext = metrics.Gauge("revocation_source_next_update_timestamp_seconds",
		"When what a source has given ends, as Unix time; 0 for never.", "kind", "location")
	metricSourceEntries = metrics.Gauge("revocation_source_entries",
		"Revoked certificates in the list of a source, or inactive agents of a registry.", "kind", "location")
	metricSourceUnasked = metrics.Counter("revocation_source_unasked_total",
		"Times that a source was not asked about a certificate, since its rate was used up.", "kind", "location")
	metricRefusedHandshakes = metrics.Counter("handshakes_refused_total",
		"Handshakes of callers whose verified certificate does not count, by the reason.", "reason")
	metricRefusedCalls = metrics.Counter("certificates_refused_total",
		"Calls that were refused, and streams that were ended, because the caller's certificate counts no more.", "reason")
	metricRootsAdded = metrics.Gauge("roots_not_in_use",
		"Roots in the files of aip_file that a reload would put in use.")
)

// The metrics of certificates.
var (
	metricCertFrom = metrics.Gauge("certificate_not_before_timestamp_seconds",
		"Since when a certificate of the configuration is valid, as Unix time.", "use", "file", "subject")
	metricCertUntil = metrics.Gauge("certificate_not_after_timestamp_seconds",
		"Until when a certificate of the configuration is valid, as Unix time.", "use", "file", "subject")
)

// samples are the values that a Host collects.
type samples struct{ metric.Samples }

// Describe implements prometheus.Collector.
func (h *Host) Describe(out chan<- *prometheus.Desc) { metrics.Describe(out) }

// Collect implements prometheus.Collector.
func (h *Host) Collect(out chan<- prometheus.Metric) {
	s := samples{metric.Samples{Out: out}}
	s.process(h.Process)
	s.trust(&h.Configuration.Trust)
	if h.Configuration.Held() != nil {
		s.validities(h.Loaded)
		s.validities(h.Current())
	}
}

// process adds what concerns the certificates of callers in all configurations.
func (s samples) process(p *Process) {
	for reason, n := range p.node.RefusedHandshakes.All() {
		s.Add(metricRefusedHandshakes, float64(n), reason)
	}
	for reason, n := range p.node.RefusedCalls.All() {
		s.Add(metricRefusedCalls, float64(n), reason)
	}
	added := 0
	for _, r := range p.node.Roots.Health() {
		added += len(r.NotInUse)
	}
	s.Add(metricRootsAdded, float64(added))
}

// trust adds what the sources of a configuration have said.
func (s samples) trust(t *node.Trust) {
	for _, source := range t.Sources() {
		kind, location := string(source.Kind), source.Location
		s.Flag(metricSourceUp, source.Err == nil, kind, location)
		s.Add(metricSourceGood, unix(source.Good), kind, location)
		s.Add(metricSourceNext, unix(source.NextUpdate), kind, location)
		s.Add(metricSourceEntries, float64(source.Entries), kind, location)
		s.Add(metricSourceUnasked, float64(source.Unasked), kind, location)
	}
}

// validities adds until when certificates are valid.
func (s samples) validities(all Validities) {
	for c, valid := range all {
		s.Add(metricCertFrom, float64(valid.from.Unix()), string(c.use), c.file, c.subject)
		s.Add(metricCertUntil, float64(valid.until.Unix()), string(c.use), c.file, c.subject)
	}
}

// unix returns a time as metrics have it; 0 for none.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
