// SPDX-License-Identifier: Apache-2.0

package storepebble

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
)

var metrics metric.Set

// The metrics of the store on the disk.
var (
	metricFailures = metrics.Counter("store_failures_total", "How often the store became unavailable.")
	metricAppends  = metrics.Counter("store_appends_total", "Appends that were written.")
	metricJournal  = metrics.Counter("store_journal_bytes_total", "Bytes that were written to the journal.")
	metricSyncs    = metrics.Histogram("store_sync_seconds", "Time that a sync of the journal took.")
	metricUnread   = metrics.Gauge("store_unread_bytes", "Events in memory that followers of tasks have still to read.")
	metricCompacts = metrics.Gauge("store_compactions", "Compactions of the database since it was last opened.")
	metricDisk     = metrics.Gauge("store_disk_bytes", "Size of the files of the store.")
	metricFree     = metrics.Gauge("store_free_bytes", "Space that is free on the disk of the store.")
	metricMinFree  = metrics.Gauge("store_min_free_bytes", "Free space below which new tasks are refused.")
)

// Describe implements store.Measured.
func (*Store) Describe(out chan<- *prometheus.Desc) { metrics.Describe(out) }

// Describe implements prometheus.Collector.
func (opened) Describe(out chan<- *prometheus.Desc) { metrics.Describe(out) }

// Collect implements prometheus.Collector.
func (s opened) Collect(ch chan<- prometheus.Metric) {
	out, m := metric.Samples{Out: ch}, s.Metrics()
	out.Add(metricFailures, float64(m.Failures))
	out.Add(metricAppends, float64(m.Appends))
	out.Add(metricJournal, float64(m.JournalBytes))
	out.Durations(metricSyncs, m.Syncs)
	out.Add(metricUnread, float64(m.UnreadBytes))
	out.Add(metricCompacts, float64(m.Compactions))
	out.Add(metricDisk, float64(m.DiskBytes))
	out.Add(metricFree, float64(m.FreeBytes))
	out.Add(metricMinFree, float64(m.MinFreeBytes))
}
