// SPDX-License-Identifier: Apache-2.0

package caddymodule

import "time"

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
	metricDegraded = metrics.Counter("revocation_degraded_total",
		"Times that a certificate was let in of which nothing newer was known, since the settings of revocation were loaded.")
	metricRefusedHandshakes = metrics.Counter("handshakes_refused_total",
		"Handshakes of callers whose verified certificate does not count, by the reason.", "reason")
	metricRefusedCalls = metrics.Counter("certificates_refused_total",
		"Calls that were refused, and streams that were ended, because the caller's certificate counts no more.", "reason")
	metricRootsAdded = metrics.Gauge("roots_not_in_use",
		"Roots in the files of aip_file that a reload would put in use.")
)

// trust adds what concerns the certificates of callers.
func (s samples) trust(a *App) {
	for reason, n := range process.RefusedHandshakes.All() {
		s.Add(metricRefusedHandshakes, float64(n), reason)
	}
	for reason, n := range process.RefusedCalls.All() {
		s.Add(metricRefusedCalls, float64(n), reason)
	}
	added := 0
	for _, r := range process.Roots.Health() {
		added += len(r.NotInUse)
	}
	s.Add(metricRootsAdded, float64(added))
	trust := &a.configuration.Trust
	degraded, ok := trust.Degraded()
	if !ok {
		return
	}
	s.Add(metricDegraded, float64(degraded))
	for _, source := range trust.Sources() {
		kind, location := string(source.Kind), source.Location
		s.Flag(metricSourceUp, source.Err == nil, kind, location)
		s.Add(metricSourceGood, unix(source.Good), kind, location)
		s.Add(metricSourceNext, unix(source.NextUpdate), kind, location)
		s.Add(metricSourceEntries, float64(source.Entries), kind, location)
		s.Add(metricSourceUnasked, float64(source.Unasked), kind, location)
	}
}

// unix returns a time as metrics have it; 0 for none.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
